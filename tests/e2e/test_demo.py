# SPDX-License-Identifier: Apache-2.0
"""fixtures/demo.sh, as a new user calls it: a picture, the loss line, and nothing left running."""

import os
import re
import signal
import subprocess
import tempfile

import servers
import yrt

DEMO = os.path.join(yrt.SOURCE, "fixtures", "demo.sh")
PORT = servers.free_port()


def listening():
    """Whether somebody listens on the demo's port."""
    wanted = f":{PORT:04X} 00000000:0000 0A"
    return wanted in yrt.read("/proc/net/tcp")


def start(dir):
    return subprocess.Popen(["sh", DEMO], cwd=dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, env={**os.environ, "DEMO_PORT": str(PORT)})


def test_demo():
    with tempfile.TemporaryDirectory() as dir:
        with start(dir) as demo:
            out, _ = demo.communicate(timeout=300)
        page = yrt.read(os.path.join(dir, "flame.html"))
        assert demo.returncode == 0, out
    assert "</html>" in page and "app.lua" in page, f"{len(page)} bytes\n{out}"
    assert "flame.html" in out and re.search(r"\d+ samples", out), out
    assert not listening(), "nginx is still there"


def test_stopped_midway():
    """TERM while it samples: everything it started ends."""
    with tempfile.TemporaryDirectory() as dir:
        with start(dir) as demo:
            for line in demo.stdout:
                if "is under load; sampling it" in line:
                    break
            demo.send_signal(signal.SIGTERM)
            out, _ = demo.communicate(timeout=300)
        assert demo.returncode == 143, f"{demo.returncode}: {out}"
    assert not listening(), "nginx is still there"


yrt.main(globals())
