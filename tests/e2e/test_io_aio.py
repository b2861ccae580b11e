# SPDX-License-Identifier: Apache-2.0
"""io-flame of what io_submit() does: each request in the function that submits it, with its file, bytes and time."""

import asynchronous
import yrt

ROUNDS = 100


def requests_of(*args):
    """What was found, the run, and the fixture's files."""
    found, result, directory = asynchronous.requests_of("aio", ROUNDS, "aio_", *args)
    return found, result, directory + "/a", directory + "/b"


def wanted(a, b, of):
    """of: (bytes, requests) -> value."""
    read, write, sync = (f"[{word}, asynchronous]" for word in ("read", "write", "fsync"))
    all_of = {
        ("aio_write", write, a): (2 * ROUNDS * 3000, 2 * ROUNDS),
        ("aio_sync", sync, a): (0, ROUNDS),
        ("aio_mixed", write, a): (ROUNDS * 400, ROUNDS * 4),
        ("aio_mixed", read, a): (ROUNDS * 400, ROUNDS * 4),
        ("aio_mixed", read, b): (ROUNDS * 400, ROUNDS * 4),
        ("aio_many", read, b): (ROUNDS * 400, ROUNDS * 40),
        ("aio_refused", read, a): (ROUNDS * 50, ROUNDS),
        ("aio_taken_out", read, a): (ROUNDS * 700, ROUNDS),
        ("aio_others", read, a): (ROUNDS * 300, ROUNDS),
    }
    return {key: of(*of_it) for key, of_it in all_of.items() if of(*of_it)}


@yrt.measured  # at load one of 100 that the program takes out of the ring by itself was not seen (limits.md)
def test_bytes_and_requests():
    """Whoever awaits a request, and however many are submitted at once; not those that the kernel refuses."""
    found, result, a, b = requests_of("io-flame", "--files", "--bytes")
    assert found == wanted(a, b, lambda moved, n: moved), found
    assert result.stats["io"]["async_requests"] == ROUNDS * 58, result.stats
    assert "io_submit()" in result.stderr, result.stderr
    found, _, a, b = requests_of("io-flame", "--files", "--calls")
    assert found == wanted(a, b, lambda moved, n: n), found


def test_time():
    """Each lasts until it ends: others are not longer than the program."""
    found, result, a, _ = requests_of("io-flame", "--files")
    took = sum(found.values()) * 1e-9
    assert found["aio_sync", "[fsync, asynchronous]", a] > 0 and 0 < took < 60 * result.stats["duration_s"], found
    assert len(found) == 9, found
    yield f"{len(found)} kinds of requests: {took:.3f} s"


yrt.main(globals())
