# SPDX-License-Identifier: Apache-2.0
"""python-heap and python-refs, against a walk with the gc module in the same process, which stands still meanwhile."""

import gzip
import os
import re
import subprocess
import tempfile

import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "python", "keeps.py")
OWN = ("Point", "Record", "Node", "Named", "Pair", "Cache")
# Nothing refers to these that the gc module does not show, nor has a size that it does not say.
EXACT = ("collections.deque", "cell", "property", "threading.Lock")
N = 1000
SHARED = "shared by 2 paths"  # by whom else follows, if it is much
FAILED = 30  # Points that only a frame of an exception's traceback keeps alive
LOCAL = 70  # Points that only a local variable of a waiting thread keeps alive, where the gc module sees none


def keeps(n=N):
    """It stands still: what it printed is written, and what reading its input needs is there."""
    f = yrt.Fixture(PYTHON, SCRIPT, n, seconds=None, wait=False)
    yrt.until(lambda: "pipe_read" in yrt.read(f"/proc/{f.pid}/wchan"), "it reads its input")
    return f


def run(command, *args, code=yrt.OK):
    return yrt.run(command, *args, output=False, stats=False).expect(code)


def read(f):
    """None if this Python is refused by name."""
    known = [3, 8] <= f.start["version"] <= [3, 15]
    result = run("python-heap", "-p", f.pid, code=yrt.OK if known else yrt.UNSUPPORTED)
    if not known:
        assert re.search(r"the heap of Python 3\.\d+ is not read", result.stderr), result.stderr
        return None
    return result


def types(text):
    ret = {}
    for line in text.splitlines()[1:]:
        size, _, count, name = line.split(None, 3)
        name = re.sub(r"^(frame|generator|coroutine|async_generator) of .*", r"\1", name)
        before = ret.get(name, (0, 0))
        ret[name] = before[0] + int(count), before[1] + int(size)
    return ret


def test_types():
    """Counts and bytes of the program's own types are those that the program counts; of no type is one missed."""
    with keeps() as f:
        result = read(f)
        if not result:
            return
        seen, truth = types(result.stdout), f.start["types"]
        for name in OWN:
            count, size, more = truth["__main__." + name]
            each = size // count
            count += LOCAL if name == "Point" else 0
            assert seen["__main__." + name] == (count, count * each + more), (name, count, each, more)
        for name in EXACT:
            least = truth[name][0] if name in truth else 0
            assert not least or least <= seen[name][0] <= least + 4, (name, seen[name], least)
        few = {name: t for name, t in truth.items() if seen.get(name, (0, 0))[0] < t[0]}
        assert not few, str(few)[:500]
        assert " references; 0 torn;" in result.stderr, result.stderr
        yield f"{len(truth)} types"


def tree(pid, *args):
    """{path: (bytes of its own)} of folded stacks"""
    text = run("python-refs", "-p", pid, "-f", "folded", *args).stdout
    return {tuple(line.rpartition(" ")[0].split(";")): int(line.rpartition(" ")[2]) for line in text.splitlines()}


def below(paths, *begin):
    return {p: n for p, n in paths.items() if p[: len(begin)] == begin}


def test_refs():
    """Each object is drawn where it is kept alive, by the names of fields, and counts once."""
    with keeps() as f:
        if not read(f):
            return
        paths, truth = tree(f.pid), f.start["types"]
        total = sum(n for n in paths.values())
        assert total == types(run("python-heap", "-p", f.pid).stdout)["(all)"][1]
        cache = ("__main__", "cache: __main__.Cache")
        # of ten records one is in the deque, too: shared below the cache, which alone keeps both
        records = below(paths, *cache, ".entries: dict", "{}: __main__.Record")
        shared = {p: n for p, n in below(paths, *cache).items() if "".join(p[2:3]).startswith(SHARED)}
        points = truth["__main__.Point"][1] // truth["__main__.Point"][0]
        leaf = (".points: list", "[]: __main__.Point")
        assert records[(*cache, ".entries: dict", "{}: __main__.Record", *leaf)] == N * 9 // 10 * 3 * points, records
        assert sum(n for p, n in shared.items() if p[-2:] == leaf) == N // 10 * 3 * points, shared
        chain = below(paths, "__main__", "chain: __main__.Node")
        assert sum(chain.values()) == f.start["chain_bytes"], (chain, f.start["chain_bytes"])
        held = [p for p in paths if p[-3:] == ("mine: list", "[]: __main__.Point") or p[-1] == "[]: __main__.Point"]
        waiting = [p for p in held if p[0] == "__main__" and p[1].startswith("waiting: generator of held (keeps.py:")]
        assert any(p[2] == "mine: list" for p in waiting), held
        kept = below(paths, "__main__", "failed: ValueError")
        rows = sum(n for p, n in kept.items() if p[-2:] == ("rows: list", "[]: __main__.Point"))
        assert rows == FAILED * points, kept
        local = [p for p in held if p[:2] == ("(threads)", "listener") and p[3] == "points: list"]
        assert local and local[0][2].startswith("listen (keeps.py:"), held
        assert any(p[:3] == (*cache, ".names: __main__.Named") and p[-1] == "first: bytearray" for p in paths), paths


def test_keeper():
    """A collection that keeps most of the memory is named first; where none does, none is."""
    for n in 10, 20000:
        with keeps(n) as f:
            if not read(f):
                return
            many = n > 10 and f.start["version"] < [3, 14]  # smaller objects: there the records have 49 %
            told = re.findall(r"^yrt: (.*) keeps .*", run("python-refs", "-p", f.pid).stderr, re.M)
            page = run("python-refs", "-p", f.pid, "-f", "html").stdout
            assert told == (["__main__ > cache: __main__.Cache > .entries: dict"] if many else []), told
            assert (f"% of all, in {n * 9 // 10} __main__.Record: " in page) == many


def test_arrays():
    """Arrays count their data, ordered dicts their nodes, as sys.getsizeof() says; they lead to the objects in them."""
    script = os.path.join(yrt.SOURCE, "fixtures", "python", "arrays.py")
    if PYTHON != "/usr/bin/python3":
        return  # the others have no NumPy
    with yrt.Fixture(PYTHON, script, seconds=None) as f:
        yrt.in_call(f.pid, yrt.READ)
        paths = tree(f.pid)
        seen = {p[2][1:].partition(":")[0]: n for p, n in paths.items() if p[:2] == ("__main__", "kept: __main__.Kept")
                and len(p) == 3
                and p[2].endswith((": numpy.ndarray", ": array.array", ": collections.OrderedDict", ".Element"))}
        assert seen == f.start["sizes"]
        texts = paths["__main__", "kept: __main__.Kept", ".objects: numpy.ndarray", "[]: str"]
        assert texts == f.start["texts"]
        child = ("__main__", "kept: __main__.Kept", ".tree: xml.etree.ElementTree.Element",
                 "[]: xml.etree.ElementTree.Element")
        assert paths[child] == f.start["children"], paths.get(child)
        assert paths[(*child, ".attrib: dict")] == f.start["attributes"], paths
        yield f"{len(seen)} arrays"


def test_ways():
    """--to: by type and by address; what there is none of is an error. --roots: a row of each root."""
    with keeps() as f:
        if not read(f):
            return
        paths = tree(f.pid, "--to", "Record")
        cache = ("__main__", "cache: __main__.Cache")
        assert set(paths) == {(*cache, ".entries: dict", "{}: __main__.Record"),
                              (*cache, ".recent: collections.deque", "[]: __main__.Record")}, paths
        paths = tree(f.pid, "--to", hex(f.start["cache"]))
        assert list(paths) == [("__main__", "cache: __main__.Cache")], paths
        lead = f"  - it runs Python: `yrt python-refs -p {f.pid}` shows its objects and who keeps them\n"
        assert lead in run("heap", "-p", f.pid).stdout
        yrt.clear(run("python-refs", "-p", f.pid, "--to", "Nothing", code=yrt.INPUT), yrt.INPUT, "no object of type")
        roots = types(run("python-refs", "-p", f.pid, "--roots").stdout)
        assert roots["__main__"][1] == sum(n for p, n in tree(f.pid).items() if p[0] == "__main__"), roots
        assert "(threads) > listener" in roots, roots


def test_largest():
    """The largest objects by themselves, with the way to each; in a picture their own bytes only."""
    with keeps() as f:
        if not read(f):
            return
        text = run("python-refs", "-p", f.pid, "--largest", 40).stdout
        rows = [line.split(None, 3) for line in text.splitlines()[1:]]
        sizes = [int(row[0]) for row in rows]
        assert len(rows) == 40 and sizes == sorted(sizes, reverse=True), sizes
        ways = {row[3]: row for row in rows}
        for way, size in f.start["large"].items():
            assert int(ways[way][0]) == size <= int(ways[way][1]), (way, size, ways.get(way))
        paths = tree(f.pid, "--largest", 40)
        assert sum(paths.values()) == sum(sizes)
        assert ("__main__", "cache: __main__.Cache", ".entries: dict") in paths, paths


def test_retained():
    """What each list of a random graph alone keeps alive, against what is lost without it."""
    script = os.path.join(yrt.SOURCE, "fixtures", "python", "retained.py")
    with yrt.Fixture(PYTHON, script, seconds=None, wait=False) as f:
        yrt.in_call(f.pid, yrt.READ)
        if not read(f):
            return
        truth = {int(at): size for at, size in f.start["retained"].items()}
        text = run("python-refs", "-p", f.pid, "--largest", len(truth) + 100).stdout
        rows = [line.split(None, 3) for line in text.splitlines()[1:]]
        kept = {int(at, 16): int(size) for _, size, at, _ in rows}
        assert {at: kept.get(at) for at in truth} == truth
        yield f"{len(truth)} lists"


def test_unreachable():
    """A cycle that nothing reaches, and an object that is counted once too often, each with what it keeps."""
    with keeps() as f:
        if not read(f):
            return
        if f.start["free_threaded"]:
            assert "has no lists" in run("python-refs", "-p", f.pid, "--unreachable", code=yrt.UNSUPPORTED).stderr
            return
        paths = tree(f.pid, "--unreachable")
        lost = below(paths, "(cycles that only refer to themselves)")
        leaked = below(paths, "(counted as used, though nothing that is known refers to it)", "__main__.Leaked")
        # up to 3.10 the dict of an instance may come first
        assert any("__main__.Lost" in p[-1] for p in lost), paths
        assert 3000 < sum(n for p, n in lost.items() if p[-1].endswith("text: bytearray")) < 3100, paths
        assert 4000 < sum(n for p, n in leaked.items() if p[-1] == ".text: bytearray") < 4100, paths
        assert not [p for p in paths if "__main__.Record" in p[-1]], paths
        yrt.clear(run("python-refs", "-p", f.pid, "--unreachable", "--roots", code=yrt.USAGE), yrt.USAGE, "excludes")


def test_pause_and_core():
    """The same of a process that is stopped for it, which runs on, and of a core."""
    with keeps() as f, tempfile.TemporaryDirectory() as d:
        alive = read(f)
        if not alive:
            return
        paused = run("python-heap", "-p", f.pid, "--pause")
        assert paused.stdout == alive.stdout
        assert "is stopped while it is read" in paused.stderr, paused.stderr
        core = os.path.join(d, "core")
        made = subprocess.run(["gcore", "-o", core, str(f.pid)], check=True, capture_output=True, text=True)
        if "Memory read failed for corefile section, 1048576 bytes" in made.stderr:
            yield "this gdb leaves out stacks with the guard pages of this glibc: no core"
        else:
            assert run("python-heap", "--core", f"{core}.{f.pid}").stdout == alive.stdout
        f.release()
        f.process.wait(300)


def test_memory():
    """What has no room in --memory is summed up by the ways to it: nothing is missing, and it is said."""
    with keeps(60000) as f:
        if not read(f):
            return
        all_of = run("python-heap", "-p", f.pid)
        small = run("python-heap", "-p", f.pid, "--memory", 16)
        assert small.stdout == all_of.stdout and "INCOMPLETE" not in small.stderr, small.stderr
        refs = run("python-refs", "-p", f.pid, "--memory", 16, "-f", "folded")
        assert "by the first way to each" in refs.stderr and "too many objects for --memory 16" in refs.stderr
        assert sum(int(line.rpartition(" ")[2]) for line in refs.stdout.splitlines()) > 0
        assert "by which they were found first" in run("python-refs", "-p", f.pid, "--memory", 16, "--roots").stdout


def test_pprof():
    """Memory in use, as go tool pprof and profile stores call it."""
    with keeps() as f, tempfile.TemporaryDirectory() as d:
        if read(f):
            for command in "python-heap", "python-refs":
                path = os.path.join(d, command + ".pb.gz")
                run(command, "-p", f.pid, "-o", path)
                with gzip.open(path) as file:
                    text = file.read()
                assert b"inuse_space" in text and b"inuse_objects" in text and b"alloc_space" not in text, command


def folded(path):
    text = run("render", path, "-f", "folded", "-o", "-").stdout
    return {tuple(line.rpartition(" ")[0].split(";")): int(line.rpartition(" ")[2]) for line in text.splitlines()}


def test_diff():
    """What is recorded keeps its roots and shared boxes in each format, and its bytes; a difference is by path."""
    with keeps() as f, keeps(2 * N) as g, tempfile.TemporaryDirectory() as d:
        if not read(f):
            return
        for extension in "yrt", "pb.gz", "folded":
            one, two = os.path.join(d, "one." + extension), os.path.join(d, "two." + extension)
            run("python-refs", "-p", f.pid, "-o", one)
            run("python-refs", "-p", g.pid, "-o", two)
            cache = ("__main__", "cache: __main__.Cache")
            entry = (*cache, ".entries: dict", "{}: __main__.Record", ".points: list", "[]: __main__.Point")
            have = folded(one)
            assert any(p[:2] == cache and SHARED in p[2] for p in have if p[2:]), (extension, list(have)[:20])
            point = have[entry] // (N * 9 // 10 * 3)
            result = run("diff", "--raw", one, two, "-f", "folded", "-o", "-")
            row = next(line for line in result.stdout.splitlines() if line.startswith(";".join(entry) + " "))
            assert row.split(" ")[-2:] == [str(N * 9 // 10 * 3 * point), str(2 * N * 9 // 10 * 3 * point)], row


def test_refs_growth():
    """python-refs --watch: each path with its bytes before and after; in a program that stands still they are equal."""
    with keeps() as f:
        if not read(f):
            return
        text = run("python-refs", "-p", f.pid, "--watch", 0.1, "-f", "folded").stdout
        rows = [line.rsplit(" ", 2) for line in text.splitlines()]
        assert len(rows) > 100 and all(before == after for _, before, after in rows), rows[:5]
        text = run("python-refs", "-p", f.pid, "--watch", 0.1, "-f", "txt").stdout
        assert re.search(r"^compared with before: \d+ bytes$", text, re.M), text[:500]
        yrt.clear(run("python-refs", "-p", f.pid, "--watch", 1, "--roots", code=yrt.USAGE), yrt.USAGE, "--watch")


def test_growth():
    """--watch shows what has grown, and only that: here nothing."""
    with keeps() as f:
        if read(f):
            assert len(run("python-heap", "-p", f.pid, "--watch", 0.1).stdout.splitlines()) == 1


yrt.main(globals())
