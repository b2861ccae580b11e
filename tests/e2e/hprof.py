# SPDX-License-Identifier: Apache-2.0
"""
A heap dump that the JVM wrote itself (jmap -dump), and what each object in it alone keeps alive, as an oracle of
java-refs. The format is that of the JDK's heapDumper.cpp; what a java.lang.Class has beside static fields is not in it.
Not a test itself.
"""

import re
import struct

BYTES = {2: 8, 4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}
OBJECT = 2
STACKS = {0x01, 0x02, 0x03, 0x04, 0x06, 0x07}  # roots: JNI references, frames, monitors
STRONG = {"java.lang.ref.SoftReference", "java.lang.ref.FinalReference"}  # beside them a referent is not followed


class Class:
    def __init__(self, above, statics, fields, size):
        self.above, self.statics, self.fields, self.size, self.name = above, statics, fields, size, "?"


class Hprof:
    """
    refs: {object: [objects that it refers to]}; of an instance also its class. kind: {object: its class; 0: a class;
    below: an array of such primitives}. length: of arrays. roots: {object: [kinds of roots]}
    """

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.classes, self.refs, self.kind, self.length, self.roots = {}, {}, {}, {}, {}
        self.instances, self.layouts, self.loader = {}, {}, {}
        texts, names = {}, {}
        at = self.data.index(b"\0") + 1
        assert struct.unpack_from(">I", self.data, at)[0] == 8, "identifiers of 8 bytes"
        at += 12
        while at < len(self.data):
            tag, _, size = struct.unpack_from(">BII", self.data, at)
            at += 9
            if tag == 0x01:
                obj = struct.unpack_from(">Q", self.data, at)[0]
                texts[obj] = self.data[at + 8 : at + size].decode(errors="replace")
            elif tag == 0x02:
                _, obj, _, name = struct.unpack_from(">IQIQ", self.data, at)
                names[obj] = name
            elif tag in (0x0C, 0x1C):
                self.segment(at, at + size)
            at += size
        self.texts = texts
        for obj, c in self.classes.items():
            c.name = texts[names[obj]].replace("/", ".")
        self.resolve()

    def segment(self, at, end):
        data, unpack = self.data, struct.unpack_from
        roots = {0x01: 16, 0x02: 16, 0x03: 16, 0x04: 12, 0x05: 8, 0x06: 12, 0x07: 8, 0x08: 16, 0xFF: 8}
        while at < end:
            tag = data[at]
            obj = unpack(">Q", data, at + 1)[0]
            if tag in roots:
                self.roots.setdefault(obj, []).append(tag)
                at += 1 + roots[tag]
            elif tag == 0x20:
                at = self.klass(at)
            elif tag == 0x21:
                kind, size = unpack(">QI", data, at + 13)
                self.kind[obj] = kind
                self.instances[obj] = at + 25
                at += 25 + size
            elif tag == 0x22:
                n, kind = unpack(">IQ", data, at + 13)
                self.kind[obj], self.length[obj] = kind, n
                self.refs[obj] = [r for r in unpack(f">{n}Q", data, at + 25) if r]
                at += 25 + 8 * n
            else:
                assert tag == 0x23, hex(tag)
                n, code = unpack(">IB", data, at + 13)
                self.kind[obj], self.length[obj], self.refs[obj] = -code, n, []
                at += 18 + n * BYTES[code]

    def klass(self, at):
        data, unpack = self.data, struct.unpack_from
        obj, _, above, loader, signers, domain, r1, r2, size = unpack(">QIQQQQQQI", data, at + 1)
        at += 65
        n = unpack(">H", data, at)[0]
        at += 2
        for _ in range(n):
            at += 3 + BYTES[data[at + 2]]
        n = unpack(">H", data, at)[0]
        at += 2
        statics, fields = [], []
        for _ in range(n):
            name, code = unpack(">QB", data, at)
            if code == OBJECT:
                statics.append(unpack(">Q", data, at + 9)[0])
            at += 9 + BYTES[code]
        n = unpack(">H", data, at)[0]
        at += 2
        for _ in range(n):
            fields.append(unpack(">QB", data, at))
            at += 9
        self.classes[obj] = Class(above, statics, fields, size)
        self.refs[obj] = [r for r in (above, loader, signers, domain, r1, r2, *statics) if r]
        self.kind[obj], self.loader[obj] = 0, loader
        return at

    def layout(self, kind):
        """Where in an instance references are that count."""
        if kind in self.layouts:
            return self.layouts[kind]
        ret, at, above, names = [], 0, kind, set()
        while above:
            names.add(self.classes[above].name)
            above = self.classes[above].above
        above = kind
        while above:
            c = self.classes[above]
            for name, code in c.fields:
                weak = c.name == "java.lang.ref.Reference" and self.texts[name] == "referent" and not names & STRONG
                if code == OBJECT and not weak:
                    ret.append(at)
                at += BYTES[code]
            above = c.above
        self.layouts[kind] = ret
        return ret

    def resolve(self):
        for obj, at in self.instances.items():
            self.refs[obj] = [r for k in self.layout(self.kind[obj])
                              if (r := struct.unpack_from(">Q", self.data, at + k)[0])]
        for obj, kind in self.kind.items():
            if kind > 0:
                self.refs[obj].append(kind)

    def lasting(self):
        """Objects of roots that stay: classes of loaders that are never unloaded, threads; not stacks and JNI's."""
        stay = [o for o, kinds in self.roots.items() if not STACKS.issuperset(kinds)]
        return list(dict.fromkeys(stay + [o for o, loader in self.loader.items() if self.is_immortal(loader)]))

    def is_immortal(self, loader):
        return not loader or re.search(r"\$(App|Platform|Boot|Ext)ClassLoader$", self.classes[self.kind[loader]].name)

    def size(self, obj, instances):
        """instances: {class: bytes}. Of a JVM with compressed references; of a class: 0."""
        kind = self.kind[obj]
        if obj in self.length:
            return 16 + self.length[obj] * (BYTES[-kind] if kind < 0 else 4) + 7 & ~7
        return instances.get(self.classes[kind].name, 0) if kind else 0  # hidden classes have other names there


def search(refs, roots):
    """Nodes in the order of a search in depth from one above all roots, and by their numbers there who found each."""
    order, number, found_by, stack = [0], {0: 0}, [0], [(0, iter(roots))]
    while stack:
        node, following = stack[-1]
        for to in following:
            if to not in number:
                number[to] = len(order)
                found_by.append(number[node])
                order.append(to)
                stack.append((to, iter(refs.get(to, ()))))
                break
        else:
            stack.pop()
    return order, number, found_by


def dominators(refs, roots, order, number, found_by):
    """By Lengauer and Tarjan; by numbers."""
    n = len(order)
    semi, label, above, dom = list(range(n)), list(range(n)), [-1] * n, [0] * n
    sources, waiting = [[] for _ in order], [[] for _ in order]

    def least(v):
        path = []
        while above[v] >= 0 and above[above[v]] >= 0:
            path.append(v)
            v = above[v]
        for v in reversed(path):
            if semi[label[above[v]]] < semi[label[v]]:
                label[v] = label[above[v]]
            above[v] = above[above[v]]
        return v

    for i, node in enumerate(order):
        for to in refs.get(node, ()) if i else roots:
            sources[number[to]].append(i)
    for i in range(n - 1, 0, -1):
        for v in sources[i]:
            least(v)
            semi[i] = min(semi[i], semi[label[v]])
        waiting[semi[i]].append(i)
        above[i] = found_by[i]
        for v in waiting[found_by[i]]:
            least(v)
            dom[v] = label[v] if semi[label[v]] < semi[v] else found_by[i]
        waiting[found_by[i]] = []
    for i in range(1, n):
        if dom[i] != semi[i]:
            dom[i] = dom[dom[i]]
    return dom


def retained(refs, roots, size):
    """{object: bytes that it alone keeps alive}"""
    order, number, found_by = search(refs, roots)
    dom = dominators(refs, roots, order, number, found_by)
    ret = [0] * len(order)
    for i in range(len(order) - 1, 0, -1):
        ret[i] += size(order[i])
        ret[dom[i]] += ret[i]
    return {order[i]: ret[i] for i in range(1, len(order))}
