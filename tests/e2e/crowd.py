# SPDX-License-Identifier: Apache-2.0
"""
A machine of 200 processes as it may be found: most of them idle, eleven at work a tenth of their time. Not a test
itself.
"""

import contextlib
import re
import subprocess
import sys

import go
import java
import servers
import yrt

# Each prints a line first; what is not busy waits, or wakes up once a second.
IDLE = {
    "bash": (["bash", "-c", "echo; while :; do read -t 1; done"], 40),
    "dash": (["dash", "-c", "echo; (read line); :"], 30),  # and its child, which ends with its stdin
    "python": (
        [sys.executable, "-c", "import json, threading, time\nprint(flush=True)\nwhile True: time.sleep(1)"],
        30,
    ),
    "perl": (["perl", "-e", '$| = 1; print "\\n"; sleep 1 while 1'], 25),
    "lua": (["lua5.4", "-e", "print() io.stdout:flush() io.read()"], 10),
    "luajit": (
        [
            "luajit",
            "-e",
            (
                "print() io.stdout:flush() local ffi = require 'ffi' ffi.cdef 'int sleep(int)' while true do"
                " ffi.C.sleep(1) end"
            ),
        ],
        10,
    ),
}
# 10 ms of work, 90 ms of sleep: (what its stacks have, command).
BUSY = {
    "python": (
        re.compile(r"^crowd_python \("),
        [
            sys.executable,
            "-c",
            """
import time
print(flush=True)
def crowd_python():
    end = time.monotonic() + 0.01
    while time.monotonic() < end:
        sum(range(500))
while True:
    crowd_python()
    time.sleep(0.09)
""",
        ],
    ),
    "perl": (
        re.compile(r"^main::crowd_perl\b"),
        [
            "perl",
            "-e",
            """
use Time::HiRes qw(sleep time); $| = 1; print "\\n";
sub crowd_perl { my ($end, $n) = (time + 0.01, 0); while (time < $end) { $n += $_ for 1 .. 100 } }
while (1) { crowd_perl(); sleep(0.09) }
""",
        ],
    ),
    "luajit": (
        re.compile(r"^crowd_lua\b"),
        [
            "luajit",
            "-e",
            """
local ffi = require 'ffi'; ffi.cdef 'int usleep(unsigned)'; print(); io.stdout:flush()
local function crowd_lua() local e, n = os.clock() + 0.01, 0; while os.clock() < e do for i = 1, 100 do n = n + i % 7 end end return n end
while true do local n = crowd_lua(); ffi.C.usleep(90000) end
""",
        ],
    ),
    "lua": (
        re.compile(r"^crowd_puc\b"),
        [
            "lua5.4",
            "-e",
            """
print() io.stdout:flush()
local function crowd_puc() local e, n = os.clock() + 0.01, 0; while os.clock() < e do for i = 1, 100 do n = n + i % 7 end end return n end
while true do local n = crowd_puc(); os.execute('sleep 0.09') end
""",
        ],
    ),
}
JVMS = 3
WORKERS = 20  # of nginx


class Crowd:
    """busy: {name: (what its stacks have, process)}"""

    def __init__(self, scale=1):
        self.stack = contextlib.ExitStack()
        self.busy = {}
        try:
            self.fill(scale)
        except BaseException:
            self.stack.close()
            raise

    def spawn(self, command):
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.stack.callback(yrt.stop, process)
        return process

    def fill(self, scale):
        idle = [self.spawn(command) for command, n in IDLE.values() for _ in range(round(n * scale))]
        for name, (frame, command) in BUSY.items():
            for _ in range(2):
                process = self.spawn(command)
                idle.append(process)
            self.busy[name] = frame, process
        self.busy["go"] = "main.crowdGo", self.spawn([go.build("pulse")])
        idle.append(self.busy["go"][1])
        for process in idle:
            assert process.stdout.readline() == b"\n", process.args
        for i in range(JVMS):
            jvm = self.stack.enter_context(java.Java("pulse", 1000, 0 if i else 10, timeout=1000))
            if not i:
                self.busy["java"] = re.compile(r"^pulse\.work\b"), jvm
        native = yrt.Fixture("periodic", seconds=1000, wait=False)
        self.stack.enter_context(native)
        self.busy["native"] = "work", native
        self.stack.enter_context(servers.Nginx(workers=WORKERS, load=1))

    def cpu_seconds(self):
        return {name: yrt.cpu_seconds(process.pid) for name, (_, process) in self.busy.items()}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()
