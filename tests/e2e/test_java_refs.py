# SPDX-License-Identifier: Apache-2.0
"""java-refs and java-heap --live, against what the program counts itself, and against jmap -histo:live."""

import os
import re
import subprocess
import tempfile

import hprof
import java
import java_heap
import yrt

N = 2000
READ = java_heap.collectors()
FROM_ROOTS = ("z",) if java.version() > 14 else ()  # objects cannot be listed in another way
OPTIONS = ["-Xmx256m", "-Xms64m"]
CACHE = ("keeps", ".cache: keeps$Cache")
PLUGIN = ("keeps", ".plugin: keeps$Plugin", "class keeps$Plugin: java.lang.Class", ".leaked: java.util.LinkedList")
# With compressed references: HashMap, its table, its nodes, keys that are not in Integer's cache, ArrayList, its array.
COLLECTIONS = 48 + 16 + 4 * 4096 + 32 * N + 16 * (N - 128) + 24 + 16 + 4 * 244


def run(command, *args, code=yrt.OK):
    return yrt.run(command, *args, output=False, stats=False).expect(code)


def without_dead(text):
    return {name: seen for name, seen in java_heap.types(text).items() if name not in ("keeps$Dead", "(all)")}


def keeps(*options):
    return java.Java("keeps", N, options=[*options, *OPTIONS])


def tree(pid, *args):
    """{path: (bytes of its own)} of folded stacks"""
    text = run("java-refs", "-p", pid, "-f", "folded", *args).stdout
    return {tuple(line.rpartition(" ")[0].split(";")): int(line.rpartition(" ")[2]) for line in text.splitlines()}


def below(paths, *begin):
    return sum(n for p, n in paths.items() if p[: len(begin)] == begin)


def soft(mode):
    """Shenandoah's full collection clears soft references, whatever room there is."""
    return mode != "still_shenandoah"


def check_counts(jvm, mode):
    """Of the program's own classes what is alive, and nothing of what is dead; jmap counts after a collection."""
    result = run("java-heap", "--live", "-p", jvm.pid)
    seen, theirs = java_heap.types(result.stdout), java_heap.jmap(jvm.pid, "live")
    # a word left on a stack may lead to a dead object, and from there to what was overwritten
    assert re.search(r" references; \d+ torn;", result.stderr), result.stderr
    for name, count in jvm.start["counts"].items():
        if name == "keeps$Soft" and not soft(mode):
            assert name not in seen and name not in theirs, (seen.get(name), theirs.get(name))
        elif name != "long[]":  # the JVM has some, too
            assert seen[name][0] == count and seen[name] == theirs[name], (name, seen[name], count, theirs.get(name))
    assert jvm.start["counts"]["long[]"] <= seen["long[]"][0] <= theirs["long[]"][0], (seen["long[]"], theirs["long[]"])
    assert not {"keeps$Dead[]", "keeps$Weak"} & set(seen)
    # words left on threads' stacks may lead to the last ones: a compiled loop leaves as many as it was unrolled
    assert seen.get("keeps$Dead", (0, 0))[0] <= 100, seen.get("keeps$Dead")
    return seen


def check_tree(pid, seen, compressed, array, mode):
    """Each object is drawn where it is kept alive, by the names of fields, and counts once."""
    paths = tree(pid)
    own = sum(seen[name][1] for name in ("keeps$Cache", "keeps$Record", "keeps$Point", "keeps$Point[]"))
    if compressed:
        assert below(paths, *CACHE) == own + COLLECTIONS, (below(paths, *CACHE), own)
    point = seen["keeps$Point"][1] // (3 * N)
    leaf = (".points: keeps$Point[]", "[]: keeps$Point")
    # of ten records one is in the list, too: shared below the cache, which alone keeps both
    assert paths[(*CACHE, ".entries: java.util.HashMap", "{}: keeps$Record", *leaf)] == N * 9 // 10 * 3 * point
    shared = [n for p, n in paths.items() if p[:2] == CACHE and p[-2:] == leaf and "by 2 paths, also ." in p[2]]
    assert shared == [N // 10 * 3 * point], paths
    assert below(paths, "keeps", ".chain: keeps$Node") == seen["keeps$Node"][1]
    # an instance keeps its class, whose loader is not the application's
    assert paths[(*PLUGIN, "[]: long[]")] == N * array
    way = ("keeps", ".soft: java.lang.ref.SoftReference", ".referent: keeps$Soft[]", "[]: keeps$Soft")
    assert not soft(mode) or paths[way] == seen["keeps$Soft"][1]


def check_threads(pid):
    slow, local = tree(pid, "--to", "keeps$Slow"), tree(pid, "--to", "keeps$Local")
    assert set(slow) == {("(threads)", "waiter", "(stack)", "?keeps$Slow")}, slow
    ways = {p for p in local if p[:2] == ("(threads)", "waiter")}
    assert ways == {("(threads)", "waiter", ".threadLocals: java.lang.ThreadLocal$ThreadLocalMap",
                     "keeps.local: keeps$Local")}, local
    scratch = {p for p in tree(pid, "--to", "keeps$Scratch") if ".threadLocals" in p[2]}  # its class may be unloaded
    assert scratch == {("(threads)", "main", ".threadLocals: java.lang.ThreadLocal$ThreadLocalMap",
                        "keeps$Scratch.own: keeps$Scratch")}, scratch
    pooled = tree(pid, "--to", "keeps$Pooled")
    assert set(pooled) == {("(threads)", "idle-* (3 threads)", ".threadLocals: java.lang.ThreadLocal$ThreadLocalMap",
                            "keeps.pooled: keeps$Pooled")}, pooled


def test_trees():
    """Counts, who keeps what, locals and thread-locals: by collector, and by size of references."""
    for mode in READ + FROM_ROOTS:
        for options in ([], java_heap.WIDE) if mode in READ else ([],):
            with keeps(*java.mode_options(mode), *options) as jvm:
                seen = check_counts(jvm, mode)
                check_tree(jvm.pid, seen, mode in READ and not options, 104 if options else 96, mode)
                check_threads(jvm.pid)
        yield mode


def test_unreachable():
    """What is there and the roots do not reach is garbage: each object is in one of the two, and counts once."""
    for mode in READ:
        with keeps(*java.mode_options(mode)) as jvm:
            there = java_heap.types(run("java-heap", "-p", jvm.pid).stdout)
            alive = java_heap.types(run("java-heap", "--live", "-p", jvm.pid).stdout)
            paths = tree(jvm.pid, "--unreachable")
            assert sum(paths.values()) == there["(all)"][1] - alive["(all)"][1], (there["(all)"], alive["(all)"])
            dead = paths[("(nothing refers to it)", "keeps$Dead[]", "[]: keeps$Dead")]
            assert dead == there["keeps$Dead"][1] - alive.get("keeps$Dead", (0, 0))[1], (dead, there["keeps$Dead"])
        yield mode
    for mode in FROM_ROOTS:
        with keeps(*java.mode_options(mode)) as jvm:
            result = run("java-refs", "-p", jvm.pid, "--unreachable", code=yrt.UNSUPPORTED)
            yrt.clear(result, yrt.UNSUPPORTED, "what nothing refers to is not known")


def dump(pid, folder):
    path = os.path.join(folder, "heap.hprof")
    subprocess.run([java.SYSTEM + "/jmap", f"-dump:format=b,file={path}", str(pid)], check=True, capture_output=True)
    return hprof.Hprof(path)


def check_dump(pid, folder, theirs):
    """--hprof beside what the JVM itself wrote: each of the program's objects, with its class and references."""
    path, full = os.path.join(folder, "own.hprof"), os.path.join(folder, "full.hprof")
    run("java-heap", "-p", pid, "--hprof", path)
    run("java-heap", "-p", pid, "--hprof", full, "--contents")
    ours = hprof.Hprof(path)
    own = {o for o, kind in theirs.kind.items() if kind > 0 and theirs.classes[kind].name.startswith("keeps")}
    assert len(own) > 5 * N, len(own)
    for o in own:
        assert ours.classes[ours.kind[o]].name == theirs.classes[theirs.kind[o]].name, (o, ours.kind[o])
        assert sorted(ours.refs[o]) == sorted(theirs.refs[o]), (ours.refs[o], theirs.refs[o])
    static = [{h.kind[r] for c in h.classes.values() if c.name == "keeps" for r in c.statics if r}
              for h in (ours, theirs)]
    assert static[1] and static[0] >= static[1], static
    assert {o for o, kinds in theirs.roots.items() if 0x08 in kinds} & set(ours.roots), "no thread is a root"
    with open(full, "rb") as f:
        assert b"idle-" in f.read() and b"idle-" not in ours.data


def test_retained():
    """What an object alone keeps alive, against a search of another kind in a dump that the JVM itself wrote."""
    for mode in READ:
        with keeps(*java.mode_options(mode)) as jvm, tempfile.TemporaryDirectory() as d:
            rows = [line.split(None, 3) for line in
                    run("java-refs", "-p", jvm.pid, "--largest", 1 << 20).stdout.splitlines()[1:]]
            sizes = {name: size // n for name, (n, size) in java_heap.jmap(jvm.pid).items()}
            theirs = dump(jvm.pid, d)
            check_dump(jvm.pid, d, theirs)
            kept = hprof.retained(theirs.refs, theirs.lasting(), lambda obj: theirs.size(obj, sizes))
            ours = [(int(at, 16), int(n), way) for _, n, at, way in rows
                    if re.match(r"keeps > \.((cache|chain|soft): |plugin: .*\.leaked: )", way)]
            wrong = [(way, n, kept.get(at)) for at, n, way in ours if kept.get(at) != n]
            assert not wrong and len(ours) > 9 * N, (len(ours), wrong[:5])
        yield mode


@yrt.measured
def test_full_speed():
    """Of a heap that is nearly full and moves all the time: what is alive, in two readings of three."""
    for mode in ("g1", "serial", "parallel", *(("shenandoah",) if java.version() >= 17 else ())):
        with java.Java("replaces", 500000, options=[*java.mode_options(mode), "-Xmx256m", "-Xms256m"]) as jvm:
            good = 0
            for _ in range(3):
                result = run("java-heap", "--live", "-p", jvm.pid)
                seen = java_heap.types(result.stdout)
                said = "a collection ran while" in result.stderr  # no copy fell between two
                torn, objects = int(re.search(r"(\d+) torn;", result.stderr)[1]), seen["(all)"][0]
                found = [seen[name][0] / n for name, n in jvm.start["counts"].items()]
                yield f"{mode}: {torn} of {objects} torn; of the live ones {found}; said: {said}"
                good += not said and torn < 0.005 * objects and all(0.99 < share < 1.01 for share in found)
            assert good >= 2, f"{good} of 3 readings"


def test_roots_core_and_page():
    """--roots agrees with the tree; a core and a process that is stopped give the same; a page is made."""
    with keeps(*java.mode_options("serial")) as jvm, tempfile.TemporaryDirectory() as d:
        roots = java_heap.types(run("java-refs", "-p", jvm.pid, "--roots").stdout)
        alive = tree(jvm.pid)
        assert roots["keeps"][1] == below(alive, "keeps"), (roots["keeps"], below(alive, "keeps"))
        assert "(threads) > waiter" in roots, roots
        paused = run("java-heap", "--live", "--pause", "-p", jvm.pid)
        core = os.path.join(d, "core")
        subprocess.run(["gcore", "-o", core, str(jvm.pid)], check=True, capture_output=True)
        dumped = run("java-heap", "--live", "--core", f"{core}.{jvm.pid}")
        assert without_dead(dumped.stdout) == without_dead(paused.stdout)
        page = os.path.join(d, "refs.html")
        run("java-refs", "-p", jvm.pid, "-o", page)
        assert ".entries: java.util.HashMap" in yrt.read(page) and '"more":"objects"' in yrt.read(page)
        yrt.clear(run("java-refs", "-p", jvm.pid, "--to", "keeps$Weak", code=yrt.INPUT), yrt.INPUT, "no object of type")
        jvm.release()
        jvm.process.wait(300)


yrt.main(globals())
