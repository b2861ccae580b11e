# SPDX-License-Identifier: Apache-2.0
# Debian's lldb 14 needs PYTHONPATH=/usr/lib/llvm-14/lib/python3.11/dist-packages.
import os, struct, sys, time

OK, FAULT, ABSENT, OPTIMIZED_OUT, LIMIT, DIV = range(6)
CAUSES = ["ok", "fault", "absent", "optimized out", "limit", "division by zero", "of another type"]
MASK = (1 << 64) - 1
PAGE, STRING_MOST = 4096, 1 << 16


class Fail(Exception):
    """A handler's or an expression's error value."""

    def __init__(self, status, at, place):
        self.status, self.at, self.place = status, at, place


class Exit(Exception):
    pass


class Stop(Exception):
    pass


class Cut(bytes):
    """A string that goes on in the target."""


# --- numbers: always within their type ---

def signed(n, bits):
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> (bits - 1) else n


def div(a, b, place):
    if not b:
        raise Fail(DIV, 0, place)
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def mod(a, b, place):
    return a - b * div(a, b, place)


def fdiv(a, b):
    if b:
        return a / b
    if a != a or not a:
        return float("nan") if a != a else -float("nan")
    return float("inf") if (a > 0) == (struct.pack("<d", b)[7] < 128) else float("-inf")


def f32(x):
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")


def to_integer(x, low, high):
    return 0 if x != x else low if x < low else high if x > high else int(x)


def bits(word, form):
    return struct.unpack_from("<" + form, struct.pack("<Q", word))[0]


# --- the target, by pages, each read once ---

class Memory:
    def __init__(self):
        self.pages = {}

    def bytes(self, addr, n, place):
        page, inside = divmod(addr, PAGE)
        if inside + n <= PAGE and self.pages.get(page):
            return self.pages[page][inside : inside + n]
        if addr + n > 1 << 63:
            raise Fail(FAULT, addr, place)
        out = b""
        while n:
            page, inside = divmod(addr, PAGE)
            size = min(n, PAGE - inside)
            if page not in self.pages:
                self.pages[page] = READ(page * PAGE, PAGE)
            whole = self.pages[page]
            out += whole[inside : inside + size] if whole else self.part(addr, size, place)
            addr, n = addr + size, n - size
        return out

    def part(self, addr, n, place):
        """Of a page that cannot be read whole."""
        got = READ(addr, n)
        if got is None:
            got = b""
            while len(got) < n:
                byte = READ(addr + len(got), 1)
                if byte is None:
                    raise Fail(FAULT, addr + len(got), place)
                got += byte
        return got

    def load(self, addr, form, place):
        return form.unpack(self.bytes(addr & MASK, form.size, place))[0]

    def string(self, addr, most, place):
        out = b""
        while True:
            n = min(PAGE - (addr + len(out)) % PAGE, most - len(out))
            if not n:
                try:
                    return Cut(out) if self.bytes(addr + len(out), 1, place) != b"\0" else out
                except Fail:
                    return out
            start, fault = addr + len(out), None
            try:
                more = self.bytes(start, n, place)
            except Fail as e:  # the string may end before
                more, fault = self.bytes(start, e.at - start, place), e
            end = more.find(b"\0")
            if end < 0 and fault:
                raise fault
            out += more[:end] if end >= 0 else more
            if end >= 0:
                return out

    def string_n(self, addr, n, most, place):
        if not 0 <= n <= most:
            raise Fail(LIMIT, 0, place)
        return self.bytes(addr, n, place)


M = Memory()
I8, U8, I16, U16, I32, U32, I64, U64, F32, F64 = (struct.Struct("<" + c) for c in "bBhHiIqQfd")


# --- text ---

def is_control(c):
    return (c < 0x20 or 0x7F <= c < 0xA0 or c in (0x61C, 0x200E, 0x200F) or 0x2028 <= c <= 0x202E
            or 0x2066 <= c <= 0x2069)


def clean(raw):
    """Bytes of the target as text: U+FFFD for controls and for what is no UTF-8."""
    out, i = [], 0
    while i < len(raw):
        b = raw[i]
        n = 1 if b < 0x80 else 2 if 0xC2 <= b < 0xE0 else 3 if 0xE0 <= b < 0xF0 else 4 if 0xF0 <= b < 0xF5 else 0
        try:
            c = raw[i : i + n].decode() if n else "\ufffd"
        except UnicodeDecodeError:
            c, n = "\ufffd", 1
        out.append("\ufffd" if len(c) != 1 or is_control(ord(c)) else c)
        i += n or 1
    return "".join(out)


def own(raw):
    """The program's own text, which may have lines and tabs."""
    return "\n".join("\t".join(clean(t) for t in line.split(b"\t")) for line in raw.split(b"\n"))


def pad(text, width, left):
    return text + " " * (width - len(text)) if left else " " * (width - len(text)) + text


OUTPUT = []


def put(text):
    OUTPUT.append(text)
    if len(OUTPUT) > 1000:
        flush()


def flush():
    data = "".join(OUTPUT).encode()
    OUTPUT.clear()
    while data:
        data = data[os.write(OUT, data) :]


def number(spec, flags, width, precision, conversion, size, value):
    if conversion in "fFeEgG":
        text = ("%" + flags + (".%d" % precision if precision >= 0 else "") + conversion) % abs(value)
        negative = struct.pack("<d", value)[7] >= 128
    else:
        value &= (1 << 8 * size) - 1
        value = signed(value, 8 * size) if conversion == "d" else value
        negative = value < 0
        text = {"d": "%d", "u": "%d", "x": "%x", "X": "%X", "o": "%o"}[conversion] % abs(value)
        if not value and not precision:
            text = ""
        text = text.rjust(precision, "0") if precision > 0 else text
        if "#" in flags and conversion == "o" and not text.startswith("0"):
            text = "0" + text
        if "#" in flags and conversion in "xX" and value:
            text = "0" + conversion + text
    sign = "-" if negative else "" if conversion in "uxXo" else "+" if "+" in flags else " " if " " in flags else ""
    text = text.lstrip("+ ") if conversion in "fFeEgG" else text
    finite = conversion not in "fFeEgG" or abs(value) < float("inf")
    zeros = width - len(sign) - len(text)
    if "0" in flags and "-" not in flags and zeros > 0 and finite and (precision < 0 or conversion in "fFeEgG"):
        prefix = text[:2] if "#" in flags and conversion in "xX" and value else ""
        return sign + prefix + "0" * zeros + text[len(prefix) :]
    return pad(sign + text, width, "-" in flags)


def print_format(pieces, values):
    values = iter(values)
    for kind, flags, width, precision, conversion, size in pieces:
        if kind == "text":
            put(flags)
            continue
        width = star(values) if width is None else width
        precision = star(values) if precision is None else precision
        if width < 0:
            flags, width = flags + "-", -width
        value, status, at = next(values)
        if status:
            put(pad("<%s%s>" % (CAUSES[status], " 0x%x" % at if at else ""), width, "-" in flags))
        elif kind == "string":
            put(pad(clean(value[:precision] if precision >= 0 else value), width, "-" in flags))
        elif kind == "char":
            put(pad(clean(bytes([value & 255])), width, "-" in flags))
        elif kind == "pointer":
            put(pad("0x%x" % value if value else "(nil)", width, "-" in flags))
        else:
            put(number(None, flags, width, precision, conversion, size, value))


def star(values):
    value, status, _ = next(values)
    return 0 if status else max(-4096, min(4096, value))


# --- maps ---

class Map:
    def __init__(self, name, is_agg, value, keys, most, low=0, step=0, steps=0):
        self.name, self.is_agg, self.value, self.keys, self.most = name, is_agg, value, keys, most
        self.low, self.step, self.steps = low, step, steps
        self.of, self.lost = {}, 0

    def get(self, key):
        return self.of.get(key, b"" if self.value == "str" else 0)

    def room(self, key):
        if key in self.of or len(self.of) < self.most:
            return True
        self.lost += 1
        return False

    def set(self, key, value):
        if self.room(key):
            self.of[key] = value

    def add(self, key, by):
        total = self.of.get(key, 0) + by
        total = signed(total, 64) if self.value == "i64" else total & MASK
        if self.room(key):
            self.of[key] = total
            return total
        return by

    def record(self, key, value):
        if not self.room(key):
            return
        a = self.of.setdefault(key, [0, 0, value, value, [0] * (self.steps + 2 if self.steps else 66)])
        a[0], a[1], a[2], a[3] = a[0] + 1, signed(a[1] + value, 64), min(a[2], value), max(a[3], value)
        a[4][self.bucket(value)] += 1

    def bucket(self, value):
        if self.steps:
            return 0 if value < self.low else 1 + min((value - self.low) // self.step, self.steps)
        return 0 if value < 0 else value.bit_length() + 1

    def span(self, i):
        low = self.low + (i - 1) * self.step if self.steps else 1 << (i - 2) if i > 1 else 0
        if not i:
            return "(..., %d)" % self.low
        if self.steps:
            return "[%d, ...)" % low if i > self.steps else "[%d, %d)" % (low, low + self.step)
        return "[%d]" % (i - 1) if i < 3 else "[%d, %d)" % (low, 2 * low)

    def read(self, key, what):
        a = self.of.get(key)
        return 0 if a is None else a[what] if what < 4 else div(a[1], a[0], 0)

    def sorted(self, top=None):
        """The entries as _foreach has them: by key, or the largest ones."""
        of = [(k, v[1] if self.is_agg else v) for k, v in self.of.items()]
        of.sort(key=lambda e: e[0])
        if top is not None:
            of.sort(key=lambda e: e[1], reverse=True)
            of = of[: max(top, 0)]
        return of

    def key(self, key):
        return ", ".join(clean(k) if isinstance(k, bytes) else str(k) for k in key)

    def table(self):
        rows = [(self.key(k), k, v) for k, v in self.sorted(1 << 32 if self.is_agg else None)]
        width = max([len(self.name)] + [len(r[0]) for r in rows])
        heads = "".join(" %12s" % h for h in ("count", "sum", "min", "max", "avg"))
        put(self.name.ljust(width) + heads + "\n" if self.is_agg else self.name + "\n")
        for text, key, value in rows:
            if self.is_agg:
                shown = "".join(" %12d" % self.read(key, what) for what in range(5))
            else:
                shown = "  " + (clean(value) if isinstance(value, bytes) else "%g" % value if self.value == "f64"
                                else str(value))
            put(text.ljust(width) + shown + "\n")

    def histogram(self):
        for key, _ in self.sorted(1 << 32):
            put((self.name + "[%s]" % self.key(key) if self.keys else self.name) + "\n")
            buckets = self.of[key][4]
            filled = [i for i in range(len(buckets)) if buckets[i]]
            for i in range(filled[0], filled[-1] + 1):
                bar = "@" * (buckets[i] * 40 // max(buckets))
                put("%-24s %10d |%-40s|\n" % (self.span(i), buckets[i], bar))


# --- regular expressions: all ways side by side ---

def match(regex, text):
    """The captures, or None."""
    insns, sets = regex
    found, now = None, []
    word = lambda i: 0 <= i < len(text) and (chr(text[i]).isalnum() and text[i] < 128 or text[i] == 95)

    def add(threads, seen, pc, at, saved):
        stack = [(pc, saved)]
        while stack:
            pc, saved = stack.pop()
            if pc in seen:
                continue
            seen.add(pc)
            op, x, y = insns[pc]
            if op == 1:
                stack += [(y, saved), (x, saved)]
            elif op == 2:
                stack.append((x, saved))
            elif op == 3:
                stack.append((pc + 1, {**saved, x: at}))
            elif op == 4:
                edge = word(at - 1) != word(at)
                last = at == len(text)
                if [not at, last, last or at + 1 == len(text) and text[at] == 10, edge, not edge][x]:
                    stack.append((pc + 1, saved))
            else:
                threads.append((pc, saved))

    seen = set()
    for at in range(len(text) + 1):
        if found is None:
            add(now, seen, 0, at, {})
        if found is not None and not now:
            break
        seen, following = set(), []
        for pc, saved in now:
            op, x, _ = insns[pc]
            if op == 5:
                found = saved
                break
            if at < len(text) and sets[x] >> text[at] & 1:
                add(following, seen, pc + 1, at + 1, saved)
        now = following
    return found


# --- a run ---

class State:
    steps, depth, last = 0, 0, Fail(0, 0, 0)


T = State()
WARNINGS = []


def step(place):
    T.steps += 1
    if T.steps > STEPS:
        raise Fail(LIMIT, 0, place)


def call(f, place, *args):
    step(place)
    if T.depth >= 256:
        raise Fail(LIMIT, 0, place)
    T.depth += 1
    try:
        return f(*args)
    finally:
        T.depth -= 1


def element(array, i, place):
    if not 0 <= i < len(array):
        raise Fail(LIMIT, 0, place)
    return i


def join(a, b, place):
    if len(a) + len(b) > STRING_MOST:
        raise Fail(LIMIT, 0, place)
    return a + b


def say(place, kind, text):
    flush()
    sys.stderr.write("%s:%d:%d: %s: %s\n" % (PLACES[place] + (kind, clean(text))))


def bias_of(path, build_id, first):
    """Where a module lies, if it is the build that this was made for."""
    for name, start in MODULES_HERE():
        if os.path.basename(name) != os.path.basename(path):
            continue
        if build_id and build_id not in note_of(start):
            raise SystemExit("yrt: %s is of another build here: this script was made for build-id %s"
                             % (path, build_id.hex()))
        return start - first & MASK
    raise SystemExit("yrt: the target has no file %s" % path)


def note_of(start):
    """What lies in the notes of the ELF file that is mapped from start on."""
    try:
        head = M.bytes(start, 64, 0)
        at, size, n = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
        notes, first = [], None
        for i in range(n):
            p = M.bytes(start + at + i * size, 56, 0)
            kind, offset, vaddr, filesz = *struct.unpack_from("<I", p), *struct.unpack_from("<QQ8xQ", p, 8)
            if kind == 1 and first is None:
                first = vaddr - offset
            if kind == 4:
                notes.append((vaddr, filesz))
        return b"".join(M.bytes(start + v - first, min(n, 4096), 0) for v, n in notes)
    except (Fail, struct.error):
        return b""


def run():
    failed = {}
    try:
        for handler in HANDLERS:
            T.steps = T.depth = 0
            try:
                handler()
            except Fail as e:
                failed.setdefault((e.place, e.status), [e.at, 0])[1] += 1
    except Exit:
        for handler in END_HANDLERS:
            T.steps = T.depth = 0
            try:
                handler()
            except (Fail, Exit):
                pass
    except Stop:
        pass
    flush()
    for (place, status), (at, _) in failed.items():
        where = " at 0x%x" % at if at else ""
        sys.stderr.write("%s:%d:%d: error: %s%s; it ended the handler\n" % (PLACES[place] + (CAUSES[status], where)))
