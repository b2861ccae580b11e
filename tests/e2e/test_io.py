# SPDX-License-Identifier: Apache-2.0
"""
io-flame and net-flame: calls, bytes and time of known calls on known files and peers, each in the function that makes
them.
"""

import re
import subprocess
import tempfile

import java
import yrt

CALLS = 30
ESCAPED = re.compile(r"/h.*x.*1m.*i")


def whole(*args, calls=CALLS):
    with tempfile.TemporaryDirectory() as directory, yrt.Fixture("files", calls, directory) as fixture:
        at = yrt.Run(*args, "-p", fixture.pid, "-d", 600).sampling()
        fixture.release()
        truth = fixture.finish()
        return at.result().expect(), truth, directory


def sums(result, function):
    """By the frames inside the function's library call: what was counted."""
    ret = {}
    for frames, n in result.stacks:
        if function in frames:
            last = next(i for i, f in enumerate(frames) if f.startswith("[") and not f.startswith("[trunc"))
            key = tuple(frames[last:])
            ret[key] = ret.get(key, 0) + n
    return ret


def check(result, wanted):
    assert not result.stats["io"]["calls_without_stack"], result.stderr
    for function, inner in wanted.items():
        have = sums(result, function)
        for key, n in inner.items():
            assert have.get(key, 0) == n, f"{function} {key}: {have} and not {n}\n{yrt.show(result.stacks)}"
        assert not set(have) - set(inner), f"{function}: {have}, and only {inner} was to be there"


def test_files():
    """Bytes and calls by function, call and file, whatever the file's name is and however short it was open."""
    result, _, at = whole("io-flame", "--files", "--bytes")
    check(result, {
        "write_file": {("[write]", at + "/a"): CALLS * 4096},
        "read_file": {("[read]", at + "/a"): CALLS * 1000},
        "read_vector": {("[read]", at + "/a"): CALLS * 500},
        "send_file": {("[sendfile]", at + "/a"): CALLS * 2000},
        "read_short_lived": {("[read]", at + "/b"): CALLS * 700}})
    hostile = [f for frames, _ in result.stacks if "write_hostile" in frames for f in frames if f.startswith(at)]
    assert hostile and all(ESCAPED.search(f) and "\033" not in f for f in hostile), hostile
    pipes = {b for frames, _ in result.stacks for a, b in zip(frames, frames[1:]) if a.endswith(" of a pipe]")}
    assert pipes and all(re.fullmatch(r"pipe:\[\d+\]", name) for name in pipes), pipes
    told = result.stats["io"]
    # pipes, too, and what is sent or spliced: it is read where it comes from
    assert told["in_bytes"] == CALLS * 5200 + 20, told
    assert CALLS * 5106 + 20 <= told["out_bytes"] < CALLS * 5106 + 2000, told  # and what the program prints
    result, _, at = whole("io-flame", "--files", "--calls")
    check(result, {
        "read_file": {("[read]", at + "/a"): CALLS},
        "read_short_lived": {("[open]", at + "/b"): CALLS, ("[read]", at + "/b"): CALLS},
        "stat_missing": {("[stat]", "/no/such/file"): CALLS},
        "change_file": {
            **{(f"[{call}]", at + "/a"): CALLS for call in ("chmod", "chown", "xattr", "file lock")},
            ("[utimes]", at + "/a"): 2 * CALLS,
            ("[link]", at + "/a"): CALLS,
            ("[link]", at + "/other"): CALLS,
            ("[unlink]", at + "/other"): 2 * CALLS,
            ("[msync]",): CALLS}})
    yield f"{told['calls']} calls"


def test_peers():
    """
    Bytes by function, call and peer: connections made, accepted and refused, Unix sockets, datagrams of sockets that
    are not connected, what is spliced; what is peeked at does not count twice.
    """
    result, truth, at = whole("net-flame")
    out, taken = f"127.0.0.1:{truth['port']}", f":{truth['port']} from 127.0.0.1"
    service = f"127.0.0.1:{truth['service']}"
    check(result, {
        "send_peer": {("[send]", out): CALLS * 1500, ("[receive]", taken): CALLS * 1500},
        "send_file": {("[send]", out): CALLS * 2000, ("[receive]", taken): CALLS * 2000},
        "send_unix": {("[send]", f"unix:{at}/socket"): CALLS * 100, ("[receive]", f"unix:{at}/socket"): CALLS * 100},
        "splice_peer": {
            ("[send]", out): CALLS * 1000, ("[receive]", taken): CALLS * 1000,
            ("[send]", f"unix:{at}/socket"): CALLS * 1000, ("[receive]", f"unix:{at}/socket"): CALLS * 1000},
        "send_datagrams": {
            ("[send]", f"udp {service}"): CALLS * 300, ("[receive]", f"udp {service}"): CALLS * 300,
            ("[receive]", f"udp :{truth['service']} from 127.0.0.1"): CALLS * 300,
            ("[send]", f"udp :{truth['service']} from 127.0.0.1"): CALLS * 300,
            ("[send]", f"unix:{at}/named"): CALLS * 70, ("[receive]", f"unix:{at}/named"): CALLS * 70}})
    result, truth, _ = whole("net-flame", "--calls")
    check(result, {
        "connect_peer": {
            ("[connect]", f"127.0.0.1:{truth['port']}"): CALLS,
            ("[accept]", f":{truth['port']} from 127.0.0.1"): CALLS},
        "connect_refused": {("[connect, failed]", "127.0.0.1:1"): CALLS}})


@yrt.measured
def test_time():
    """Time in calls that wait, against the program's own clock; and in others no more than the functions took."""
    for command, function, call in (
        ("net-flame", "receive_slow", "[receive]"),
        ("io-flame", "read_slow", "[read of a pipe]"),
    ):
        result, truth, _ = whole(command, "--latency", "--no-peers" if command == "net-flame" else "-q")
        have, took = sums(result, function)[call,], truth["ns"][function]
        assert 0.97 * took - 1e6 <= have <= took, f"{have} ns of {took}"
        yield f"{function}: {have / 1e6:.3f} of {took / 1e6:.3f} ms"


TIMEOUTS = """
import select, socket, sys, threading, time
server, pipe = socket.create_server(("127.0.0.1", 0)), socket.socketpair()
def serve():
    server.settimeout(60)
    peer = server.accept()[0]
    while peer.recv(1):
        time.sleep(0.05)
        peer.send(b"x")
def ask(s):
    began = time.monotonic()
    s.send(b"x")
    s.recv(1)
    return time.monotonic() - began
sys.stdin.readline()
threading.Thread(target=serve).start()
time.sleep(0.2)
with socket.create_connection(server.getsockname(), 60) as s:
    print(s.getpeername()[1], sum(ask(s) for _ in range(20)), flush=True)
"""


@yrt.measured
def test_timeouts():
    """Clients with a timeout wait in poll() for their peer, which counts as that; a server for its clients does not."""
    with subprocess.Popen(
        ["/usr/bin/python3", "-c", TIMEOUTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        at = yrt.Run("python-net-flame", "--latency", "-p", program.pid, "-d", 600).sampling()
        program.stdin.write("\n")
        program.stdin.flush()
        port, took = program.stdout.readline().split()
        result = at.result().expect()
    have = sums(result, "poll")
    assert set(have) == {("[wait]", f"127.0.0.1:{port}")}, f"{have}\n{yrt.show(result.stacks)}"
    assert 0.97 * float(took) - 0.002 <= sum(have.values()) / 1e9 <= float(took), f"{have} of {took} s"
    yield f"{sum(have.values()) / 1e9:.3f} of {float(took):.3f} s"


def many_calls(n=100000):
    result, _, _ = whole("io-flame", "--bytes", calls=n)
    told = result.stats["io"]
    assert told["in_bytes"] == n * 4200 + 1000 * 1000 + 20 and told["calls_without_stack"] > 0, told
    return result


def test_many_calls():
    """A call after the other: stacks are chosen, the sums in the last line are exact."""
    many_calls(20000)


@yrt.measured
def test_chosen_calls():
    """A function has 2 % of its time for walks, some 500 of them: its sum has a standard deviation of 2 %."""
    result = many_calls()
    for function, n in (("read_file", 1e8), ("write_file", 4096e5), ("read_vector", 5e7)):
        have = sum(sums(result, function).values())
        assert abs(have - n) <= 0.1 * n, f"{function}: {have} of {n}"
        yield f"{function}: {have / n:.4f}"


@yrt.measured
def test_languages():
    """The function of Python that reads, and none of its interpreter's frames. Paths begin at the target's root."""
    code = "import os\nos.chroot('/etc')\ndef load():\n return open('/services', 'rb').read()\nwhile True: load()"
    result = yrt.run("python-io-flame", "--files", "--bytes", "-d", 2, "--", "/usr/bin/python3", "-c", code).expect()
    assert result.share(re.compile(r"^load \(")) > 0.95 and result.share("/services") > 0.95, yrt.show(
        result.stacks
    )
    assert not result.share("_PyEval_EvalFrameDefault"), yrt.show(result.stacks)


def test_java():
    """The methods of a JVM: bytes of a stream, a channel and a connection, exactly."""
    for command, call, wanted in (
        ("java-io-flame", "--files", {"writeFile": CALLS * 900, "readFile": CALLS * 700, "readChannel": CALLS * 500}),
        ("java-net-flame", "--peers", {"talk": CALLS * 600}),
    ):
        with tempfile.TemporaryDirectory() as directory, java.Java("files", directory, CALLS) as jvm:
            at = yrt.Run(command, call, "--bytes", "-p", jvm.pid, "-d", 600).sampling()
            jvm.release()
            jvm.answer()
            at.interrupt()
            result = at.result().expect()
        leaf = directory + "/file" if call == "--files" else "127.0.0.1"
        for method, n in wanted.items():
            have = sum(
                count
                for frames, count in result.stacks
                if any(f.startswith(f"files.{method}") for f in frames) and leaf in frames[-1]
            )
            assert have == n, f"{method}: {have} and not {n}\n{yrt.show(result.stacks)}"


yrt.main(globals())
