# SPDX-License-Identifier: Apache-2.0
"""Reads a profile in pprof's format (perftools.profiles.Profile), whoever wrote it."""

import gzip
import re
from dataclasses import dataclass, field

SCRIPTS = ("[luajit]", "[python]", "[hotspot]", "[perl]", "[lua]", "[go]")


@dataclass(frozen=True)
class Frame:
    """A function of a stack."""
    name: str
    file: str
    line: int
    address: int  # in the file; of code in no file: in the process. 0: unknown
    mapping: str  # path, or "[kernel]", "[python]"; "" if unknown
    marks: frozenset = frozenset()  # of yrt's --annotate: "jit", "approx", "guess", "stub"

    @property
    def native(self):
        """Is it machine code with a return address?"""
        return bool(self.address) and self.mapping not in SCRIPTS and self.mapping != "[kernel]"

    @property
    def script(self):
        """Of which language is it a frame? "" if of none."""
        return self.mapping[1:-1] if self.mapping in SCRIPTS else ""

    @property
    def plain(self):
        """The name without the place that --lines puts behind it."""
        return re.sub(r":\d+$", "", self.name)


@dataclass
class Stack:
    frames: tuple  # root first
    count: int
    labels: dict = field(default_factory=dict)

    @property
    def truncated(self):
        return self.frames and self.frames[0].name.startswith("[truncated")


def varint(data, at):
    shift = value = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = int.from_bytes(data[at:at + size], "little"), at + size
        else:
            raise ValueError(f"a field of kind {kind}: not a profile")
        yield key >> 3, value


def numbers(values):
    """A repeated number, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            yield number


def message(data):
    """{number: [values]}"""
    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def first(found, number, default=0):
    return found.get(number, [default])[0]


def signed(value):
    return value - (1 << 64) if value >> 63 else value


class Profile:
    def __init__(self, data):
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        top = message(data)
        self.strings = [s.decode("utf-8", "replace") for s in top.get(6, [])]
        self.mappings = {first(m, 1): m for m in map(message, top.get(3, []))}
        self.functions = {first(f, 1): f for f in map(message, top.get(5, []))}
        self.inlined = {}  # {(mapping, address): [functions there, innermost first]} of machine code
        self.locations = {first(m, 1): self.frames(m) for m in map(message, top.get(4, []))}
        self.begin_ns, self.duration_ns = first(top, 9), first(top, 10)
        self.stacks = [self.stack(message(s)) for s in top.get(2, [])]

    def text(self, found, number):
        return self.strings[first(found, number)]

    def frames(self, location):
        """
        Of a location, outermost first. What native code has inlined is part of the function that holds the code; a
        language's functions are each one.
        """
        mapping = self.mappings.get(first(location, 2))
        address = first(location, 3)
        path = self.text(mapping, 5) if mapping else ""
        if mapping and first(mapping, 2):  # where it was loaded is given, so addresses are of the process
            address = address - first(mapping, 2) + first(mapping, 4)
        lines = [message(line) for line in reversed(location.get(4, []))] or [{}]
        frames = [self.frame(line, address, path) for line in lines]
        if frames[0].native:
            self.inlined[path, address] = [f.plain for f in reversed(frames)]
        return frames if frames[0].script else frames[:1]

    def frame(self, line, address, path):
        function = self.functions.get(first(line, 1), {})
        name = self.text(function, 2)
        marks = re.search(r"_\[([a-z+ ]+)\]$", self.text(function, 3).removeprefix(name))
        return Frame(
            name,
            self.text(function, 4),
            signed(first(line, 2)),
            address,
            path,
            frozenset(marks[1].split()) if marks else frozenset(),
        )

    def stack(self, sample):
        frames = [f for i in reversed(list(numbers(sample.get(1, [])))) for f in self.locations[i]]
        labels = {}
        for label in map(message, sample.get(3, [])):
            labels[self.text(label, 1)] = self.text(label, 2) or first(label, 3)
        return Stack(tuple(frames), next(numbers(sample.get(2, [])), 0), labels)


def read(path):
    with open(path, "rb") as file:
        return Profile(file.read())
