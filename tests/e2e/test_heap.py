# SPDX-License-Identifier: Apache-2.0
"""
heap: blocks of glibc's malloc by arena, state and size, against what the program counted itself and what malloc_info()
says of it; the same of a core; a corrupt block; growth; a program without threads, a static one.
"""

import collections
import os
import re
import subprocess
import tempfile
import xml.etree.ElementTree

import heap_rows
import java
import yrt

BLOCKS = os.environ.get("YRT_BLOCKS", "blocks")  # fixtures/native/blocks.c, perhaps linked to another glibc
FREE = ("free in fast bins", "free, unsorted", "free in small bins", "free in large bins", "top")


def heap(*args):
    rows, text, notes = heap_rows.heap(*args)
    assert "note" not in notes, notes
    return rows, text


def malloc_of(rows):
    names = {path[0] for path in rows if path and path[0].startswith("malloc of glibc")}
    assert len(names) == 1, rows.keys()
    return names.pop()


def total(rows, *names):
    """Of all arenas."""
    return sum(row.size for path, row in rows.items() if path[2:] == names)


def by_class(rows, state):
    """{largest size of a class: blocks} of all arenas."""
    ret = collections.Counter()
    for path, row in rows.items():
        if len(path) == 4 and path[2] == state:
            ret[heap_rows.size(path[3].removeprefix("up to "))] += row.blocks
    return ret


def own_classes(live):
    """The same of what the program counted; bounds of size_class.h."""
    ret = collections.Counter()
    for size, n in live.items():
        bound = int(size)
        if bound > 1024:
            step = 1 << ((bound - 1).bit_length() - 3)
            bound = -(-bound // step) * step
        ret[bound] += n
    return ret


def info_of(text):
    """malloc_info(): (bytes of arenas, free in them); a size in it has a bit more for each block but the top."""
    root = xml.etree.ElementTree.fromstring(text)
    system = free = 0
    for arena in root.findall("heap"):
        totals = {t.get("type"): t for t in arena.findall("total")}
        system += int(arena.find("system[@type='current']").get("size"))
        for t in totals.values():
            free += int(t.get("size"))
        free -= int(totals["rest"].get("count")) - 1
    mapped = root.find("total[@type='mmap']")
    return system, free, (int(mapped.get("count")), int(mapped.get("size")))


def compare(rows, truth):
    malloc = malloc_of(rows)
    system, free, mapped = info_of(truth["info"])
    in_use, cached = by_class(rows, "in use"), by_class(rows, "free in thread caches")
    for bound, blocks in own_classes(truth["live"]).items():
        assert in_use[bound] == blocks, (bound, in_use[bound], blocks, in_use)
    most = 16 if tuple(map(int, truth["version"].split("."))) >= (2, 43) else 7
    for size in (96, 112, 416, 528, 1008):  # what a cache of a thread takes; four threads
        assert cached[size] == 4 * most, (size, cached)
    assert sum(total(rows, state) for state in FREE) == free, rows
    arenas = sum(row.size for path, row in rows.items() if len(path) == 2 and "arena" in path[1])
    assert arenas == system, (arenas, system)
    own = rows[malloc, "blocks with a mapping of their own"]
    assert (own.blocks, own.size) == mapped == (3, own.size), (own, mapped)
    return f"glibc {truth['version']}: {sum(in_use.values())} blocks in use, {free} of {system} bytes free, as it says"


def consistent(rows):
    """Each row is the sum of what is below it."""
    below = {}
    for path, row in rows.items():
        if path:
            below.setdefault(path[:-1], []).append(row)
    for path, of in below.items():
        for field in ("resident", "swapped", "size"):
            assert sum(getattr(r, field) for r in of) == getattr(rows[path], field), (path, field)


def test_blocks():
    with yrt.Fixture(BLOCKS, wait=False) as f:
        rows, _ = heap("-p", f.pid)
        consistent(rows)
        yield compare(rows, f.start)


def test_static():
    """A program that has the allocator in itself."""
    with yrt.Fixture("blocks_static", wait=False) as f:
        rows, _ = heap("-p", f.pid)
        consistent(rows)
        yield compare(rows, f.start)


def test_memory():
    """All memory that the kernel counts is in the tree, however it is divided."""
    with yrt.Fixture(BLOCKS, wait=False) as f:
        rows, _ = heap("-p", f.pid)
        rss = int(re.search(r"^Rss: +(\d+) kB", yrt.read(f"/proc/{f.pid}/smaps_rollup"), re.M)[1]) << 10
        assert rows[()].resident == rss, (rows[()], rss)
        assert ("stacks", "threads") in rows, rows.keys()
        assert any(path[0] == "files" and path[-1].startswith("libc") for path in rows if path), rows.keys()


def test_core():
    """A core has the same blocks as the process that it was taken of."""
    with yrt.Fixture(BLOCKS, wait=False) as f, tempfile.TemporaryDirectory(prefix="yrt-heap-") as directory:
        live, _ = heap("-p", f.pid)
        core = os.path.join(directory, "core")
        subprocess.run(["gcore", "-o", core, str(f.pid)], check=True, stdin=subprocess.DEVNULL, capture_output=True)
        rows, _ = heap("--core", f"{core}.{f.pid}")
        yield compare(rows, f.start)
        live, rows = ({path: (r.size, r.blocks) for path, r in of.items() if path and path[0].startswith("malloc")}
                      for of in (live, rows))
        assert live == rows, live.items() ^ rows.items()


def test_corrupt():
    """A header that was overwritten is reported first, with the last block before it; other arenas are read."""
    with yrt.Fixture(BLOCKS, "corrupt", wait=False) as f:
        rows, text = heap("-p", f.pid)
        page = yrt.Run("heap", "-p", f.pid, "-f", "html", output=False, stats=False).result().expect().stdout
    first = text.splitlines()[0]
    assert f"\"why\":\"CORRUPT: corrupt chunk at {f.start['corrupt']:#x}" in page
    assert first.startswith(f"CORRUPT: corrupt chunk at {f.start['corrupt']:#x} (arena 0"), first
    assert f"the last good chunk before it: {f.start['before']:#x}" in first, first
    assert "size 0x4141414141414141 \"AAAAAAAA\"" in first, first
    assert f"a block of {f.start['corrupt'] - f.start['before'] - 8} bytes at {f.start['before'] + 16:#x}" in first
    assert rows[malloc_of(rows), "main arena", "not read: corrupt or unreadable"].size
    assert sum(1 for path in rows if len(path) == 3 and path[2] == "in use") == 4, rows.keys()


def test_formats():
    """A picture has what the table has: what is in memory, or (--size) all."""
    with yrt.Fixture(BLOCKS, wait=False) as f:
        rows, _ = heap("-p", f.pid)
        for option, field in ((), "resident"), (("--size",), "size"):
            folded = yrt.Run("heap", "-p", f.pid, *option, "-f", "folded", output=False, stats=False).result().expect()
            stacks = {tuple(path): n for path, n in yrt.parse_folded(folded.stdout)}
            leaves = {path: getattr(row, field) for path, row in rows.items() if row.blocks and len(path) > 3}
            assert leaves, rows
            for path, n in leaves.items():
                assert stacks.get(path, 0) == n, (path, n, stacks.get(path))


def test_fragments():
    """Free memory that small blocks hold, arena by arena: the first line says so exactly, and the advice what helps."""
    with yrt.Fixture("fragments", wait=False) as f:
        done = yrt.Run("heap", "-p", f.pid, output=False, stats=False).result().expect()
        rows, _ = heap("-p", f.pid)
    told = f.start
    free = f"{told['freed'] / 1e6:.1f} MB"
    first, *advice = done.stdout.split("\n\n")[0].splitlines()
    assert re.fullmatch(rf"fragments \(pid {f.pid}\): [0-9.]+ MB RSS: malloc has [0-9.]+ kB in use, {free} free in "
                        rf"{told['arenas'] + 1} arenas \(0 B could go back, {free} lie in pages held by {told['live']} "
                        r"live blocks\)", first), first
    assert advice == [
        f"  - {free} are free in pages that {told['live']} live blocks share: no call gives them back. Blocks that live "
        "long lie among short-lived ones",
        f"  - {told['arenas'] + 1} arenas hold {free} of free memory, each for itself: MALLOC_ARENA_MAX=2 in the "
        "environment, or mallopt(M_ARENA_MAX, 2), lets threads share them"], advice
    threads = [path[:2] for path in rows if len(path) == 2 and re.fullmatch(r"arena \d+", path[1])]
    assert len(threads) == told["arenas"], threads
    for arena in threads:
        assert rows[(*arena, "free, unsorted")].size == told["freed"] / told["arenas"], (arena, rows)
        assert rows[(*arena, "in use", "48 B")].blocks == told["live"] / told["arenas"], (arena, rows)


def test_watch():
    """What increased between two moments, by size."""
    with yrt.Fixture(BLOCKS, wait=False) as f:
        run = yrt.Run("heap", "-p", f.pid, "--watch", 300, "--bytes", "-q", output=False, stats=False)
        yrt.until(lambda: "clock_nanosleep" in yrt.read(f"/proc/{run.process.pid}/wchan") or
                  yrt.read(f"/proc/{run.process.pid}/wchan") == "hrtimer_nanosleep", "it waits for the second moment")
        f.release()
        assert '"grown": 5000' in f.process.stdout.readline()
        run.interrupt()
        rows = heap_rows.table(run.result().expect().stdout)
    grown = {path: row for path, row in rows.items() if path[2:] == ("in use", "528 B")}
    cached = rows.get((*next(iter(grown))[:2], "free in thread caches", "528 B"))
    assert not cached and sum(row.blocks for row in grown.values()) == 5000, rows
    assert sum(row.size for row in grown.values()) == 5000 * 528, rows


def test_jvm():
    """Its archive of classes has megabytes of pointers to large mappings: none is an allocator's tree."""
    with java.Java("heaped", 20000, options=["-Xmx256m"]) as jvm:
        rows, text = heap("-p", jvm.pid)
    assert f"it runs Java: `yrt java-refs -p {jvm.pid}`" in text, text
    malloc_of(rows)
    assert ("files", "classes.jsa") in rows, rows.keys()


def test_refused():
    for args, words in (((), "no process was given"), (("-p", "1", "--core", "x"), "excludes"),
                        (("--core", "x", "--watch", "1"), "excludes"), (("-p", "1", "-f", "x"), "no format")):
        done = yrt.Run("heap", *args, output=False, stats=False).result().expect(yrt.USAGE)
        assert words in done.stderr, done.stderr


yrt.main(globals())
