# SPDX-License-Identifier: Apache-2.0
"""
What no single edge shows, but all stacks of a profile together: samples without their callers, a collector that is
shown outside of what set it off, and names that do not say which file they are of.
"""

import collections
import re

import native

CUT_MAX = 0.005        # of the samples may be truncated, where --depth did not do it
ELSEWHERE_MAX = 0.1    # of a collector's own function may be seen outside of (gc): as it begins and ends
FEWEST = 5             # samples from which on something is no accident
PLACE = re.compile(r".*? \((?P<file>.+?)(?::\d+)?\)$", re.S)


def truncated(profile):
    """(reason, samples, an example) of what cut more stacks than may be."""
    cut, examples = collections.Counter(), {}
    for stack in profile.stacks:
        if stack.truncated and "depth" not in stack.frames[0].plain:
            cut[stack.frames[0].plain] += stack.count
            examples.setdefault(stack.frames[0].plain, stack)
    total = sum(stack.count for stack in profile.stacks)
    if sum(cut.values()) < FEWEST or sum(cut.values()) <= CUT_MAX * total:
        return
    for reason, n in cut.items():
        yield "root", f"{n / total:.1%} of the samples have no callers: {reason}", n, examples[reason]


def function_key(process, frame):
    place = native.place_of(process, frame)
    function = place.function if place else None
    return (frame.mapping, function.start if function else frame.address)


def collectors(process, profile):
    """A function right inside of (gc) is the collector's: if it often runs without (gc), (gc) is in a wrong place."""
    inside, outside, examples = collections.Counter(), collections.Counter(), {}
    if not any(f.plain == "(gc)" for s in profile.stacks for f in s.frames):
        return
    for stack in profile.stacks:
        at = next((i for i, f in enumerate(stack.frames) if f.plain == "(gc)"), len(stack.frames))
        for key in {function_key(process, f) for f in stack.frames[:at] if f.native}:
            outside[key] += stack.count
        if at + 1 < len(stack.frames) and stack.frames[at + 1].native:
            frame = stack.frames[at + 1]
            key = function_key(process, frame)
            inside[key] += stack.count
            examples.setdefault(key, (stack, frame, stack.frames[at].script or "native"))
    for key, n in inside.items():
        if outside[key] >= FEWEST and outside[key] > ELSEWHERE_MAX * n:
            stack, frame, language = examples[key]
            yield language, f"(gc) is around {frame.plain}, which {outside[key]} samples have without (gc)", n, stack


def shown_file(frame):
    """The file in a name like "f (dir/file.py:3)"; None: there is none."""
    found = PLACE.match(frame.plain)
    return found["file"] if found and frame.file else None


def is_end(shown, file):
    file = file.removeprefix("@")
    if shown == file or shown == file[1:] and file[:1] in "=":
        return True
    return file[:1] not in "[=" and file.endswith("/" + shown)


def files(profile):
    """A file is shown by an end of its path that no other file has; a chunk that is no file by its own text."""
    seen, samples, examples = {}, collections.Counter(), {}
    for stack in profile.stacks:
        shown = {(f.script, end, f.file) for f in stack.frames if f.script and (end := shown_file(f)) is not None}
        for language, end, file in shown:
            seen.setdefault((language, end), set()).add(file)
            examples.setdefault((language, end), stack)
        for key in {(language, end) for language, end, _ in shown}:
            samples[key] += stack.count
    for key, paths in seen.items():
        language, shown = key
        wrong = sorted(path for path in paths if not is_end(shown, path))
        if wrong:
            yield language, f"'{shown}' is shown for {wrong[0]!r}", samples[key], examples[key]
        elif len(paths) > 1:
            yield language, f"'{shown}' is shown for {' and for '.join(sorted(paths))}", samples[key], examples[key]


def faults(process, profile):
    """(language, what is wrong, samples, a stack)"""
    yield from truncated(profile)
    yield from collectors(process, profile)
    yield from files(profile)
