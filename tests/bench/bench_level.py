# SPDX-License-Identifier: Apache-2.0
"""
Memory of yrt over 10 minutes (BENCH_SECONDS) of sampling nginx: RSS and BPF maps stay level after the first tenth.
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import servers
import yrt

SECONDS = int(os.environ.get("BENCH_SECONDS", "600"))
GROWTH = 1.05


def rss_kb(pid):
    return next(
        int(line.split()[1]) for line in yrt.read(f"/proc/{pid}/status").splitlines() if line.startswith("VmRSS")
    )


def maps_kb(pid):
    """Memory locked by the BPF maps that the process holds."""
    total = 0
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        info = dict(line.split(":", 1) for line in yrt.read(f"/proc/{pid}/fdinfo/{fd}").splitlines() if ":" in line)
        if "map_type" in info:
            total += int(info.get("memlock", "0")) // 1024
    return total


with servers.Nginx(load=SECONDS + 30) as nginx:
    run = yrt.Run("lua-flame", "-p", nginx.workers()[0], "-d", SECONDS, "-F", 999).sampling()
    end, rows = time.monotonic() + SECONDS - 3, []
    while time.monotonic() < end:
        time.sleep(min(SECONDS / 40, 15))
        rows.append((rss_kb(run.process.pid), maps_kb(run.process.pid)))
    result = run.result(timeout=SECONDS + 60).expect()
settled, last = rows[len(rows) // 10], rows[-1]
failed = result.lost() > 0
print(f"{'over' if failed else 'ok  '} {result.samples} samples, lost {result.lost()}, cut {result.incomplete():.4%}")
for name, a, b in (("RSS", settled[0], last[0]), ("BPF maps", settled[1], last[1])):
    over = b > a * GROWTH
    failed |= over
    print(f"{'over' if over else 'ok  '} {name}: {a} kB settled, {b} kB after {SECONDS} s, limit {GROWTH} times")
sys.exit(failed)
