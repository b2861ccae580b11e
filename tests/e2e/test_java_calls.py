# SPDX-License-Identifier: Apache-2.0
"""
probe of methods of Java: as many hits as the program counts calls itself, interpreted and compiled; overloads are told
apart, unknown names are refused with those that are near.
"""

import json
import re
import time

import counted
import java
import yrt

# What is asked for, and the program's own word for it.
KINDS = [
    ("counted.place", "place"),
    ("counted.add(int)", "add(int)"),
    ("counted.add(int[],java.lang.String)", "add(int[],java.lang.String)"),
    ("counted.recursive", "recursive"),
    ("counted.raises", "raises"),
    ("counted.looping", "looping"),
    ("counted$Square.area", "area"),
    ("counted$Square.locked", "locked"),
    ("counted$Square.<init>", "init"),
]
NAME = 200  # letters of a frame that are there in any case
COMPILED = ["-Xcomp", "-XX:-Inline", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,counted*::*"]


def check(options, each):
    """each: functions at a time: those that are compiled take two debug registers."""
    with java.Java("counted", options=options) as jvm:
        jvm.ask()
        for first in range(0, len(KINDS), each):
            kinds = KINDS[first : first + each]
            names = [word for name, _ in kinds for word in ("-e", f"java:{name}")]
            before = jvm.ask()
            run = yrt.Run("probe", *names, "-p", jvm.pid, "-d", 600, "--max-cpu", 0).sampling()
            after = jvm.ask()
            run.interrupt()
            result = run.result().expect()
            for name, word in kinds:
                wanted, reason = after[word] - before[word], f"[java:{name}]"
                hits = [(f, n) for f, n in result.stacks if len(kinds) == 1 or yrt.leaf(f) == reason]
                seen = sum(n for _, n in hits)
                assert seen == wanted > 0, f"{name} {options}: {seen} of {wanted}\n{result.stderr}"
                method = name.partition("(")[0].rpartition(".")[2]
                assert all(method in f[-1] or method in f[-2] for f, _ in hits), yrt.show(hits)
            assert "calls that are inlined" not in result.stderr, result.stderr
        yield f"{len(KINDS)} methods"


def test_interpreted():
    """Calls of the interpreter, of all kinds; a loop that begins with the first bytecode is one call."""
    yield from check(["-Xint"], 4)


def test_rewritten():
    """The interpreter's template, not what begins calls, writes the bytecode that is watched: no call is lost."""
    with java.Java("counted", options=["-Xint"]) as jvm:
        before = jvm.ask()
        run = yrt.Run("probe", "-e", "java:counted$Square.side", "-p", jvm.pid, "-d", 600, "--max-cpu", 0).sampling()
        for _ in range(3):
            after = jvm.ask()
        run.interrupt()
        result = run.result().expect()
        seen = sum(n for _, n in result.stacks)
        assert seen == after["side"] - before["side"] == 3, (seen, yrt.show(result.stacks))


def test_compiled():
    """Calls of compiled code, after it was compiled, by C1 and by C2."""
    yield from check([*COMPILED, "-XX:TieredStopAtLevel=1"], 2)
    yield from check([*COMPILED, "-XX:-TieredCompilation"], 2)


def given(options, word):
    """Calls with their arguments are those that the program made; in stacks, in the list, and as slow ones."""
    with counted.Program(*java.words(), *options, "-cp", java.class_path(), "given") as program:
        program.do(word)
        for name in ("given$Order.takes", "given.boxes"):
            result, due = counted.probed(program, f"java:{name}", words=[word], flags=["--arguments"])
            due = {call: n for call, n in due.items() if call.startswith(name + "(")}
            seen = {call["call"]: call["hits"] for call in result.expect().stats["probe"]["calls"]}
            assert seen == due, {call: (seen.get(call), due.get(call)) for call in seen.keys() | due.keys()}
            leaves = {}
            for frames, n in result.stacks:
                leaves[frames[-1][:NAME]] = leaves.get(frames[-1][:NAME], 0) + n
            assert leaves == {call[:NAME]: n for call, n in due.items()}, leaves
        result, due = counted.probed(
            program, "java:given.boxes", words=[word], command="latency", flags=["--over", "1ns"])
        seen = [call["call"] for call in counted.latencies(result)["longest"]]
        shown = [re.sub(r"\) = -?\d+$", ")", call) for call in seen]  # compiled ones with what they returned
        assert sorted(shown) == sorted(call for call in due if call.startswith("given.boxes(")), seen
        returned = {int(call.rpartition(" = ")[2]) for call in seen if call not in shown}
        assert returned == ({3, (1 << 40) - 70000} if word == "compiled" else set()), seen
    yield f"{sum(due.values())} calls"


def test_arguments_interpreted():
    """Arguments of each type, in the interpreter's local variables."""
    yield from given(["-Xint"], "values")


def test_arguments_compiled():
    """The same in registers: those that have none, or one of floating point, are not known."""
    compiled = [word.replace("counted*", "given*") for word in COMPILED]
    yield from given([*compiled, "-XX:TieredStopAtLevel=1"], "compiled")


def test_fields():
    """Requests by fields: a String, and bytes between two numbers; interpreted, compiled, long references."""
    compiled = [word.replace("counted*", "routed*") for word in COMPILED]
    key = "exchange.request.method,1.request.uri.buff"
    for options in (["-Xint"], [*compiled, "-XX:TieredStopAtLevel=1"], ["-Xint", "-XX:-UseCompressedOops"]):
        with counted.Program(*java.words(), *options, "-cp", java.class_path(), "routed") as program:
            program.do("once")
            run = yrt.Run("requests", "--begin", "java:routed.serve", "--key", key, "-p", program.pid, "-d", 600,
                          "--max-cpu", 0).sampling()
            due = program.do("again")
            run.interrupt()
            stats = run.result().expect().stats["requests"]
        assert {r["route"]: r["requests"] for r in stats["routes"]} == due, (options, due, stats["routes"])
    with counted.Program(*java.words(), "-Xint", "-cp", java.class_path(), "routed") as program:
        program.do("once")
        for wrong in ("exchange.request.none", "exchange.request", "number.request", "1.request.method.value", "2.x"):
            run = yrt.run("requests", "--begin", "java:routed.serve", "--key", wrong, "-p", program.pid, "-d", 1,
                          output=False, stats=False)
            assert run.code == yrt.USAGE and "ARGUMENT.FIELD" in run.stderr, (wrong, run.stderr)
    yield f"{due}"


class Compiling(java.Java):
    """Knows when a method was compiled: before the program goes on, by -Xbatch."""

    compiled = 0

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
            self.compiled += "counted::place " in line
        raise AssertionError(self.said())


def test_inlined():
    """Calls that are not seen, as a compiler has inlined them, are said, with the methods that they are in."""
    options = [o for o in COMPILED if "Inline" not in o]
    with java.Java("counted", options=[*options, "-XX:TieredStopAtLevel=1"]) as jvm:
        before = jvm.ask()["recursive"]
        run = yrt.Run("probe", "-e", "java:counted.recursive", "-p", jvm.pid, "-d", 600, "--max-cpu", 0).sampling()
        calls = jvm.ask()["recursive"] - before
        run.interrupt()
        result = run.result().expect()
    assert result.samples < calls, result.stderr
    note = r"counted\.recursive: calls that are inlined into compiled code are not counted: of .*counted\.round"
    assert re.search(note, result.stderr), result.stderr


def shared(name, command, jvm, seconds):
    """What `command` of a method says of its samples, by a profile after a run that is not ended early."""
    text = yrt.run(command, "-e", f"java:{name}", "-p", jvm.pid, "-d", seconds).expect().stderr
    share = re.search(rf"-e java:{re.escape(name)}: (\d+) % of its (\d+) samples are inlined", text)
    nothing = f"-e java:{name}: no sample of a CPU profile of 1 s after the run shows it" in text
    assert (share is None) == nothing, text
    return share and (int(share[1]), int(share[2]))


def test_inlined_asleep():
    """A method that does not run after its calls were inlined has no share."""
    options = [o for o in COMPILED if "Inline" not in o]
    with java.Java("counted", options=[*options, "-XX:TieredStopAtLevel=1"]) as jvm:
        jvm.ask()
        assert shared("counted.recursive", "probe", jvm, 0.2) is None


@yrt.measured
def test_inlined_share():
    """The share of a method's samples that are inlined, against the program's own clock."""
    options = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=inline,inlined.work",
               "-XX:CompileCommand=exclude,inlined.calls"]
    for command in ("probe", "latency"):
        with java.Java("inlined", options=options) as jvm:
            jvm.release()
            share, samples = shared("inlined.work", command, jvm, 0.2)
            due = jvm.ask()
        wanted = 100 * due["inside"] / (due["inside"] + due["beside"])
        assert abs(share - wanted) < 30, (share, samples, wanted)
        yield f"{command}: {share} % of {samples} samples, {wanted:.0f} % by its own clock"


def test_ends_early():
    """A run that is over before new code is watched says how much of it is missing."""
    options = ["-Xbatch", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,counted*::*"]
    with java.Java("counted", options=options) as jvm:
        run = yrt.Run("probe", "-e", "java:counted.place", "-p", jvm.pid, "-d", 600, "--max-cpu", 0).sampling()
        calls = [jvm.ask()["place"] for _ in range(4)][-1]
        run.interrupt()
        result = run.result().expect()
        said = result.stats["probe"]
        assert said["code_changes"] and 0 < said["unseen_ns"] <= said["unseen_of_ns"], result.stderr
        yield f"{result.samples} of {calls} calls, at most {said['unseen_ns'] / 1e6:.1f} ms are missing"


@yrt.measured
def test_tiers():
    """From the interpreter to C1 to C2: but for those right behind a change, all calls are seen."""
    options = ["-Xbatch", "-XX:+PrintCompilation", "-XX:CompileCommand=quiet",
               "-XX:CompileCommand=dontinline,counted*::*"]
    with Compiling("counted", options=options) as jvm:
        run = yrt.Run("probe", "-e", "java:counted.place", "-p", jvm.pid, "-d", 600, "--max-cpu", 0).sampling()
        changed = 0
        for _ in range(100):
            before = jvm.compiled
            counts = jvm.ask()
            if jvm.compiled > before:
                changed += 1
                time.sleep(1)  # for yrt, however loaded the machine is
        run.interrupt()
        result = run.result().expect()
        calls, seen, said = counts["place"], result.samples, result.stats["probe"]
        assert changed >= 2 and said["code_changes"] >= 2 and said["unseen_ns"], (changed, said)
        assert calls - 200 * changed <= seen <= calls == 20000, f"{seen} of {calls}\n{result.stderr}"
        assert "a function got new code" in result.stderr, result.stderr
        yield f"{seen} of {calls} calls, new code in {changed} of 100 rounds"


def test_names():
    """Overloads are listed, near names suggested, patterns taken; a method that nobody calls is there."""
    with java.Java("counted", options=["-Xint"]) as jvm:
        jvm.ask()
        for name, near in (("counted.add", "counted.add(int)"), ("counted.plac", "counted.place")):
            run = yrt.run("probe", "-e", f"java:{name}", "-p", jvm.pid, "-d", 1, output=False, stats=False)
            assert run.code == yrt.USAGE and near in run.stderr, f"{name}: {run.stderr}"
        run = yrt.Run("probe", "-e", "java:counted.add*", "-p", jvm.pid, "-d", 600, "--max-cpu", 0).sampling()
        before = jvm.ask()
        run.interrupt()
        assert run.result().expect().samples == before["add(int)"] - 200 + before["add(int[],java.lang.String)"] - 200
        run = yrt.run("probe", "-e", "java:counted.never", "-p", jvm.pid, "-d", 1)
        assert "no call was seen" in run.stderr and "inlined into the caller" in run.stderr, run.stderr
        listed = yrt.run("functions", "-p", jvm.pid, "java:counted.*", output=False, stats=False)
        assert "counted.place" in listed.stdout and "counted.add(int)" in listed.stdout, listed.stdout + listed.stderr


yrt.main(globals())
