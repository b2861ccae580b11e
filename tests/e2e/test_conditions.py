# SPDX-License-Identifier: Apache-2.0
"""probe and latency of calls that meet a condition on arguments (--if), exactly; and what calls returned."""

import re
import time

import counted
import go
import java
import yrt

N = 60  # orders: their customers, statuses and amounts come round


def orders(meets):
    customers, statuses = ("ada", "bob", "cy"), (200, 200, 404, 200, 500)
    return sum(bool(meets(i, customers[i % 3], statuses[i % 5], i % 4)) for i in range(N))


def called():
    return counted.Program(yrt.fixture_path("called"))


def met(program, what, word, flags=(), command="probe"):
    """The result of the calls that the program makes at a word."""
    at = yrt.Run(command, "-e", what, *flags, "-p", program.pid, "-d", 600, "--max-cpu", 0).sampling()
    program.do(word)
    at.interrupt()
    result = at.result()
    assert result.code == 0, result.stderr
    return result


def hits(result, last=None):
    return sum(n for frames, n in result.stacks if not last or frames[-1] == last)


NATIVE = [
    ("$order->status >= 400", lambda i, customer, status, many: status >= 400),
    ("_arg(1) == 3", lambda i, customer, status, many: many == 3),
    ('_str($order->customer) == "bob" && $many != 0', lambda i, customer, status, many: customer == "bob" and many),
    ("$order->items->next != 0 || $flag > 50", lambda i, customer, status, many: True),
    ("$order->items->price == 20 && 1", lambda i, customer, status, many: i % 2),
]


def test_native():
    """Of a function of C, by its registers, and by what they point to."""
    with called() as p:
        for condition, meets in NATIVE:
            seen = hits(met(p, "called:serve", N, ["--if", condition]))
            assert seen == orders(meets), (condition, seen)
            stats = counted.latencies(met(p, "called:serve", N, ["--if", condition], "latency"))
            wanted = orders(meets)
            assert (stats["entered"], stats["returned"], stats["unpaired"], stats["left"]) == (wanted, wanted, 0, 0), (
                condition, wanted, stats)
            yield f"{condition}: {seen} of {N}"


def test_native_several():
    """A condition is of the -e before it, and of no other; a tail call is measured to its end."""
    with called() as p:
        more = ["-e", "called:relay", "-e", "called:twice", "--if", "$n > 50"]
        result = met(p, "called:serve", N, ["--if", "$many == 2", *more])
        seen = [hits(result, f"[called:{name}]") for name in ("serve", "relay", "twice")]
        # relay(i) calls twice(i + 1)
        assert seen == [orders(lambda i, c, s, many: many == 2), N, 9 + 10], (seen, yrt.show(result.stacks))
        yield f"{seen} hits"
        stats = counted.latencies(met(p, "called:relay", N, ["--if", "$n % 2 == 1"], "latency"))
        assert (stats["entered"], stats["returned"], stats["unpaired"], stats["lost"]) == (N // 2, N // 2, 0, 0), stats
        yield f"{stats['returned']} tail calls"


def test_native_slow():
    """Slow calls are those that meet it."""
    with called() as p:
        flags = ["--if", "$order->status == 404", "--over", "1ns"]
        result = met(p, "called:serve", N, flags, "latency")
        calls = counted.latencies(result)["longest"]
        assert len(calls) == orders(lambda i, c, status, m: status == 404), calls
        assert all("status = 404" in c["call"] or "order = 0x" in c["call"] for c in calls), calls
        yield f"{len(calls)} slow calls"


def fixed():
    """With everything where it always is."""
    return counted.Program("/usr/bin/setarch", "-R", yrt.fixture_path("called"))


def met_by_all(programs, what, word, condition, command="probe", flags=()):
    pids = ",".join(str(p.pid) for p in programs)
    at = yrt.Run(command, "-e", what, "--if", condition, "-p", pids, "-d", 600, "--max-cpu", 0, *flags).sampling()
    for p in programs:
        p.do(word)
    at.interrupt()
    return at.result()


def test_native_processes():
    """Of several processes that run the same files; where they have them does not matter if no address is used."""
    with called() as p, called() as q, called() as r:
        for condition, meets in NATIVE:
            seen = hits(met_by_all([p, q, r], "called:serve", N, condition).expect())
            assert seen == 3 * orders(meets), (condition, seen)
            stats = counted.latencies(met_by_all([p, q, r], "called:serve", N, condition, "latency"))
            assert (stats["entered"], stats["returned"]) == (3 * orders(meets),) * 2, (condition, stats)
            yield f"{condition}: {seen} of {3 * N}"
        pids = {p.pid, q.pid, r.pid}
        only = hits(met_by_all([p, q, r], "called:serve", N, f"_pid == {p.pid} && $many == 1").expect())
        assert only == orders(lambda i, c, s, many: many == 1), (pids, only)
        yield f"{only} of one process"


def test_native_addresses():
    """What is at other addresses in one of them is refused, by that process's name; at the same it is its own."""
    with fixed() as p, fixed() as q, called() as r:
        at = yrt.Run("probe", "-e", "called:serve", "--if", "served >= 40", "-p", f"{p.pid},{q.pid}", "-d", 600,
                     "--max-cpu", 0).sampling()
        p.do(N), q.do(30), p.do(N)
        at.interrupt()
        assert hits(at.result().expect()) == 2 * (N - 40)
        other = met_by_all([p, q, r], "called:serve", 0, "served >= 40")
        yrt.clear(other, yrt.USAGE, f"--if is not the same in process {r.pid} as in {p.pid}")
        assert hits(met_by_all([p, q, r], "called:serve", N, "$many == 1").expect()) == 3 * orders(
            lambda i, c, s, many: many == 1)
        yield f"{2 * (N - 40)} of {2 * N + 30} calls"


def test_bystander():
    """A process without the function is no hindrance, wherever it stands in the list."""
    with called() as p, python() as q:
        q.do("nothing")
        for pids in (f"{p.pid},{q.pid}", f"{q.pid},{p.pid}"):
            at = yrt.Run("probe", "-e", "called:serve", "--if", "$many == 3", "-p", pids, "-d", 600).sampling()
            p.do(N)
            at.interrupt()
            assert hits(at.result().expect()) == orders(lambda i, c, s, many: many == 3)
        yield "twice"


def results(program, what, n):
    """What slow calls say that they returned."""
    calls = counted.latencies(met(program, what, n, ["--over", "1ns"], "latency"))["longest"]
    return sorted(call["call"].rpartition(") = ")[2] for call in calls)


def test_native_results():
    """Slow calls say what they returned: by debug information, of tail calls, too."""
    with called() as p:
        seen = results(p, "called:serve", N)
        statuses = (200, 200, 404, 200, 500)
        assert seen == sorted(str(-1 if statuses[i % 5] >= 400 else i % 7) for i in range(N)), seen
        seen = results(p, "called:relay", N)
        assert seen == sorted(str(2 * (i + 1)) for i in range(N)), seen
        yield f"{len(seen)} results"


def test_go_results():
    """Several results, texts, errors; what is in no general register is not shown."""
    with counted.Program(go.build("returns")) as p:
        seen = counted.latencies(met(p, "main.price", 20, ["--over", "1ns"], "latency"))["longest"]
        for call in seen:
            amount = int(re.search(r"amount = (\d+)", call["call"])[1])
            error = "0x[0-9a-f]+" if amount % 4 == 3 else "nil"
            due = rf" = \({-amount if amount % 4 == 3 else 2 * amount}, {error}\)$"
            assert re.search(due, call["call"]), (due, call["call"])
        labels = [call["call"] for call in
                  counted.latencies(met(p, "main.label", 20, ["--over", "1ns"], "latency"))["longest"]]
        wanted = (f'main.label(amount = {i}) = (name = "item {i}", ok = {str(i % 2 == 0).lower()})' for i in range(20))
        assert sorted(labels) == sorted(wanted), labels
        ratios = [call["call"] for call in
                  counted.latencies(met(p, "main.ratio", 20, ["--over", "1ns"], "latency"))["longest"]]
        assert sorted(ratios) == sorted(f"main.ratio(amount = {i}) = (?, {-i})" for i in range(20)), ratios
        yield labels[0]


def test_go():
    """A condition on arguments of Go, a text by its pointer and length."""
    with counted.Program(go.build("returns")) as p:
        assert hits(met(p, "main.price", 20, ["--if", "$amount % 4 == 3"])) == 5
        assert hits(met(p, "main.price", 20, ["--if", '_str(_arg(0), _arg(1)) == "bob" && $amount > 16'])) == 3
        yield "5 and 3 calls"


def test_not_met():
    """If none meets it, or it cannot be evaluated, that is said with the number of calls."""
    with called() as p:
        result = met(p, "called:serve", N, ["--if", "$many == 77"])
        assert not result.stacks and f"none of {N} calls met --if" in result.stderr, result.stderr
        result = met(p, "called:twice", N, ["--if", "*(int *)($n + 8) == 1"])
        assert not result.stacks and f"could not be computed for {2 * N} calls" in result.stderr, result.stderr
        yield result.stderr.splitlines()[0]


def python():
    return counted.Program("/usr/bin/python3", f"{yrt.SOURCE}/fixtures/python/counted_calls.py", counted.ROUNDS, 1)


def test_python():
    """By a number and a text, in calls that are within each other, with arguments as frames."""
    with python() as p:
        p.do("nothing")
        n = counted.ROUNDS
        assert hits(met(p, "python:recursive", "go", ["--if", "$n != 2"])) == 3 * n
        stats = counted.latencies(met(p, "python:recursive", "go", ["--if", "_arg(0) >= 2"], "latency"))
        assert (stats["entered"], stats["returned"], stats["left"], stats["lost"]) == (2 * n, 2 * n, 0, 0), stats
        result = met(p, "python:takes", "values", ["--if", '$value == "many"', "--arguments"])
        calls = result.stats["probe"]["calls"]
        assert hits(result) == 3 and sum(c["hits"] for c in calls) == 3, calls
        assert all("value = 'many'" in c["call"] for c in calls), calls
        flags = ["--if", '$word == "word" && $n > 6', "--over", "1ns"]
        slow = counted.latencies(met(p, "python:encloses", "values", flags, "latency"))["longest"]
        assert len(slow) == 3 and all("word = 'word'" in c["call"] for c in slow), slow
        yield f"{hits(result)} of {len(calls)} kinds, {len(slow)} slow"


def test_python_processes():
    """Two processes, and the functions of each."""
    with python() as p, python() as q:
        p.do("nothing"), q.do("nothing")
        seen = hits(met_by_all([p, q], "python:recursive", "go", "$n != 2").expect())
        assert seen == 6 * counted.ROUNDS, seen
        stats = counted.latencies(met_by_all([p, q], "python:takes", "values", '$value == "many"', "latency"))
        assert (stats["entered"], stats["returned"]) == (6, 6), stats
        yield f"{seen} and 6 calls"


@yrt.both_tiers
def test_workers():
    """A master with workers, and one that it makes during the run; measured, as yrt has to find it in time."""
    with counted.Program("/usr/bin/python3", f"{yrt.SOURCE}/fixtures/python/counted_workers.py", 3) as master:
        at = yrt.Run("probe", "-e", "python:__main__.serve", "--if", '$customer == "bob" && $amount >= 2',
                     "-s", "-p", master.pid, "-d", 600, "--max-cpu", 0).sampling()
        workers = master.do("serve")["workers"]
        late = 0
        if yrt.measuring():
            assert master.do("more")["workers"] == workers + 1
            time.sleep(1)
            late = master.do("serve")["workers"]
        at.interrupt()
        seen = hits(at.result().expect())
        assert seen == 2 * (workers + late), (workers, late, seen)
        yield f"{seen} calls of {late} workers"


def test_python_exceptions():
    """Calls that an exception ends are those that meet it, too."""
    with python() as p:
        p.do("nothing")
        stats = counted.latencies(met(p, "python:raises", "go", ["--if", "$n % 2 == 1"], "latency"))
        odd = counted.ROUNDS // 2
        assert (stats["entered"], stats["returned"] + stats["left"], stats["unpaired"]) == (odd, odd, 0), stats
        yield f"{odd} calls"


def test_lua():
    """Each value comes as often as its place in the fixture's list says."""
    script = f"{yrt.SOURCE}/fixtures/lua/counted_calls.lua"
    for command in (["/usr/bin/lua5.1"], ["/usr/bin/lua5.3"], ["/usr/bin/lua5.4"], ["/usr/bin/luajit"]):
        with counted.Program(*command, script, counted.ROUNDS, "joff") as p:
            p.do("warm")
            for condition, wanted in (('$first == "text"', 12), ("$first == -7", 5), ("_arg(1) == 3", 3)):
                seen = hits(met(p, "lua:counted_calls.lua:takes", "values", ["--if", condition]))
                assert seen == wanted, (command, condition, seen)
            stats = counted.latencies(
                met(p, "lua:counted_calls.lua:takes", "values", ["--if", '$first == "text"'], "latency"))
            assert stats["entered"] == stats["returned"] + stats["left"] == 12, (command, stats)
            yield f"{command[0]}: {stats['returned']} measured"


def given(options, word):
    with counted.Program(*java.words(), *options, "-cp", java.class_path(), "given") as p:
        p.do(word)
        for condition, wanted in (('$text == "text"', 1), ("$small == -3", 4), ("$number == -5000 || $flag", 15)):
            seen = hits(met(p, "java:given$Order.takes", word, ["--if", condition]))
            assert seen == wanted, (condition, seen)
            stats = counted.latencies(met(p, "java:given$Order.takes", word, ["--if", condition], "latency"))
            assert (stats["entered"], stats["returned"], stats["unpaired"]) == (wanted, wanted, 0), (condition, stats)
            yield f"{condition}: {seen}"


def test_java_interpreted():
    """In the interpreter's local variables."""
    yield from given(["-Xint"], "values")


def test_java_compiled():
    """And in registers."""
    options = ["-Xcomp", "-XX:-Inline", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,given*::*"]
    yield from given([*options, "-XX:TieredStopAtLevel=1"], "compiled")


JAVA_RESULTS = {
    "text": lambda i: " = null" if i == 3 else f' = "item {i}"',
    "number": lambda i: f" = {-1000 * i}",
    "large": lambda i: f" = {1234567890123 + i}",
    "flag": lambda i: f" = {str(i % 2 == 0).lower()}",
    "letter": lambda i: f" = '{chr(ord('a') + i)}'",
    "small": lambda i: f" = {i - 4}",
    "box": lambda i: f" = {1000 * i}",
    "object": lambda i: " = <ArrayList>",
    "array": lambda i: " = <int[]>",
    "fraction": lambda i: " = ?",
    "nothing": lambda i: "",
}


def test_java_results():
    """Slow calls of compiled methods say what they returned, of each kind; interpreted ones do not."""
    compiled = ["-Xcomp", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,returned::*",
                "-XX:CompileCommand=dontinline,returned::*"]
    for options in ([*compiled, "-XX:TieredStopAtLevel=1"], [*compiled, "-XX:-TieredCompilation"], ["-Xint"]):
        with counted.Program(*java.words(), *options, "-cp", java.class_path(), "returned") as p:
            p.do("first")

            def seen_of(name):
                result = met(p, f"java:returned.{name}", "go", ["--over", "1ns"], "latency")
                calls = [call["call"] for call in counted.latencies(result)["longest"]]
                return sorted(re.sub(r"\(.*?(-?\d+)\)", r"(\1)", call) for call in calls)

            some = JAVA_RESULTS if "-XX:TieredStopAtLevel=1" in options else ("text", "large", "box")
            for name in some:
                shows = JAVA_RESULTS[name]
                wanted = sorted(f"returned.{name}({i}){'' if '-Xint' in options else shows(i)}" for i in range(8))
                assert seen_of(name) == wanted, (options, name, seen_of(name), wanted)
            if "-Xint" not in options:
                due = [f"returned.sum({i}) = {sum(range(i + 1))}" for most in range(8) for i in range(most + 1)]
                assert seen_of("sum") == sorted(due), (options, seen_of("sum"))
                assert seen_of("odd") == [f"returned.odd({i}) = {i}" for i in range(1, 8, 2)], (options, seen_of("odd"))
            yield f"{options[-1]}: {len(some)} kinds"


def test_refused():
    """What is no condition, or has nothing to be of."""
    with called() as p, python() as q:
        q.do("nothing")
        cases = [
            (["--if", "1", "-e", "called:serve"], "behind the -e"),
            (["-e", "called:serve", "--if", "1", "--if", "2"], "two --if"),
            (["-e", "called:serve", "--if", "$many =="], "an expression is missing"),
            (["-e", "called:serve", "--if", "$nothing == 1"], "nothing"),
            (["-e", "called:serve", "--if", "nothing == 1"], r"arguments are \$NAME"),
            (["-e", "sched:sched_switch", "--if", "1"], "--if takes functions"),
        ]
        for flags, message in cases:
            yrt.clear(yrt.run("probe", *flags, "-p", p.pid, "-d", 1), yrt.USAGE, message)
        none = yrt.run("probe", "-e", "called:serve", "--if", "1", "-d", 1, "--", "/bin/true")
        yrt.clear(none, yrt.USAGE, "--if takes processes that run already")
        absent = yrt.run("probe", "-e", "python:raises", "--if", "$m == 1", "-p", q.pid, "-d", 1)
        yrt.clear(absent, yrt.USAGE, r"raises has no \$m that can be read")
        yield f"{len(cases) + 2} conditions are refused"


yrt.main(globals())
