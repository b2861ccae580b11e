# SPDX-License-Identifier: Apache-2.0
"""
Processes of several pods, containers and units in one picture: a level for each, named as people call it, in every
format. What kubelet mounts into a container is mounted here in the same places (pkg/kubelet/kubelet_pods.go).
"""

import collections
import contextlib
import os
import subprocess
import sys
import tempfile

import pods
import yrt

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
import oracles  # noqa: E402

BURN = "print qq(\\n); 1 while 1"
MOUNT = """
set -e
mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount
printf %s "$4" > /run/secrets/kubernetes.io/serviceaccount/namespace
mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/hostname
touch /run/log && mount --bind "$3" /run/log
shift 4
exec "$@"
"""


def write(directory, name, text):
    path = os.path.join(directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        out.write(text)
    return path


class Machine:
    """Burners: processes {name: Popen}; the pods' UIDs."""

    def __init__(self, directory):
        self.directory, self.stack, self.processes = directory, contextlib.ExitStack(), {}

    def burn(self, name, words=()):
        process = subprocess.Popen([*words, "perl", "-e", f"$| = 1; {BURN}", name], stdout=subprocess.PIPE)
        self.stack.callback(yrt.stop, process)
        assert process.stdout.readline() == b"\n"
        self.processes[name] = process
        return process.pid

    def inside(self, name, pod, container, hosts, hostname, namespace):
        """A process with the mounts of a container."""
        at = os.path.join(self.directory, name)
        files = [write(at, "hosts", hosts), write(at, "hostname", hostname + "\n"),
                 write(at, f"pods/{pod.uid}/containers/{container}/01234567", ""), namespace]
        return self.burn(name, ["unshare", "-m", "sh", "-c", MOUNT, "sh", *files])

    def __enter__(self):
        with self.stack:
            self.fill()
            self.stack = self.stack.pop_all()
        return self

    def fill(self):
        enter = self.stack.enter_context
        self.web, self.net, self.bare = enter(pods.Pod(others=1)), enter(pods.Pod()), enter(pods.Pod())
        kube, host = (
            "# Kubernetes-managed hosts file.\n127.0.0.1 localhost\n",
            "# Kubernetes-managed hosts file (host network).\n",
        )
        self.web.add(self.inside("envoy", self.web, "envoy", kube, "web-7f9c", "shop"))
        self.web.add(self.inside("app", self.web, "app", kube, "web-7f9c", "shop"), 1)
        self.net.add(self.inside("proxy", self.net, "kube-proxy", host, "node-1", "kube-system"))
        self.bare.add(self.burn("bare"))
        self.unit = os.path.join(pods.root(), f"yrt{os.getpid()}.service")
        os.mkdir(self.unit)
        self.stack.callback(os.rmdir, self.unit)
        pods.join(self.unit, self.burn("unit"))
        self.burn("host")

    def __exit__(self, *_):
        self.stack.close()


def record(recording, *pids):
    """Until each process has some samples."""
    at = yrt.Run("record", "-p", ",".join(map(str, pids)), "-F", 499, "-o", recording, output=False).sampling()
    for pid in pids:
        yrt.busy_for([pid], 0.05)
    at.interrupt()
    at.result().expect()


def render(recording, form, *more):
    to = recording + ".rendered"
    yrt.run("render", recording, "-f", form, "-o", to, *more, output=False, stats=False).expect()
    with open(to, "rb") as rendered:
        return rendered.read().decode(errors="replace")


def levels(text):
    """Counts by what is above each process, and the argument that tells processes apart."""
    found = collections.Counter()
    for line in text.splitlines():
        frames, n = line.rsplit(" ", 1)
        frames = frames.split(";")
        process = next(i for i, f in enumerate(frames) if f.startswith("perl "))
        found[(*frames[:process], frames[process].split()[-3])] += int(n)
    return found


def where(found):
    return {name: above for *above, name in found}


def expected(machine):
    pod = "pod shop/web-7f9c"
    return {
        "envoy": [pod, "container envoy"],
        "app": [pod, "container app"],
        "proxy": [f"pod kube-system/{machine.net.uid} (kube-proxy)"],
        "bare": [f"pod {machine.bare.uid} ({machine.bare.container[:12]})"],
        "unit": [os.path.basename(machine.unit)],
        "host": ["host"],
    }


def test_levels():
    with tempfile.TemporaryDirectory() as directory, Machine(directory) as machine:
        recording, pids = os.path.join(directory, "x.yrt"), [p.pid for p in machine.processes.values()]
        own = pods.own_cgroup()
        record(recording, *pids)
        found = where(levels(render(recording, "folded")))
        wanted = expected(machine)
        if own != pods.root():
            wanted["host"] = found["host"]  # the tests' own cgroup has a name
        assert found == wanted, (found, wanted)
        assert len(found["host"]) == 1, found
        check_formats(recording, directory, machine)
        check_one(directory, machine)


def check_formats(recording, directory, machine):
    path = os.path.join(directory, "x.pb.gz")
    yrt.run("render", recording, "-o", path, output=False, stats=False).expect()
    profile = oracles.Pprof(path)
    profile.check()
    labels = {seen["process"].split()[-1]: seen for s in profile.profile["sample"] for seen in [profile.labels(s)]}
    of = labels["envoy"]
    assert (of["pod"], of["namespace"], of["container_name"]) == ("web-7f9c", "shop", "envoy"), of
    assert (of["pod_uid"], of["container"]) == (machine.web.uid, machine.web.container[:12]), of
    assert labels["unit"]["unit"] == os.path.basename(machine.unit), labels["unit"]
    assert not any(
        f.startswith(("pod ", "container ")) for frames, _ in profile.stacks() for f in frames
    ), "a pod is a frame"
    again, first = (where(levels(render(p, "folded"))) for p in (path, recording))
    assert again == first, (again, first)
    assert not any("pod " in line for line in render(recording, "folded", "--processes", "none").splitlines())
    by_program = render(recording, "folded", "--processes", "program")
    assert "pod shop/web-7f9c;container envoy;perl;" in by_program, by_program
    page = render(recording, "html")
    assert "pod shop/web-7f9c" in page and f"pod={machine.web.uid}" in page
    for form in "txt", "svg", "speedscope":
        assert "pod shop/web-7f9c" in render(recording, form), form
    for form in "firefox", "chrome", "perf", "otlp":
        assert render(recording, form), form
    same = os.path.join(directory, "same.folded")
    yrt.run("diff", recording, recording, "-o", same, output=False, stats=False).expect()
    # pods have other names in each run
    assert "perl" in yrt.read(same) and "pod " not in yrt.read(same), yrt.read(same)


def check_one(directory, machine):
    """Processes of one container alone have no such level, those of one pod that of its containers."""
    recording = os.path.join(directory, "y.yrt")
    pair = [machine.processes[name].pid for name in ("envoy", "app")]
    record(recording, *pair)
    assert where(levels(render(recording, "folded"))) == {"envoy": ["container envoy"], "app": ["container app"]}
    machine.web.add(pair[1], 0)
    machine.web.add(machine.processes["bare"].pid, 0)
    pids = [machine.processes[name].pid for name in ("envoy", "bare")]
    record(recording, *pids)
    assert where(levels(render(recording, "folded"))) == {"envoy": [], "bare": []}


yrt.main(globals())
