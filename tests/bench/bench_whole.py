# SPDX-License-Identifier: Apache-2.0
"""
What `yrt flame -a` costs beside some 200 processes, most of them idle (tests/e2e/crowd.py), and beside 2,000 that
sleep: CPU time, memory, what was lost or cut. Both are in a pid namespace of their own: what else runs on the machine
is not sampled. Most of it is paid once, when yrt starts and first sees a program; what each further second costs is the
difference of two runs.

	YRT=build/release/yrt YRT_BUILD=build/release YRT_SOURCE=. python3 tests/bench/bench_whole.py [SECONDS]
"""

import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import crowd
import yrt

RATE = 19
SECONDS = 60
SHORT = 15  # a run that has little but what is paid once
LIMITS = {"cpu_percent": 1, "max_rss_kb": 80 << 10}
SLEEPERS = """
import os, time
for i in range(2000):
    if os.fork() == 0:
        time.sleep(i / 2000)
        while True: time.sleep(1)
print(flush=True)
time.sleep(1000)
"""


def measure(what, seconds, cache):
    result = yrt.run(
        "flame", "-a", "-d", seconds, "-F", RATE, env={"YRT_CACHE_DIR": cache}, timeout=seconds + 60
    ).expect()
    st, over = result.stats, False
    for key, limit in LIMITS.items():
        over |= st[key] > limit
        print(f"{'over' if st[key] > limit else 'ok  '} {what}: {key} {st[key]:.2f}, limit {limit}")
    print(
        f"     {st['samples']} samples, {st['processes']} processes, {st['map_kb']} kB of maps, armed after"
        f" {st['armed_ms']:.0f} ms; lost {st['lost']}; cut {st['truncated']}",
        flush=True,
    )
    return over, st["cpu_percent"] / 100 * seconds


def main(seconds):
    over = False
    with tempfile.TemporaryDirectory() as cache:
        with crowd.Crowd():
            for turn in "empty", "filled":
                failed, used = measure(f"200 processes, {turn} cache", seconds, cache)
                over |= failed
            _, once = measure(f"the same for {SHORT} s", SHORT, cache)
            print(
                f"     {once:.2f} s of CPU time in {SHORT} s; each second after that"
                f" {(used - once) / (seconds - SHORT):.2%}"
            )
        group = subprocess.Popen([sys.executable, "-c", SLEEPERS], stdout=subprocess.PIPE, start_new_session=True)
        try:
            group.stdout.readline()
            over |= measure("2,000 that sleep", seconds, cache)[0]
        finally:
            os.killpg(group.pid, signal.SIGKILL)
            group.wait()
    return over


if __name__ == "__main__":
    if os.getpid() != 1:
        os.execvp("unshare", ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv])
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
