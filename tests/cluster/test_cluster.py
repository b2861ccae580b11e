# SPDX-License-Identifier: Apache-2.0
"""
The lines of frontends/job/README.md as they are, in a cluster (cluster.py) with an Envoy that runs a Lua filter under
load: flame graphs come out, by kubectl debug and by the Job. Run by `cluster.py DIR python3 test_cluster.py`.
"""

import contextlib
import glob
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), name) for name in ("e2e", "tools")]
import cluster  # noqa: E402
import image  # noqa: E402
import lua  # noqa: E402
import oracles  # noqa: E402
import servers  # noqa: E402
import stores  # noqa: E402
import yrt  # noqa: E402

PORT = 8080


DEBUG, JOB = "kubectl debug", "sed"


def kubectl(*words, timeout=120, input=None):
    return subprocess.run(
        ["kubectl", *words], check=True, stdout=subprocess.PIPE, text=True, input=input, timeout=timeout
    ).stdout


def readme(begins, change=lambda line: line):
    """Runs the line of the README that begins so, with this cluster's names. Returns a directory with what it wrote."""
    block = yrt.read(os.path.join(image.JOB, "README.md")).split("```sh\n")[1].split("```")[0]
    line, = [line for line in block.splitlines() if line.startswith(begins)]
    line = re.sub(r"\bPOD\b(?!-)", "front", line.replace("REGISTRY", "localhost:5000"))
    line = change(line.replace("build/release/yrt", yrt.YRT).replace("frontends/", f"{yrt.SOURCE}/frontends/"))
    directory = tempfile.TemporaryDirectory()
    run = subprocess.run(
        ["sh", "-ec", line], cwd=directory.name, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180
    )
    assert run.returncode == 0, (line, run.stdout[-500:], run.stderr[-500:])
    return directory, run


def push_images():
    """yrt's as the README has it; Envoy's with fixtures/envoy, which listens to all addresses."""
    readme("sh ")
    fixtures = os.path.join(yrt.SOURCE, "fixtures", "envoy")
    with tempfile.TemporaryDirectory() as root:
        image.fill(root, servers.envoy_program(), "/usr/local/bin/envoy")
        os.makedirs(f"{root}/etc/envoy")
        os.chmod(f"{root}/etc/envoy", 0o777)  # it is not root, and has sockets there
        for name in "envoy.yaml", "lds.yaml", "filter.lua":
            source = f"{fixtures}/{name}" if name.endswith("lua") else f"{fixtures}/{name}.in"
            text = yrt.read(source).replace("@DIR@", "/etc/envoy").replace("@PORT@", str(PORT)).replace("@JIT@", "")
            cluster.write(f"{root}/etc/envoy/{name}", text.replace("address: 127.0.0.1", "address: 0.0.0.0"))
        command = "/usr/local/bin/envoy -c /etc/envoy/envoy.yaml --concurrency 2 -l warning"
        cluster.push(root, "envoy", command.split())


def listens(at):
    with contextlib.suppress(OSError), socket.create_connection((at, PORT), timeout=5):
        return True
    return False


@contextlib.contextmanager
def pod(name, manifest, seconds=60):
    """A pod that runs, with its Envoy under the load of wrk. Gives its UID."""
    kubectl("create", "-f", "-", input=manifest)
    wrk = None
    try:
        kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=90s")
        at, uid = kubectl("get", "pod", name, "-o", "jsonpath={.status.podIP} {.metadata.uid}").split()
        yrt.until(lambda: listens(at), "Envoy listens")
        fixtures = os.path.join(yrt.SOURCE, "fixtures", "envoy")
        words = ["wrk", "-t1", "-c2", f"-d{seconds}", "-s", f"{fixtures}/load.lua", f"http://{at}:{PORT}/"]
        wrk = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        yield uid
    finally:
        if wrk:
            yrt.stop(wrk)
        kubectl("delete", "pod", name, "--grace-period=1")


def front(**kw):
    return pod("front", yrt.read(os.path.join(HERE, "envoy.yaml")), **kw)


def job(words, drop=None):
    """The README's Job, with other arguments and perhaps without a capability. Returns its name."""
    edit = f"s|args: .*|args: {json.dumps(words)}|" + (f"; /- {drop} #/d" if drop else "")
    _, run = readme(JOB, lambda line: line.replace("| kubectl", f"| sed '{edit}' | kubectl"))
    return re.search(r"job\S*/(\S+) created", run.stdout)[1]


def log(name, condition="complete"):
    """What the Job wrote, when it is over."""
    kubectl("wait", f"--for=condition={condition}", f"job/{name}", "--timeout=100s")
    return kubectl("logs", f"job/{name}")


def scripts(stacks):
    return sum(n for frames, n in stacks if any(map(image.SCRIPT.match, frames)))


def test_debug():
    """The README's second line: a page of an Envoy in a pod that admits no root."""
    with front():
        directory, _ = readme(DEBUG, lambda line: line.replace("-d 30", "-d 8 -F 499"))
        with directory:
            text = yrt.read(os.path.join(directory.name, "envoy.html"))
    image.check_picture(lua.parse_page(text))


def test_job_page():
    """The README's third line, without a store: the page is the Job's log."""
    with front() as uid:
        page = f"lua-flame --select pod={uid},exe=envoy --wait -d 8 -F 499 -q -o - -f html".split()
        text = log(job(page))
    text = "\n".join(line for line in text.split("\n") if not line.startswith("yrt:"))  # as the job's README has it
    begin, end = "<!doctype html>", "</html>"
    image.check_picture(lua.parse_page(text[text.index(begin) : text.index(end) + len(end)]))


def envoys(uid):
    """The Envoys of a pod, by their pids on the node."""
    found = []
    for directory in glob.glob("/proc/[0-9]*"):
        if yrt.read(f"{directory}/comm") == "envoy\n" and uid in yrt.read(f"{directory}/cgroup"):
            found.append(int(directory[6:]))
    return found


def test_job_restart():
    """Envoy is killed while the Job samples, and kubelet starts another container: the result has both."""
    with front() as uid:
        name = job(f"lua-flame --select pod={uid},exe=envoy --wait -d 20 -F 499 -q -o - -f folded".split())
        kubectl("wait", "--for=condition=Ready", "pod", "-l", f"job-name={name}", "--timeout=60s")
        time.sleep(6)
        (first,) = envoys(uid)
        os.kill(first, signal.SIGKILL)
        yrt.until(lambda: set(envoys(uid)) - {first}, "kubelet starts another Envoy")
        (second,) = set(envoys(uid)) - {first}
        text = log(name)
    stacks = yrt.parse_folded("\n".join(line for line in text.splitlines() if not line.startswith("yrt: ")))
    for pid in first, second:
        own = [(frames, n) for frames, n in stacks if any(f.endswith(f"(pid {pid})") for f in frames[:3])]
        assert scripts(own) > 8, (pid, scripts(own), yrt.show(stacks))


def test_container():
    """A container's id as kubectl prints it."""
    with front():
        of = kubectl("get", "pod", "front", "-o", "jsonpath={.status.containerStatuses[0].containerID}")
        assert of.startswith("containerd://"), of
        text = log(job(f"lua-flame --select container={of} -d 4 -F 499 -q -o - -f folded".split()))
    assert "envoy_on_request" in text, text[-500:]


def test_refused():
    """The Job's log names the line of the manifest that is missing."""
    with front() as uid:
        words = f"lua-flame --select pod={uid},exe=envoy --wait -d 2 -q -o -".split()
        for name in "BPF", "PERFMON", "SYS_PTRACE":
            text = log(job(words, drop=name), condition="failed")
            assert f'"add: [{name}]"' in text, (name, text)


def test_sidecar():
    """The sidecar's manifest, beside an Envoy in a pod that admits no root: recordings come to the store."""
    envoy = yrt.read(os.path.join(HERE, "envoy.yaml")).split("      image: localhost:5000/envoy\n")[1]
    with stores.Store(address=cluster.NODE) as store:
        text = yrt.read(os.path.join(image.JOB, "sidecar.yaml"))
        text = text.replace("ENVOY-IMAGE\n", f"localhost:5000/envoy\n{envoy}").replace("IMAGE", "localhost:5000/yrt")
        text = text.replace("pyroscope:4040", f"{cluster.NODE}:{store.port}")
        text = text.replace("[watch,", "[watch, --every, '15',")
        admits = "\n  securityContext: {runAsNonRoot: true, runAsUser: 1337}"
        text = re.sub("(?m)^spec:$", f"spec:{admits}", text)
        with pod("envoy-watched", text, seconds=90) as uid:
            yrt.until(lambda: len(store.requests) > 2, "recordings come", seconds=100)
        at, _, body = store.requests[-1]
    assert "k8s_pod_uid%3D" + uid in at, at
    with tempfile.NamedTemporaryFile(suffix=".pb") as file:
        file.write(body)
        file.flush()
        stacks = oracles.merge(oracles.Pprof(file.name).stacks())
    assert scripts(stacks.items()) > 8, yrt.show(stacks.items())


if __name__ == "__main__":
    push_images()
    yrt.main(globals())
