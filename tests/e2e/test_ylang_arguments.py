# SPDX-License-Identifier: Apache-2.0
"""
Arguments of a language's functions in handlers of Y: as numbers, as texts, in conditions, maps and beside returns,
equal to what the program passed; what is something else is an error value, what is not there is refused.
"""

import counted
import java
import yrt
import ylang

# as a long, as a double, as a text
SEEN = """
_probe _begin { printf("ready\\n"); }
_probe %s { printf("%%d|%%g|%%s|%%s\\n", %s, %s, %s, %s); }
"""
OTHER, LIMIT = "<of another type>", "<limit>"


def calls(program, function, argument, other, words=("values",)):
    at = ylang.Beside(SEEN % (function, argument, argument, argument, other), program.pid)
    for word in words:
        program.do(word)
    return [line.split("|") for line in at.end()]


def number(value, real=None):
    return [str(value), f"{value if real is None else real:g}", OTHER]


def text(value):
    return [OTHER, OTHER, value]


# what the fixture's VALUES are
PYTHON = [
    number(0), number(-1), number(2**30), number(-(2**59)), number(1), number(0), [OTHER] * 3, number(1),
    number(0, -0.1), [LIMIT, "1e+300", OTHER], text(""), text("it's"), text("\u00fcber \U0001f40d"), text("x" * 80),
    text("a\ufffdb"), *[[OTHER] * 3] * 6, [LIMIT, LIMIT, OTHER],
]


def python():
    return counted.Program("/usr/bin/python3", f"{yrt.SOURCE}/fixtures/python/counted_calls.py", counted.ROUNDS, 1)


def test_python():
    """One value of each kind, by name and by position."""
    with python() as p:
        p.do("nothing")
        for argument in "$value", "_arg(0)":
            seen = calls(p, "python:takes", argument, "$flag")
            assert seen[:len(PYTHON)] == [[*value, OTHER] for value in PYTHON], seen
            assert seen[len(PYTHON):] == [[*text("many"), OTHER]] * 3, seen
        yield f"{len(seen)} calls, by name and by position"


def test_python_print():
    """_print takes what there is: a number or a text."""
    with python() as p:
        p.do("nothing")
        source = '_probe _begin { _print("ready"); } _probe python:takes { _print("as", $value, "or", _arg(0)); }'
        at = ylang.Beside(source, p.pid)
        p.do("values")
        seen = [line.removeprefix("as ").split(" or ") for line in at.end()]
        due = [of[0] if of[0] != OTHER else of[2] for of in PYTHON] + ["many"] * 3
        assert seen == [[value, value] for value in due], seen
        yield f"{len(seen)} calls"


def test_python_in_programs():
    """In a condition, as keys of maps, with the stack, and kept for the return."""
    source = """
    _map long by[long]; _map long words[_str]; _map long at[_ustack]; _map long kept[int]; long returned, sum;
    _probe _begin { printf("ready\\n"); }
    _probe python:recursive / $n != 2 / { by[$n]++; at[_ustack]++; }
    _probe python:encloses / $word == "word" && _arg(1) != "other" && $n > 6 / {
        _str word = $word; double n = $n;
        words[$word]++; words[word]++; words[_cat($word, word)] += _len($word);
        words[$n ?? "none"]++; words[$word ?? "none"]++;
        kept[_tid] = $n;
        printf("%g\\n", n);
    }
    _probe python:encloses:return { returned++; sum += kept[_tid]; }
    _probe _end { _print(by); _print(words); printf("%d %d\\n", returned, sum); }
    """
    with python() as p:
        p.do("nothing")
        at = ylang.Beside(source, p.pid)
        p.do("go")
        p.do("values")
        lines = [" ".join(line.split()) for line in at.end()]
        n = counted.ROUNDS
        words = ["words", "none 3", "word 9", "wordword 12"]
        assert lines == ["7"] * 3 + ["by", f"0 {n}", f"1 {n}", f"3 {n}", *words, "3 21"], lines
        yield lines[-1]


def analysed(source, program, **names):
    """What an analyser of the library prints."""
    with open(f"{yrt.SOURCE}/library/{source}.y", encoding="utf-8") as f:
        text = "".join(f"#define {name} {value}\n" for name, value in names.items()) + f.read()
    at = ylang.Beside('_probe _begin { printf("ready\\n"); }\n' + text, program.pid)
    program.do("values")
    program.do("go")
    return [line.split() for line in at.end()]


def test_func_args():
    """The analyser of that name: by a number, by a text."""
    with python() as p:
        p.do("nothing")
        n = counted.ROUNDS
        seen = analysed("func-args", p, FUNC="python:recursive", ARG="$n % 2")
        assert seen == [["CALLS", "VALUE"], [str(2 * n), "0"], [str(2 * n), "1"]], seen
        seen = analysed("func-args", p, FUNC="python:takes", TEXT="$value")
        assert seen[1:3] == [["17", "?"], ["3", "many"]] and len(seen) == 8, seen
    yield f"{len(seen) - 1} texts"


def test_func_times():
    """The analyser of that name: calls by a number, in each other, and by a text."""
    with python() as p:
        p.do("nothing")
        n = str(counted.ROUNDS)
        seen = analysed("func-times", p, FUNC="python:recursive", ARG="$n")
        assert sorted(line[:2] for line in seen[1:5]) == [["0", n], ["1", n], ["2", n], ["3", n]], seen
        mean = {line[0]: int(line[2]) for line in seen[1:5]}
        assert mean["0"] <= mean["1"] <= mean["2"] <= mean["3"], seen  # each lies within the next
        seen = analysed("func-times", p, FUNC="python:takes", TEXT="$value")
        calls = {line[0]: line[1] for line in seen if line[1:2] and line[1].isdigit()}
        assert calls["?"] == "17" and calls["many"] == "3", seen
        yield f"{len(calls)} texts"




LUA = [
    number(1), number(0), number(0), number(1), number(-7), number(0, 0.5), [LIMIT, "-2.5e+300", OTHER],
    number(10**15), number(2**53), [LIMIT, "inf", OTHER], text(""), text("text"), text('a "quoted" one\ufffd'),
    text("\ufffdzero"), text("long " * 15), *[[OTHER] * 3] * 5,
]


def test_lua():
    """The same of Lua: each value comes as often as its place in the list says, with that as second argument."""
    wanted = [[*value, OTHER] for i, value in enumerate(LUA) for _ in range(i + 1)]
    script = f"{yrt.SOURCE}/fixtures/lua/counted_calls.lua"
    for command in (["/usr/bin/lua5.1"], ["/usr/bin/lua5.3"], ["/usr/bin/lua5.4"], ["/usr/bin/luajit"]):
        with counted.Program(*command, script, counted.ROUNDS, "joff") as p:
            p.do("warm")
            seen = calls(p, "lua:counted_calls.lua:takes", "$first", "$second")
            assert seen[:len(wanted)] == wanted, (command, [x for x in zip(seen, wanted) if x[0] != x[1]][:3])
            assert [line[2] for line in seen[len(wanted):]] == [OTHER, OTHER, "only", OTHER, "pcall", "coroutine"], seen
            yield f"{command[0]}: {len(seen)} calls"


JAVA = """
_probe _begin { printf("ready\\n"); }
_probe java:given$Order.takes {
	printf("%d|%d|%d|%d|%g|%s|%d\\n", $flag, $small, $number, $large, $fraction, $text, _arg(7));
}
_probe java:given.boxes { printf("%d|%d|%d|%d|%d|%d|%d\\n", $number, $large, $letter, $flag, $array, $c, _arg(7)); }
"""
JAVA_FLOATS = """
_probe _begin { printf("ready\\n"); }
_probe java:given.floats { printf("%.9g|%d|%.9g|%d\\n", $f, $f, $box, $box); }
"""
FLOATS = [("0.100000001", "0"), ("-2.5", "-2"), ("1024", "1024"), ("1.40129846e-45", "0"), ("-3.52648305e-38", "0"),
          ("3.40282347e+38", LIMIT), ("-inf", LIMIT), ("-0", "0")]
TEXTS = ["text", "", "\u00fc \u20ac", 'a "quoted" one\ufffd', "x" * 120, OTHER]


def java_calls(compiled):
    """Of a method as it is compiled only the first six that are no floating-point numbers are in registers."""
    gone = "<optimized out>"
    for i, text_of in enumerate(TEXTS):
        yield from [[str(v) for v in (int(i % 2 == 0), -i, -1000 * i, 1234567890123 + i, gone if compiled else i + 0.5,
                                      text_of, gone if compiled else OTHER)]] * (i + 1)
    boxes = [(-70000 - i, 1 << 40, ord("x"), int(i == 1), 65 + i, -i) for i in range(3)]
    for number_of, large, letter, flag, c, s in [*boxes, (1, 2, 0x20ac, OTHER, ord("c"), 0)]:
        c, s = (gone, gone) if compiled else (c, s)
        yield [str(v) for v in (number_of, large, letter, flag, OTHER, c, s)]


def java_floats(compiled):
    for real, whole in FLOATS:
        yield [*(["<optimized out>"] * 2 if compiled else [real, whole]), real, whole]


def given(options, word):
    n = 0
    with counted.Program(*java.words(), *options, "-cp", java.class_path(), "given") as p:
        for source, calls_of in ((JAVA, java_calls), (JAVA_FLOATS, java_floats)):
            p.do(word)
            at = ylang.Beside(source, p.pid)
            p.do(word)
            seen = [line.split("|") for line in at.end()]
            due = list(calls_of(word == "compiled"))
            assert seen == due, [x for x in zip(seen, due) if x[0] != x[1]][:4]
            n += len(seen)
    return f"{n} calls"


def test_java_interpreted():
    """Numbers, boxes and strings of Java, in the interpreter's local variables."""
    yield given(["-Xint"], "values")


def test_java_compiled():
    """And in registers."""
    options = ["-Xcomp", "-XX:-Inline", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,given*::*"]
    yield given([*options, "-XX:TieredStopAtLevel=1"], "compiled")


def test_refused():
    cases = [
        ('_probe python:raises { printf("%d", $m); }', "raises has no $m that can be read", "1, from _arg(0): n"),
        ('_probe python:raises { printf("%d", _arg(1)); }', "raises has no _arg(1) that can be read", ""),
        ('_probe python:raises { printf("%d", _arg(8)); }', "_arg takes 0 to 7 here", ""),
        ('_probe python:raises:return { printf("%d", $n); }', "keep them in a map by _tid at its entry", ""),
        ('_probe python:raises:return { printf("%d", $return); }', "the result of a language's function is not", ""),
    ]
    with python() as p:
        p.do("nothing")
        for source, message, hint in cases:
            done = ylang.run("-e", source, "-p", p.pid)
            assert done.returncode == yrt.USAGE and message in done.stderr and hint in done.stderr, (source, done)
            assert "-e:1:" in done.stderr, done
    yield f"{len(cases)} programs are refused"


yrt.main(globals())
