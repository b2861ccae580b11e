# SPDX-License-Identifier: Apache-2.0
"""
The OpenTelemetry eBPF profiler as a peer, which sends to a real Collector, as it does not begin without one. Not a
benchmark itself.

YRT_OTEL: the program, else ebpf-profiler on PATH. `go build` makes it from its sources; where prlimit() is refused,
rlimit/rlimit.go has to go on without it. YRT_OTELCOL: the Collector, which fixtures/collector/get.sh builds.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import servers
import stores
import yrt
from bpf_cost import programs

PROFILER = os.environ.get("YRT_OTEL") or shutil.which("ebpf-profiler")
COLLECTOR = os.environ.get("YRT_OTELCOL")
SAMPLES = "Attached tracer program"  # of its log
CONFIG = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{take}", max_recv_msg_size_mib: 64}}}}}}}}
exporters: {{otlp_http: {{profiles_endpoint: "http://127.0.0.1:{give}/v1development/profiles", compression: none}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [otlp_http]}}}}
"""


def missing():
    """Why there is no peer; None: there is one."""
    if not PROFILER:
        return "no OpenTelemetry profiler: YRT_OTEL is not set, and ebpf-profiler is not on PATH"
    return None if COLLECTOR else "no OpenTelemetry profiler: YRT_OTELCOL names no Collector for it"


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextlib.contextmanager
def collector():
    """(where it takes profiles by gRPC, the store that gets them)"""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config, stores.Store() as store:
        port = servers.free_port()
        config.write(CONFIG.format(take=port, give=store.port))
        config.flush()
        process = subprocess.Popen(
            [COLLECTOR, "--config", f"file:{config.name}", "--feature-gates", "service.profilesSupport"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yrt.until(lambda: listens(port) or process.poll() is not None, "the Collector listens")
            assert process.poll() is None, f"{COLLECTOR} ended with {process.returncode}"
            yield f"127.0.0.1:{port}", store
        finally:
            yrt.stop(process)


@contextlib.contextmanager
def profiler(at, rate, *options):
    """Its process, once it samples."""
    words = [PROFILER, f"-collection-agent={at}", "-disable-tls", f"-samples-per-second={rate}", *options]
    with tempfile.NamedTemporaryFile("w") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yrt.until(lambda: SAMPLES in yrt.read(log.name) or process.poll() is not None, "the peer samples", 120)
            yield process
            assert process.poll() is None, f"the peer ended with {process.returncode}\n{yrt.read(log.name)[-2000:]}"
        finally:
            yrt.stop(process)


def us_a_run(at, rate, cpu, ready_s, seconds, *options):
    """Microseconds of BPF time of each of its runs, once it has its tables: all ticks of this CPU are samples."""
    with profiler(at, rate, *options, f"-pin-cpu-ids={cpu}") as process:
        time.sleep(ready_s)
        before = programs(process.pid)
        time.sleep(seconds)
        after = programs(process.pid)
    ns, runs = (sum(after[p][i] - before.get(p, (0, 0))[i] for p in after) for i in (0, 1))
    return ns / 1000 / runs
