# SPDX-License-Identifier: Apache-2.0
"""io-flame and net-flame of what io_uring does: each request in the function that submits it, with bytes and time."""

import tempfile

import asynchronous
import yrt

REQUESTS = 100


def requests_of(*args):
    """What was found, the run, and the fixture's file."""
    found, result, directory = asynchronous.requests_of("rings", REQUESTS, "ring_", *args)
    return found, result, directory + "/a"


@yrt.both_tiers
def test_files():
    """Bytes, calls, and the time until a request ends, also of files that are registered, and by a polling thread."""
    found, result, file = requests_of("io-flame", "--files", "--bytes")
    assert found == {
        ("ring_write", "[write, asynchronous]", file): REQUESTS * 3000,
        ("ring_read", "[read, asynchronous]", file): REQUESTS * 1000,
        ("ring_read_registered", "[read, asynchronous]", file): REQUESTS * 700,
        ("", "[read, asynchronous]", file): REQUESTS * 300,
        ("ring_read_slow", "[read of a pipe, asynchronous]", *pipe(found)): 20 * 10,
    }, found
    assert result.stats["io"]["async_requests"] == 5 * REQUESTS + 20, result.stats
    assert "requests of io_uring" in result.stderr, result.stderr
    found, _, file = requests_of("io-flame", "--files", "--calls")
    assert found["ring_sync", "[fsync, asynchronous]", file] == REQUESTS, found
    found, result, *_ = requests_of("io-flame")
    slow = found["ring_read_slow", "[read of a pipe, asynchronous]"] * 1e-9
    assert 0 < slow <= result.stats["duration_s"], found
    assert not yrt.measuring() or 0.02 < slow < 0.5, found
    yield f"20 reads of a pipe that is written each 2 ms: {slow:.3f} s"


def test_workers():
    """Threads of io_uring have no user stack: theirs end at the kernel's root."""
    with tempfile.TemporaryDirectory() as directory, yrt.Fixture("rings", REQUESTS, directory) as fixture:
        at = yrt.Run("off-flame", "--max-cpu", 0, "-p", fixture.pid, "-d", 60).sampling()
        fixture.release()
        fixture.finish()
        result = at.result().expect()
    roots = {frames[0] for frames, _ in result.stacks if {"io_wq_worker", "io_sq_thread"} & {*frames}}
    assert roots == {"ret_from_fork_asm"}, yrt.show(result.stacks)
    assert "no_region" not in result.stats["truncated"], result.stats


def pipe(found):
    """The name of the pipe, which the kernel makes up."""
    return next(key[2:] for key in found if key[0] == "ring_read_slow")


def test_net():
    found, *_ = requests_of("net-flame", "--bytes")
    sums = {key[:2]: n for key, n in found.items()}
    assert sums == {
        ("ring_send", "[send, asynchronous]"): REQUESTS * 200,
        ("ring_receive", "[receive, asynchronous]"): REQUESTS * 200,
    }, found


yrt.main(globals())
