# SPDX-License-Identifier: Apache-2.0
"""
A JVM under load that is looked at again and again, in every way, and must not notice: afterwards its libjvm's code is
the same byte for byte, it has the same threads, descriptors and files mapped, no debug register is taken, and what it
has counted meanwhile is right.

YRT_ROUNDS is how many rounds (18).
"""

import hashlib
import os
import random
import signal
import time

import java_alloc
import yrt

ROUNDS = int(os.environ.get("YRT_ROUNDS", "18"))
# its own threads stay
OPTIONS = ["-XX:+UseSerialGC", "-XX:+IgnoreUnrecognizedVMOptions", "-XX:-UseDynamicNumberOfCompilerThreads"]
# A round: the command, and whether it is ended early, by which signal.
WAYS = [
    (["java-flame"], None),
    (["java-alloc"], None),
    (["flame", "-t", "-F", 1999], signal.SIGINT),
    (["java-alloc", "-t"], signal.SIGKILL),
    (["java-flame", "--lines"], signal.SIGKILL),
    (["java-alloc", "--objects"], signal.SIGINT),
]


def lines(pid):
    return [line.split(None, 5) for line in yrt.read(f"/proc/{pid}/maps").splitlines()]


def code(pid):
    """{file: digest of what it has mapped to be executed}"""
    ret = {}
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in lines(pid):
            if "x" not in line[1] or len(line) < 6 or not line[5].startswith("/"):
                continue
            start, end = (int(at, 16) for at in line[0].split("-"))
            memory.seek(start)
            ret[line[5], start] = hashlib.sha256(memory.read(end - start)).hexdigest()
    assert any(path.endswith("/libjvm.so") for path, _ in ret), ret
    return ret


def links(folder):
    return sorted(os.readlink(os.path.join(folder, name)) for name in os.listdir(folder))


def state(pid):
    """What others may see of it, but for its heap."""
    files = sorted((*line[:2], line[5]) for line in lines(pid) if len(line) > 5 and line[5].startswith("/"))
    status = dict(line.split(":\t", 1) for line in yrt.read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
    return {
        "files": files,
        "code": code(pid),
        "descriptors": links(f"/proc/{pid}/fd"),
        "threads": sorted(os.listdir(f"/proc/{pid}/task")),
        **{key: status[key] for key in ("TracerPid", "SigPnd", "ShdPnd", "SigBlk", "SigCgt", "Seccomp")},
    }


def one_round(pid, words, early):
    run = yrt.Run(*words, "-p", pid, "-d", 0.05 if early is None else 30, stats=False)
    if early is None:
        run.result().expect()
        return
    time.sleep(random.uniform(0, 0.8))
    run.process.send_signal(early)
    result = run.result()
    assert result.code in (yrt.OK, -early), f"{words} {early.name}: {result.code}\n{result.stderr}"


def check_state(pid, before):
    """It is as before: what a killed yrt leaves is removed by the kernel, some moments later."""
    end = time.monotonic() + 10
    while (now := state(pid)) != before and time.monotonic() < end:
        time.sleep(0.2)
    changed = {key: (before[key], now[key]) for key in before if before[key] != now[key]}
    assert not changed, changed


@yrt.measured
def test_rounds():
    random.seed(6)
    with java_alloc.Sites(3, *OPTIONS, pause=2000, heap="300m", timeout=20 * ROUNDS + 100) as sites:
        pid = sites.pid
        yrt.run("java-alloc", "-p", pid, "-d", 1).expect()
        before, begin = state(pid), sites.bytes()
        for i in range(ROUNDS):
            words, early = WAYS[i % len(WAYS)]
            one_round(pid, words, early)
            if i % 100 == 99:
                check_state(pid, before)
                yield f"{i + 1} rounds"
        check_state(pid, before)
        stats = yrt.run("java-alloc", "-p", pid, "-d", 2).expect().stats["alloc"]
        assert stats["debug_registers"] and stats["traps"] > 10, stats
        moved = [name for name, n in sites.bytes().items() if n == begin[name]]
        assert not moved or ROUNDS < 5, f"these went on no more: {moved}"
        truth = sites.finish()
        own = sum(truth["bytes"].values())
        assert abs(truth["jvm"] / own - 1) < 0.01, f"the program counted {own} bytes, the JVM {truth['jvm']}"
        assert sites.jvm.process.wait(30) == 0 and not sites.jvm.said(), sites.jvm.said()
    yield (
        f"{ROUNDS} rounds; {len(before['threads'])} threads, {len(before['descriptors'])} descriptors,"
        f" {len(before['files'])} mappings of files"
    )


yrt.main(globals())
