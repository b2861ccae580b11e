# SPDX-License-Identifier: Apache-2.0
"""
The flame graph page of a profile of 200,000 nodes in headless Chromium: from the start of loading until it is drawn,
and how often it is drawn anew while it zooms. Ratios against the limits; the page itself, without its data, against its
size.
"""

import os
import statistics
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), d) for d in ("tools", "e2e")]
from pages import MKPROFILE, big_profile  # noqa: E402
from webdriver import Browser  # noqa: E402

NODES, OPEN_MS, FRAME_MS, PAGE_BYTES = 200000, 1000, 1000 / 60, 60000
OPENED = """const done = arguments[0];
    requestAnimationFrame(() => requestAnimationFrame(() => done([tree.n, performance.now()])))"""
# A zoom takes MOVE_MS: for each of some wide frames to it and back, the time between two animation frames and that of
# drawing one.
ZOOM = """const done = arguments[0], draws = [], gaps = [], plainDraw = draw;
    let last = 0, moves = [];
    for (let i = 1; i < tree.n && moves.length < 20; i++)
        if (tree.total[i] > tree.total[0] / 200 && tree.depth[i] % 4 === 3)
            moves.push(i, 0);
    const frame = (now) => {
        if (last)
            gaps.push(now - last);
        last = now;
        if (performance.now() - movedAt > MOVE_MS + 20) {
            if (!moves.length)
                return done({ gaps, draws });
            zoomTo(moves.shift(), false);
            last = 0;
        }
        const before = performance.now();
        draw(now);
        cancelAnimationFrame(pending);
        pending = 0;
        draws.push(performance.now() - before);
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);"""


def show(what, value, limit, unit):
    print(f"{'over' if value > limit else 'ok  '} {what}: {value:.1f} {unit}, limit {limit:.1f}: {value / limit:.2f}")
    return value > limit


def asynchronous(b, script):
    return b.send("POST", "/execute/async", {"script": script, "args": []})


with tempfile.TemporaryDirectory(prefix="yrt-bench-") as directory, Browser(1500, 1000) as b:
    def write(name, stacks):
        path = os.path.join(directory, name)
        with open(path, "wb") as out:
            subprocess.run([MKPROFILE, "html"], input=stacks.encode(), stdout=out, check=True)
        return path

    url = "file://" + write("big.html", big_profile(NODES + 10000))
    opened = []
    for _ in range(3):
        b.open("about:blank")
        b.open(url)
        nodes, ms = asynchronous(b, OPENED)
        opened.append(ms)
    assert nodes >= NODES, nodes
    times = asynchronous(b, ZOOM)
    failed = show(f"opening {nodes} nodes", statistics.median(opened), OPEN_MS, "ms")
    failed |= show(
        "from one frame of a zoom to the next, median", statistics.median(times["gaps"]), FRAME_MS * 1.05, "ms"
    )
    failed |= show("drawing one, median", statistics.median(times["draws"]), FRAME_MS / 2, "ms")
    failed |= show("the page without data", os.path.getsize(write("empty.html", "")) / 1000, PAGE_BYTES / 1000, "kB")
    slow = sorted(times["draws"])[int(len(times["draws"]) * 0.95)]
    print(
        f"     {len(times['gaps'])} frames, {sum(g < FRAME_MS * 1.5 for g in times['gaps'])} of them on time; 95 %"
        f" drawn in {slow:.1f} ms"
    )
sys.exit(failed)
