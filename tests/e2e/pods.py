# SPDX-License-Identifier: Apache-2.0
"""Processes in cgroups named as Kubernetes names them. Not a test itself."""

import contextlib
import os
import uuid


def root():
    """Where cgroup v2 is mounted, alone or beside v1."""
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            _, at, kind, *_ = line.split()
            if kind == "cgroup2":
                return at
    raise AssertionError("no cgroup v2 is mounted here: a pod's cgroups can not be made")


def join(cgroup, pid):
    with open(os.path.join(cgroup, "cgroup.procs"), "w") as procs:
        procs.write(str(pid))


def own_cgroup():
    with open("/proc/self/cgroup") as lines:
        path = next(line.rstrip("\n")[3:] for line in lines if line.startswith("0::"))
    return os.path.join(root(), path.lstrip("/"))


class Pod:
    """
    A pod with a container, as kubelet's systemd driver names them, and with others. Processes are moved out before it
    goes.
    """

    def __init__(self, others=0):
        self.uid = str(uuid.uuid4())
        self.containers = [uuid.uuid4().hex * 2 for _ in range(1 + others)]
        self.container = self.containers[0]
        self.top = os.path.join(root(), f"yrt-test-{os.getpid()}-{self.uid[:8]}")
        slice = f"kubepods-burstable-pod{self.uid.replace('-', '_')}.slice"
        self.folders = [self.top, os.path.join(self.top, slice),
                        *(os.path.join(self.top, slice, f"cri-containerd-{c}.scope") for c in self.containers)]
        for folder in self.folders:
            os.mkdir(folder)

    def add(self, pid, container=0):
        join(self.folders[2 + container], pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for folder in self.folders[2:]:
            with open(os.path.join(folder, "cgroup.procs")) as procs:
                for pid in procs.read().split():
                    with contextlib.suppress(ProcessLookupError):
                        join(own_cgroup(), pid)
        for folder in reversed(self.folders):
            os.rmdir(folder)
