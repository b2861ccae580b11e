# SPDX-License-Identifier: Apache-2.0
"""
yrt layout: C sources are made of each file of the library, compiled with debug information, and must give that file
again.
"""

import glob
import os
import subprocess
import tempfile

import yrt

LIBRARY = os.path.join(yrt.SOURCE, "runtimes", "luajit", "layouts")
KEYS = ("#", "runtime ", "build-id ", "version ")


def run(*args, **env):
    return subprocess.run([yrt.YRT, "layout", *args], text=True, capture_output=True, timeout=300,
                          env={**os.environ, "LC_ALL": "C", **env})


def body(text):
    return [line for line in text.splitlines() if not line.startswith(KEYS)]


def put(tree, path, at, size):
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = (at, size)


def start(node):
    return node[0] if isinstance(node, tuple) else min(map(start, node.values()))


def struct(node, base, size, lines):
    """
    Members at their offsets; what is nested begins where its first member does, its path's offset is that of the whole.
    """
    at = base
    for name, member in sorted(node.items(), key=lambda item: start(item[1])):
        gap = start(member) - at
        assert gap >= 0, (name, member, at)
        if gap:
            lines.append(f"char gap_{len(lines)}[{gap}];")
        at = start(member)
        if isinstance(member, tuple):
            lines.append(f"char {name}[{member[1]}];")
            at += member[1]
        else:
            lines.append("struct {")
            at = struct(member, at, None, lines)
            lines.append(f"}} {name};")
    if size is not None and size > at:
        lines.append(f"char rest[{size - at}];")
    return at


def source(lines):
    """C with the types of a layout. Half of them bear a tag, the others are typedefs."""
    types, sizes, text = {}, {}, []
    for line in lines:
        words = line.split()
        if words[0] == "sizeof":
            types.setdefault(words[1], {})
            sizes[words[1]] = int(words[2])
        elif words[0] == "enum":
            values = "".join(f"{words[2]}{name} = {i}, " for i, name in enumerate(words[3:]) if name != "-")
            text.append(f"typedef enum {{ {values}{words[2]}_MAX }} {words[1]}; {words[1]} variable_{len(text)};")
        elif words[1] != "-":
            name, *path = words[0].split(".")
            put(types.setdefault(name, {}), path, int(words[1]), int(words[2]))
    for i, (name, members) in enumerate(types.items()):
        inner = []
        struct(members, 0, sizes.get(name), inner)
        shape = " ".join(inner)
        text.append(f"struct {name} {{ {shape} }}; struct {name} variable_{name};" if i % 2 else
                    f"typedef struct {{ {shape} }} {name}; {name} variable_{name};")
    return "\n".join([*text, "int main(void) { return 0; }\n"])


def compile_source(folder, text, *flags):
    path, output = os.path.join(folder, "a.c"), os.path.join(folder, "a")
    with open(path, "w") as f:
        f.write(text)
    subprocess.run(["cc", "-g", "-Wl,--build-id", *flags, "-o", output, path], check=True)
    return output


def files():
    found = sorted(glob.glob(os.path.join(LIBRARY, "*.layout")))
    assert len(found) >= 20, found
    return found


def test_round_trip():
    with tempfile.TemporaryDirectory() as folder:
        for path in files():
            with open(path) as f:
                wanted = body(f.read())
            result = run(compile_source(folder, source(wanted)))
            assert result.returncode == yrt.OK, (path, result.stderr)
            assert body(result.stdout) == wanted, [
                pair for pair in zip(body(result.stdout), wanted) if pair[0] != pair[1]
            ]


def test_head():
    """How it was made, whose it is, and the build-id of the file."""
    with tempfile.TemporaryDirectory() as folder, open(files()[0]) as f:
        output = compile_source(folder, source(body(f.read())))
        notes = subprocess.run(["readelf", "-n", output], text=True, capture_output=True, check=True).stdout
        build_id = notes.split("Build ID:")[1].split()[0]
        lines = run("--runtime", "luajit", output).stdout.splitlines()
        assert lines[0].startswith("# made by yrt ") and lines[0].endswith(" from the DWARF of a"), lines[0]
        assert lines[1:3] == ["runtime luajit", f"build-id {build_id}"], lines[:3]


def test_incomplete():
    """What is missing is named, with its reason; nothing is printed."""
    with tempfile.TemporaryDirectory() as folder, open(files()[0]) as f:
        lines = [
            line for line in body(f.read()) if not line.startswith(("lua_State.base", "sizeof SnapShot", "SnapShot"))
        ]
        result = run(compile_source(folder, source(lines)))
        assert result.returncode == yrt.UNSUPPORTED and not result.stdout, result
        assert (
            "lua_State.base (the type has no such member)" in result.stderr and "sizeof SnapShot" in result.stderr
        ), result
        assert "-g" in result.stderr, result.stderr


def test_stripped():
    with tempfile.TemporaryDirectory() as folder:
        result = run(compile_source(folder, "int main(void) { return 0; }\n", "-s"))
        assert result.returncode == yrt.UNSUPPORTED and "lacks parts of the layout of luajit" in result.stderr, result


def test_usage():
    result = run()
    assert result.returncode == yrt.USAGE and "one FILE is needed" in result.stderr, result
    result = run("--runtime", "cobol", yrt.YRT)
    assert result.returncode == yrt.USAGE and 'no runtime "cobol" has layouts' in result.stderr, result
    result = run("--help")
    assert result.returncode == yrt.OK and "YRT_LAYOUTS" in result.stdout and "luajit" in result.stdout, result
    result = run("/nonexistent")
    assert result.returncode != yrt.OK and "/nonexistent" in result.stderr, result
    result = run(__file__)
    assert result.returncode == yrt.INPUT and "not an ELF file" in result.stderr, result


yrt.main(globals())
