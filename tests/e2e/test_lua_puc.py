# SPDX-License-Identifier: Apache-2.0
"""
PUC-Lua: fixtures/lua/kinds.lua prints which functions are on its stack for each way to call one, as debug.getinfo() has
them; every stack that yrt takes of it must be one of those, or a part of one that begins at its root.
fixtures/lua/full_collections.lua prints the share of its time that the collector takes, which must be that of the frame
(gc). fixtures/lua/tables.lua prints a debug.traceback(), whose names must be those of yrt.
"""

import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess

import yrt

SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "lua", "kinds.lua")
COLLECTIONS = os.path.join(yrt.SOURCE, "fixtures", "lua", "full_collections.lua")
TABLES = os.path.join(yrt.SOURCE, "fixtures", "lua", "tables.lua")
FINALIZER = re.compile(r"\(full_collections\.lua:9\)$")
PLACE = re.compile(r"\(kinds\.lua(?::(\d+))?\)$")
SPIN = 1 + next(i for i, line in enumerate(open(SCRIPT)) if line.startswith("local function spin"))
SECONDS, RATE = 100, 999  # s of CPU time at most


def lua_lines(frames):
    """Where the Lua functions of a stack are defined, outermost first; a chunk is line 0."""
    lines = []
    for frame in frames:
        place = PLACE.search(frame)
        if place:
            lines.append(int(place[1] or 0))
        elif frame.endswith("((loaded))") or frame == "[gone]":  # the chunk is collected soon after it ran
            lines.append(0)
    return lines


@contextlib.contextmanager
def running(script):
    """{version: process} of a script in each interpreter at once."""
    with contextlib.ExitStack() as stack:
        processes = {}
        for version, binary in interpreters().items():
            command = [binary, script, str(SECONDS)]
            processes[version] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            stack.callback(yrt.stop, processes[version], signal.SIGKILL)
        yield processes


def sampled(processes, seconds):
    """{version: stacks}"""
    pids = [process.pid for process in processes.values()]
    result = yrt.sample_busy("lua-flame", pids, seconds=seconds * len(pids), rate=RATE)
    assert result.incomplete() <= 0.001 + 1 / result.samples, result.stderr
    return {v: yrt.of_process(result, p.pid) if len(pids) > 1 else result.stacks for v, p in processes.items()}


def functions(lines):
    """{kind: where the functions on its stack are defined}"""
    truth = {}
    for line in lines:
        name, *places = line.split()
        truth[name] = [*map(int, places), SPIN]
        if name == "hook":
            return truth


def check(version, truth, stacks):
    legal = {tuple(lines[:n]) for lines in truth.values() for n in range(len(lines) + 1)}
    seen, wrong = collections.Counter(), collections.Counter()
    for frames, count in stacks:
        lines = tuple(lua_lines(frames))
        if lines not in legal:
            wrong[lines, frames[-1]] += count
        for name, chain in truth.items():
            seen[name] += count * (lines == tuple(chain))
    total = sum(count for _, count in stacks)
    bad = sum(wrong.values())
    missing = [name for name in truth if not seen[name]]
    assert total > 20, f"{version}: {total} samples"
    assert not missing, f"{version}: never seen whole: {missing}"
    assert bad <= total * 0.002, f"{version}: {bad} of {total} stacks are not of the program: {wrong.most_common(8)}"
    assert sum(seen.values()) > total * 0.9, f"{version}: only {sum(seen.values())} of {total} stacks are whole"
    return f"{version}: {len(truth)} kinds, {total} stacks, {bad} wrong"


def interpreters():
    """The system's, or the one that tests/versions/lua_version.py has chosen."""
    chosen = os.environ.get("YRT_PUC_LUA")
    if chosen:
        return {os.path.basename(chosen): chosen}
    found = {version: shutil.which(f"lua{version}") for version in ("5.1", "5.2", "5.3", "5.4")}
    missing = [version for version, path in found.items() if not path]
    assert not missing, f"lua{missing[0]} is missing: fixtures/setup.sh installs it"
    return found


@yrt.measured
def test_kinds():
    with running(SCRIPT) as processes:
        truth = {version: functions(process.stdout) for version, process in processes.items()}
        for version, stacks in sampled(processes, 1.5).items():
            yield check(version, truth[version], stacks)


def check_collector(version, stacks, collecting, finalizing):
    total = sum(n for _, n in stacks)
    seen = yrt.count(stacks, "(gc)") / total
    inside = sum(
        n
        for frames, n in stacks
        if "(gc)" in frames and any(FINALIZER.search(f) for f in frames[frames.index("(gc)") :])
    )
    limit = max(0.06, 2 / total**0.5)  # what chance does, four deviations of a half
    assert (
        abs(seen - collecting) < limit
    ), f"{version}: (gc) has {seen:.3f} of the samples, the collector {collecting:.3f} of the time"
    assert (
        abs(inside / total - finalizing) < limit
    ), f"{version}: finalizers in (gc) {inside / total:.3f}, of the time {finalizing:.3f}"
    for frames, _ in stacks:
        if "(gc)" in frames:
            before = frames[:frames.index("(gc)")]
            assert any(f.startswith("collect (") for f in before) and not any(
                f.startswith("spin (") for f in frames
            ), frames
    return (
        f"{version}: (gc) {seen:.3f} of samples, {collecting:.3f} of the time; finalizers"
        f" {inside / total:.3f}, {finalizing:.3f}"
    )


@yrt.measured
def test_collector():
    with running(COLLECTIONS) as processes:
        for process in processes.values():
            process.stdout.readline()
        for version, stacks in sampled(processes, 1.2).items():
            yield check_collector(version, stacks, *map(float, processes[version].stdout.readline().split()))


def traceback_names(lines):
    """Those of the functions of the script, innermost first."""
    for line in lines:
        entry = re.search(r"tables\.lua:\d+: in (?:(main chunk)|\w+ '(.*)'|function <)", line)
        if entry:
            name = entry[1] or entry[2] or "function"
            # a function that pcall() calls is named from a table, by the first name that this has; a function of which
            # two closures have two names is called as at the call
            name = re.sub(r"_\d+$", "", name)
            yield {"function": "everywhere", "first.run": "run"}.get(name, name)
            if entry[1]:
                return


def check_names(version, truth, stacks):
    seen = collections.Counter()
    for frames, count in stacks:
        names = tuple(m[1] for m in (re.match(r"(.*) \(tables\.lua(?::\d+)?\)$", f) for f in reversed(frames)) if m)
        seen[names] += count
    assert len(truth) == 8, truth
    assert seen[tuple(truth)] > 0.8 * sum(seen.values()), f"{version}: {truth} is seldom seen: {seen.most_common(4)}"
    return f"{version}: {' '.join(truth)}"


TWICE = """
local function work() local s = 0 for i = 1, 1e5 do s = s + i % 7 end return s end
while true do
	xpcall(work, print)
	table.sort({2, 1}, function(a, b) work() return a < b end)
end
"""


def test_once():
    """A function in C is one frame, whether the language or its code has the name; in the view of Lua, too."""
    for version, binary in interpreters().items():
        with yrt.Program([binary, "-e", TWICE]) as program:
            for view in ("flame", "lua-flame"):
                result = yrt.sample_busy(view, [program.pid], "-U", seconds=0.5, rate=499)
                for name in ("xpcall", "sort"):
                    called = re.compile(rf"(table\.)?{name}")
                    seen = [list(filter(called.fullmatch, frames)) for frames, _ in result.stacks]
                    assert max(map(len, seen)) == 1, f"{version}, {view}, {name}: {seen}\n{yrt.show(result.stacks)}"


DEFINED = os.path.join(yrt.SOURCE, "fixtures", "lua", "defined.lua")
SOURCES = (
    "main chunk (defined.lua)",
    "pcall",
    "function (defined.lua:21)",
    "pcall",
    # inside() is gone: it has tail-called this one
    "function, tail called (defined.lua:21)",
    "pcall",
    "guarded (defined.lua:16)",
    "route (defined.lua:13)",
    "spin, tail called (defined.lua:5)",
)


def test_sources():
    """What only the source names, of a file and of a text that was loaded; in objects, too."""
    for version, binary in interpreters().items():
        with yrt.Program([binary, DEFINED], stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout.readline() == "ready\n"
            result = yrt.sample_busy("lua-flame", [program.pid], "-U", seconds=0.2, rate=499)
            (frames,) = {tuple(frames) for frames, _ in result.stacks}
            shown = tuple(f for f in frames if "defined.lua" in f or f == "pcall")
            assert shown == SOURCES, f"{version}: {shown}"
            if version != "5.5" and "YRT_PUC_LUA" not in os.environ:
                heap = yrt.run("lua-heap", "-p", program.pid, output=False, stats=False).expect().stdout
                for name in (f"M.handler ({DEFINED}:12)", f"spin ({DEFINED}:5)", 'inside ([string "local'):
                    assert f" function {name}" in heap, f"{version}: {name}\n{heap}"
        yield f"{version}: {len(shown)} frames, 3 objects"


@yrt.measured
def test_names():
    with running(TABLES) as processes:
        truth = {version: list(traceback_names(process.stdout)) for version, process in processes.items()}
        for version, stacks in sampled(processes, 0.5).items():
            yield check_names(version, truth[version], stacks)


yrt.main(globals())
