# SPDX-License-Identifier: Apache-2.0
"""
One program for each runtime, through BPF to names: three functions that call each other and never return. Whatever the
scheduler does, complete stacks have all three, in order.
"""

import os
import re
import subprocess
import tempfile

import yrt

PYTHON = """
def inner():
    while True: sum(range(100))
def middle(): inner()
def outer(): middle()
outer()
"""
LUA = """
local function inner() while true do string.rep("x", 10):len() end end
local function middle() inner() return 1 end
local function outer() middle() return 1 end
outer()
"""
PERL = """
sub inner { while (1) { my $x = join ',', 1 .. 20 } }
sub middle { inner(); 1 }
sub outer { middle(); 1 }
outer();
"""
JAVA = """
public class Spin {
    static long sum;
    static void inner() { while (true) sum += Long.toString(sum).hashCode(); }
    static void middle() { inner(); }
    static void outer() { middle(); }
    public static void main(String[] args) { outer(); }
}
"""
GO = """
package main
var sum int
//go:noinline
func inner() { for { sum += len(make([]byte, sum & 63)) } }
//go:noinline
func middle() { inner(); sum++ }
//go:noinline
func outer() { middle(); sum++ }
func main() { outer() }
"""
NATIVE = """
#include <stdlib.h>
volatile unsigned sum;
__attribute__((noinline)) void inner(void) { for (;;) sum += rand(); }
__attribute__((noinline)) void middle(void) { inner(); sum++; }
__attribute__((noinline)) void outer(void) { middle(); sum++; }
int main(void) { outer(); return sum; }
"""


def look(view, *command, env=None):
    """What a view shows of a program that runs all the time, once it has used half a second of CPU."""
    with yrt.Program([*map(str, command)], stdout=subprocess.DEVNULL, env={**os.environ, **(env or {})}) as program:
        yrt.until(lambda: yrt.cpu_seconds(program.pid) > 0.3, "it computes")
        result = yrt.sample_busy(view, [program.pid], seconds=0.5, rate=997)
    names = [[re.split("[.:]", re.sub(r"[ (].*", "", frame))[-1] for frame in frames] for frames, _ in result.stacks]
    chains = [[name for name in frames if name in ("outer", "middle", "inner")] for frames in names]
    wrong = [chain for chain in chains if chain != ["outer", "middle", "inner"][:len(chain)]]
    assert ["outer", "middle", "inner"] in chains, result.text
    assert not wrong, f"{wrong[:3]}\\n{result.text}"
    assert result.stats["complete"] > 0, result.stats
    return f"{result.samples} samples, {result.stats['complete']} complete"


def source(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def test_native():
    with tempfile.TemporaryDirectory() as at:
        subprocess.run(["cc", "-O2", "-o", f"{at}/spin", source(at, "spin.c", NATIVE)], check=True)
        yield look("c-flame", f"{at}/spin")


def test_python():
    with tempfile.TemporaryDirectory() as at:
        yield look("python-flame", "/usr/bin/python3", source(at, "spin.py", PYTHON))


def test_lua():
    with tempfile.TemporaryDirectory() as at:
        script = source(at, "spin.lua", LUA)
        for host in ["luajit"], ["luajit", "-joff"], ["lua5.1"], ["lua5.3"], ["lua5.4"]:
            yield f"{' '.join(host)}: {look('lua-flame', *host, script)}"


def test_perl():
    with tempfile.TemporaryDirectory() as at:
        yield look("perl-flame", "perl", source(at, "spin.pl", PERL))


def test_java():
    with tempfile.TemporaryDirectory() as at:
        subprocess.run(["javac", "-d", at, source(at, "Spin.java", JAVA)], check=True)
        for mode in "-Xint", "-XX:+TieredCompilation":
            yield f"{mode}: {look('java-flame', 'java', mode, '-cp', at, 'Spin')}"


def test_go():
    with tempfile.TemporaryDirectory() as at:
        environment = {**os.environ, "GO111MODULE": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOENV": "off"}
        environment["PATH"] += ":/usr/local/go/bin"
        subprocess.run(["go", "build", "-o", f"{at}/spin", source(at, "spin.go", GO)], check=True, env=environment)
        yield look("go-flame", f"{at}/spin")


yrt.main(globals())
