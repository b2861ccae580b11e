# SPDX-License-Identifier: Apache-2.0
"""
What the tests of functions share: fixtures that count their own calls, and what yrt says of those. Not a test itself.
"""

import json
import signal
import subprocess

import yrt

ROUNDS = 5


class Program:
    """A fixture that counts its own calls, and does what it is told by lines."""

    def __init__(self, *command):
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = json.loads(self.process.stdout.readline())["pid"]

    def do(self, word):
        """Its counts of calls, when it has done that."""
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        yrt.stop(self.process, signal.SIGKILL)


def probed(program, *what, words=("go",), command="probe", flags=()):
    """(the result, the program's counts) of what it does while functions are probed, all of them."""
    args = [arg for name in what for arg in ("-e", name)]
    at = yrt.Run(command, *args, "-p", program.pid, "-d", 600, "--max-cpu", 0, *flags).sampling()
    counts = {}
    for word in words:
        counts = program.do(word)
    at.interrupt()
    return at.result(), counts


def kinds_of(program, language, kinds, shows, innermost=1):
    """
    Every call of these functions counts once, with its stack: (name, what its frame shows, the program's word), four at
    a time, as there are four debug registers. shows(frame, what): does one of the innermost frames show it?
    """
    for first in range(0, len(kinds), 4):
        group = kinds[first:first + 4]
        before = program.do("nothing")
        result, after = probed(program, *[language + name for name, _, _ in group], words=["go"])
        for name, shown, word in group:
            reason = f"[{language}{name}]"
            calls = [(frames[:-1] if len(group) > 1 else frames, n) for frames, n in result.expect().stacks
                     if len(group) == 1 or frames[-1] == reason]
            due, seen = after[word] - before.get(word, 0), sum(n for _, n in calls)
            assert seen == due > 0, f"{name}: {seen} of {due} calls\n{yrt.show(result.stacks)}"
            assert all(any(shows(f, shown) for f in frames[-innermost:]) for frames, _ in calls), yrt.show(calls)
            yield f"{name}: {due} calls"
        assert result.incomplete() == 0, result.stats


def latencies(result):
    return result.expect().stats["latency"]


def within_own_clock(program, name):
    """Times lie between what the program's clock says inside and outside of the calls."""
    result, counts = probed(program, name, words=("time",), command="latency")
    seen = latencies(result)
    inner, outer = counts["inner_ns"], counts["outer_ns"]
    assert seen["entered"] == seen["returned"] == ROUNDS and inner <= seen["sum_ns"] <= outer, (inner, outer, seen)
    return f"{inner / 1e6:.3f} <= {seen['sum_ns'] / 1e6:.3f} <= {outer / 1e6:.3f} ms"


def ends_of(program, language, ends):
    for name, due in ends:
        before = program.do("go")
        result, after = probed(program, f"{language}{name}", command="latency")
        seen = latencies(result)
        word = {"Shop:place": "method"}.get(name, name.rpartition("::")[2].lower())
        entered = after[word] - before[word]
        left, lost = due.get("left", 0), due.get("lost", 0)
        wanted = entered, entered - left - lost - due.get("open", 0), left, lost, 0
        assert tuple(seen[k] for k in ("entered", "returned", "left", "lost", "unpaired")) == wanted, f"{name}: {seen}"
        yield f"{name}: {entered} calls, {wanted[1]} returns"
