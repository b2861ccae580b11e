# SPDX-License-Identifier: Apache-2.0
"""
off-flame --no-idle: which waits count as idle, of pools and event loops of Python, Java, Perl, nginx, Redis and native
programs, and which do not.
"""

import os
import re
import subprocess
import tempfile

import go
import servers
import yrt

EXACT = 0.02


POOLS = """
import asyncio, concurrent.futures, multiprocessing.pool, socketserver, threading, time
async def main():
    while True: await asyncio.sleep(0.3)
lock = threading.Lock()
def held():
    with lock: time.sleep(0.03)
def contend():
    while True: held()
pool = concurrent.futures.ThreadPoolExecutor(3)
other = multiprocessing.pool.ThreadPool(2)
for i in range(3): pool.submit(time.sleep, 0.1)
pool.submit(held).result()
server = socketserver.TCPServer(("127.0.0.1", 0), None)
for f in (contend, contend, server.serve_forever, lambda: asyncio.run(main())):
    threading.Thread(target=f, daemon=True).start()
time.sleep(1)
print(flush=True)
time.sleep(1000)
"""

JAVA_POOLS = """
import java.util.concurrent.*;
public class Pools {
  static final Object lock = new Object();
  static void held() { synchronized (lock) { try { Thread.sleep(30); } catch (InterruptedException e) { } } }
  static final BlockingQueue<Object> queue = new LinkedBlockingQueue<>();
  static void served() { try { queue.take(); } catch (InterruptedException e) { } }
  static void selecting() { try { java.nio.channels.Selector.open().select(); } catch (java.io.IOException e) { } }
  static void resulting(int n) { if (n > 0) resulting(n - 1); else served(); }
  public static void main(String[] a) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(3);
    for (int i = 0; i < 3; i++) pool.submit(() -> {});
    ForkJoinPool.commonPool().submit(() -> {}).get();
    new java.util.Timer();
    for (int i = 0; i < 2; i++) new Thread(() -> { while (true) held(); }).start();
    for (int i = 0; i < 2; i++) new Thread(() -> { while (true) selecting(); }).start();
    for (int i = 0; i < 2; i++) new Thread(() -> { while (true) served(); }).start();
    new Thread(() -> { while (true) resulting(9); }).start();
    Thread.sleep(1000);
    System.out.println();
    served();
  }
}
"""

PERL_POOLS = """
use threads; use Thread::Queue; use IO::Socket::INET; use strict;
my $queue = Thread::Queue->new;
my $server = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1");
sub held { select undef, undef, undef, 0.03 }
sub work { held() while 1 }
sub waits { while (defined(my $task = $queue->dequeue)) { held() } }
threads->create(\\&waits) for 1 .. 3;
threads->create(sub { $server->accept });
threads->create(\\&work) for 1 .. 2;
print "\n";
work();
"""


def hides(command, pid, work, idle, floor):
    """Shown are waits of work, none of idle; together they are all; --idle shows the others."""
    result = yrt.run(command, "-U", "-p", pid, "-d", 2).expect()
    shown, stats = sum(ns for _, ns in result.stacks) * 1e-9, result.stats
    hidden = stats["idle_samples"] * 1e-9
    assert (
        abs(shown + hidden - stats["off"]["off_s"]) <= EXACT * stats["off"]["off_s"]
    ), f"{shown} and {hidden}: {stats}"
    # Each of floor idle threads waits nearly always; more threads than those may.
    assert hidden > 0.9 * floor * stats["duration_s"], f"{hidden}: {stats}"
    assert sum(stats["idle_by"].values()) == stats["idle_samples"] and "" not in stats["idle_by"], stats
    assert re.search(r"hidden as idle \([0-9.]+ s in .*; --idle shows it\)", result.stderr), result.stderr
    known = sum(ns for frames, ns in result.stacks if any(w in f for f in frames for w in work)) * 1e-9
    assert known > 1.8 * stats["duration_s"] and known > 0.9 * (
        shown - stats["off"]["run_queue_s"]
    ), f"{known}: {yrt.show(result.stacks, 9)}"
    blocked = [frames for frames, _ in result.stacks if frames[-1] != "[run queue]"]
    for word in work:
        assert any(word in f for frames in blocked for f in frames), f"{word}: {yrt.show(result.stacks, 9)}"
    assert not [f for f in blocked if any(w in x for x in f for w in idle)], yrt.show(result.stacks, 9)
    everything = yrt.run(command, "-U", "--idle", "-p", pid, "-d", 1).expect()
    assert not everything.stats["idle_samples"], everything.stats
    for word in idle:
        assert any(
            word in f for frames, _ in everything.stacks for f in frames
        ), f"{word}: {yrt.show(everything.stacks, 30)}"
    return f"{command}: {shown:.3f} s shown, {hidden:.3f} s hidden of {stats['off']['off_s']:.3f} s"


@yrt.measured
def test_idle_python():
    """
    python-off-flame hides pools without work and event loops, and says how much; locks and sleeps of the program stay.
    """
    with subprocess.Popen(["/usr/bin/python3", "-c", POOLS], stdout=subprocess.PIPE) as target:
        try:
            target.stdout.readline()
            yield hides("python-off-flame", target.pid, ("held", "contend", "<module>"),
                        ("_worker", "asyncio", "serve_forever", "_handle_results", "worker ("), 9)
        finally:
            target.kill()


@yrt.measured
def test_idle_java():
    """The same of Java's pools and of the VM's own threads."""
    with tempfile.TemporaryDirectory() as directory:
        source = os.path.join(directory, "Pools.java")
        with open(source, "w", encoding="utf-8") as f:
            f.write(JAVA_POOLS)
        with subprocess.Popen(["java", source], stdout=subprocess.PIPE) as target:
            try:
                target.stdout.readline()
                yield hides(
                    "java-off-flame",
                    target.pid,
                    ("Pools.held", "Pools.resulting", "Pools.main"),
                    ("getTask", "ForkJoinPool.awaitWork", "TimerThread", "ReferenceHandler", "Pools.selecting"),
                    14,
                )
            finally:
                target.kill()


@yrt.measured
def test_idle_go():
    """
    Goroutines that wait for others near their start are loops without work. That is not said of locks, of sleeps, and
    of who is deep in its work.
    """
    with yrt.Fixture(go.build("moments", name="moments"), seconds=None, wait=False) as fixture:
        shown, every = (
            [frames for frames, _ in yrt.run("go-off-flame", "--logical", *flag, "-p", fixture.pid, "-d", 1).stacks]
            for flag in ([], ["--idle"])
        )
    idle = ["main.selecting"]
    busy = ["main.locked", "main.reading", "main.sleeping"]
    for function in idle + busy:
        assert any(function in frames for frames in every), f"{function}: {every}"
        assert any(function in frames for frames in shown) == (function in busy), f"{function}: {shown}"
    assert not any("[goroutine: select (no cases)]" in frames for frames in shown), shown
    depths = [{frames.count("main.nested") for frames in stacks} - {0} for stacks in (shown, every)]
    assert depths == [{2, 3}, {1, 2, 3}], depths


@yrt.measured
def test_idle_perl():
    """The same of Perl's servers and queues."""
    with subprocess.Popen(["/usr/bin/perl", "-e", f"$| = 1;{PERL_POOLS}"], stdout=subprocess.PIPE) as target:
        try:
            target.stdout.readline()
            yield hides("perl-off-flame", target.pid, ("held",), ("Thread::Queue::dequeue", "IO::Socket::accept"), 4)
        finally:
            target.kill()


@yrt.measured
def test_idle_nginx():
    """All of an idle nginx is by design; off-flame shows it unless it is asked not to."""
    with servers.Nginx(load=0) as nginx:
        pid = nginx.workers()[0]
        result = yrt.run("off-flame", "--no-idle", "-p", pid, "-d", 1).expect()
        assert result.stats["idle_samples"] > 0.95e9 * result.stats["duration_s"], result.stats
        assert yrt.run("off-flame", "-p", pid, "-d", 1).expect().stats["idle_samples"] == 0


@yrt.measured
def test_idle_redis():
    """Neither its event loop nor threads of C in a process that has a language, as jemalloc's: --no-idle hides all."""
    with tempfile.TemporaryDirectory() as directory, subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", "", "--hz", "1"],
        cwd=directory,
        stdout=subprocess.DEVNULL,
    ) as redis:
        try:
            yrt.waiting(redis.pid, 5)
            result = yrt.run("off-flame", "--no-idle", "-p", redis.pid, "-d", 1).expect()
        finally:
            redis.terminate()
    lived = result.stats["off"]["wall_s"]
    assert lived > 4 * result.stats["duration_s"] and result.stats["idle_samples"] > 0.99e9 * lived, yrt.show(
        result.stacks
    )


@yrt.measured
def test_idle_native():
    """
    Workers that wait for a condition near their start are idle; the first thread, and one that is deep in its work, are
    not.
    """
    with yrt.Fixture("workers", seconds=None) as fixture:
        fixture.release()
        yrt.waiting(fixture.pid, 7)
        result = yrt.run("off-flame", "--no-idle", "-p", fixture.pid, "-d", 1).expect()
        run = result.stats["duration_s"]
        assert abs(result.stats["idle_samples"] / 1e9 - 4 * run) < 4 * EXACT * run, result.stats
        for frame in ("main", "needs_answer"):
            ns = sum(n for frames, n in result.stacks if frame in frames)
            assert abs(ns / 1e9 - run) < EXACT * run, yrt.show(result.stacks, 9)


CLIENTS = {
    "tcp": "receive",
    "tcp_polled": "poll",
    "unix": "receive",
    "tcp_quiet": "receive",
    "tcp_quiet_polled": "poll",
    "unix_quiet_polled": "poll",
}


def test_clients():
    """
    Who waits for what its client says is idle, whatever its functions; who waits for an answer is not. Of those that
    talk, BPF takes the stacks; of the others, which are there all the time, yrt from outside. A loop of events near the
    start of a thread is idle, too; deep in its work one is whose set has a listener, or a port of UDP for anybody.
    """
    with yrt.Fixture("clients", seconds=None) as fixture:
        fixture.release()
        yrt.waiting(fixture.pid, 22)  # 15 sleep all the time
        shown = yrt.run("off-flame", "--no-idle", "-p", fixture.pid, "-d", 2).expect()
        everything = yrt.run("off-flame", "-p", fixture.pid, "-d", 2).expect()

    def leaves(result, function):
        return {frames[-1] for frames, _ in result.stacks if function in frames}

    for name, call in CLIENTS.items():
        client, server = leaves(shown, f"ask_{name}"), leaves(everything, f"serve_{name}")
        assert f"[{call}]" in client and not any("client" in x for x in client), f"{name}: {client}"
        assert f"[{call} on a client's socket]" in server and f"[{call}]" not in server, f"{name}: {server}"
        assert not leaves(shown, f"serve_{name}") - {"[run queue]"}, f"{name}: {yrt.show(shown.stacks, 20)}"
    assert leaves(shown, "ask_deeply") - {"[run queue]"} == {"[epoll]"}, yrt.show(shown.stacks, 20)
    assert not leaves(shown, "loop_of_events") - {"[run queue]"}, yrt.show(shown.stacks, 20)
    assert "[epoll]" in leaves(everything, "loop_of_events"), yrt.show(everything.stacks, 20)
    for kind in "epoll", "poll", "select", "recv":
        call = "receive" if kind == "recv" else kind
        assert leaves(shown, f"miss_{kind}") - {"[run queue]"} == {f"[{call}]"}, yrt.show(shown.stacks, 40)
        assert not leaves(shown, f"hear_{kind}") - {"[run queue]"}, yrt.show(shown.stacks, 40)
        assert f"[{call}]" in leaves(everything, f"hear_{kind}"), yrt.show(everything.stacks, 40)
    hidden = {x for x in shown.stats["idle_by"] if "client" in x}
    assert hidden == {"[receive on a client's socket]", "[poll on a client's socket]"}, shown.stats["idle_by"]


POOL = """
import concurrent.futures, time
pool = concurrent.futures.ThreadPoolExecutor(2)
list(pool.map(time.sleep, [0.1, 0.1]))
print(flush=True)
while True: time.sleep(0.01)
"""


def test_rule_is_named():
    """What hid waits, each by its name."""
    with yrt.Program(["/usr/bin/python3", "-c", POOL], stdout=subprocess.PIPE) as p:
        p.stdout.readline()
        result = yrt.run("off-flame", "--no-idle", "-p", p.pid, "-d", 1).expect()
    hidden = result.stats["idle_by"]
    assert list(hidden) == ["_worker"] and hidden["_worker"] == result.stats["idle_samples"], result.stats
    assert re.search(r"hidden as idle \([0-9.]+ s in _worker; --idle shows it\)", result.stderr), result.stderr


yrt.main(globals())
