# SPDX-License-Identifier: Apache-2.0
"""
latency of methods of Java: as many returns as the program counts calls itself, interpreted and compiled; what returns
at too many places is refused by name.
"""

import java
import yrt
from counted import Program, ends_of, latencies, probed

C1 = ["-Xcomp", "-XX:TieredStopAtLevel=1"]
C2 = ["-Xcomp", "-XX:-TieredCompilation"]
COUNTED = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,counted*::*",
           "-XX:CompileCommand=dontinline,counted*::*"]
JAVA = [("place", {}), ("recursive", {}), ("raises", {"left": 100}), ("several", {})]


def counted(*options):
    return Program(*java.words(), *options, "-cp", java.class_path(), "counted")


def java_latency(*options):
    with counted(*options) as program:
        program.do("go")
        before = program.do("time")
        yield from ends_of(program, "java:counted.", JAVA)
        result, after = probed(program, "java:counted.timed", words=("time",), command="latency")
        inner, outer = (after[word] - before[word] for word in ("inner_ns", "outer_ns"))
        seen = latencies(result)
        assert seen["entered"] == seen["returned"] == 5 and inner <= seen["sum_ns"] <= outer, (inner, outer, seen)
        yield f"{inner / 1e6:.3f} <= {seen['sum_ns'] / 1e6:.3f} <= {outer / 1e6:.3f} ms"


def test_java_latency_interpreted():
    """As many returns as calls; exceptions leave them."""
    yield from java_latency("-Xint")


def test_java_latency_compiled():
    """The same of compiled code."""
    yield from java_latency(*C1, *COUNTED)


def test_java_latency_places():
    """
    A method that returns at five places, which only C2 brings together: how it is compiled at the moment decides. Of a
    pattern the others are measured, and it is said how many are not.
    """
    for options, what in ((["-Xint"], "counted.places"), ([*C1, *COUNTED], "compiled code of counted.places")):
        with counted(*options) as program:
            program.do("go")
            refused = yrt.run("latency", "-e", "java:counted.places", "-p", program.pid, "-d", 1)
            yrt.clear(refused, yrt.UNSUPPORTED, f": {what} returns at 5 places")
            before = program.do("go")
            result, after = probed(program, "java:counted.pl*", command="latency")
            assert f"1 of 2 functions cannot be measured: {what} returns at 5 places" in result.stderr, result.stderr
            assert latencies(result)["returned"] == after["place"] - before["place"] > 0, result.stderr
    with counted(*C2, *COUNTED) as program:
        program.do("go")
        yield from ends_of(program, "java:counted.", [("places", {})])


yrt.main(globals())
