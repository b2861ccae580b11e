# SPDX-License-Identifier: Apache-2.0
"""
python-alloc: the bytes that sys.getsizeof() says of objects, in the function that makes them, whether this Python calls
its allocator or has it copied into what allocates, and whatever a tool puts in its place.
"""

import json
import os

import yrt

PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "python", "allocates.py")
N = 500


def allocated(*args, flags=(), env=None):
    """(result, what the program says)"""
    os.environ.update(env or {})
    try:
        fixture = yrt.Fixture(PYTHON, *flags, SCRIPT, N, seconds=None, wait=False)
    finally:
        for name in env or {}:
            del os.environ[name]
    with fixture:
        at = yrt.Run("python-alloc", "-p", fixture.pid, "-d", 600, "--max-cpu", 0, *args).sampling()
        fixture.release()
        truth = json.loads(fixture.process.stdout.readline())
        at.interrupt()
        return at.result().expect(), truth["bytes"]


def by_maker(result, truth):
    return {name: sum(n for frames, n in result.stacks if any(f.startswith(f"{name} (") for f in frames))
            for name in truth}


def check(result, truth):
    seen = by_maker(result, truth)
    assert seen == truth, f"{seen}, not {truth}\n{yrt.show(result.stacks)}"


def test_bytes():
    """Each object's size, and the buffer of a bytearray, without what its function takes besides."""
    result, truth = allocated()
    check(result, truth)
    unknown = result.stats["alloc"]["unknown_places"]
    assert (" places in its code allocate sizes that are not known: not seen" in result.stderr) == (unknown > 0)
    yield f"{truth} from {result.stats['alloc']['from']}, {unknown} places unknown"


def test_calls():
    """One call an object, two of a bytearray."""
    result, truth = allocated("--calls")
    check(result, {name: N * (2 if name == "make_buffer" else 1) for name in truth})


def test_other_allocators():
    """What the user puts in place of pymalloc: libc's malloc, with and without the checks of a debug build."""
    for name in ("malloc", "pymalloc_debug"):
        result, truth = allocated(env={"PYTHONMALLOC": name})
        check(result, truth)


def test_tracemalloc():
    """tracemalloc asks for memory of its own, which is no object."""
    result, truth = allocated(flags=("-X", "tracemalloc"))
    check(result, truth)


@yrt.measured
def test_windows():
    """Past the budget: shares of bytes within 5 points."""
    with yrt.Fixture(PYTHON, SCRIPT, N, "forever", seconds=None, wait=False) as fixture:
        fixture.release()
        result = yrt.run("python-alloc", "-p", fixture.pid, "-d", 10).expect()
    sizes = {"make_bytes": 233, "make_str": 249, "make_large": 100033, "make_slots": 56, "make_buffer": 257}
    seen = by_maker(result, sizes)
    for name, size in sizes.items():
        due, got = size / sum(sizes.values()), seen[name] / sum(seen.values())
        assert abs(due - got) < 0.05, (name, due, got)
        yield f"{name}: {100 * got:.2f} of {100 * due:.2f} %"


yrt.main(globals())
