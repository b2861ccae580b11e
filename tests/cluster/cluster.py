# SPDX-License-Identifier: Apache-2.0
"""
A Kubernetes of one node: etcd, API server, controllers, scheduler, containerd and kubelet as build.sh makes them, a
registry of images at localhost:5000, in mount, network, UTS and pid namespaces of their own, so that all of it ends
with one process. By hand:

    sh build.sh DIR; python3 cluster.py DIR COMMAND...

runs the command when the node is ready, with KUBECONFIG set and kubectl's API at 127.0.0.1 in that network namespace.
"""

import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NODE = "10.89.0.1"
TOKEN = "cluster"
API = "https://127.0.0.1:6443"

CONTAINERD = """version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost:5000/pause"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{state}/cni"
"""
CNI = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": "10.88.0.0/24"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
                "dataDir": "/run/cni",
            },
        }
    ],
}
KUBELET = {
    "kind": "KubeletConfiguration",
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs",
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "clusterDNS": [NODE],
    "failCgroupV1": False,
    "failSwapOn": False,
    "oomScoreAdj": 0,
    "makeIPTablesUtilChains": False,
    "evictionHard": {"memory.available": "100Mi"},
}


def write(path, text):
    with open(path, "w") as file:
        file.write(text if isinstance(text, str) else json.dumps(text))
    return path


def wait_for(what, done, seconds=240):
    for _ in range(seconds * 5):
        if done():
            return
        time.sleep(0.2)
    raise AssertionError(f"the cluster is not ready: {what}")


def succeeds(*words):
    return subprocess.run(words, capture_output=True).returncode == 0


class Cluster:
    """The programs, in the namespaces that this process is in already."""

    def __init__(self, programs, state):
        self.state, self.running = state, []
        os.environ["PATH"] = f"{programs}/bin:/usr/lib/cni:{os.environ['PATH']}:/usr/sbin:/sbin"
        os.environ["KUBECONFIG"] = f"{state}/kubeconfig"

    def start(self, name, *words):
        with open(f"{self.state}/{name}.log", "w") as log:
            self.running.append(
                subprocess.Popen([name, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.state)
            )

    def mounts(self):
        """Directories of this machine that these programs write to are others here."""
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        for name in "kubelet", "containerd":
            os.makedirs(f"{self.state}/{name}")
            os.makedirs(f"/var/lib/{name}", exist_ok=True)
            subprocess.run(["mount", "--bind", f"{self.state}/{name}", f"/var/lib/{name}"], check=True)
        subprocess.run(["mount", "--make-shared", "/var/lib/kubelet"], check=True)
        plain = write(f"{self.state}/registries", '[[registry]]\nlocation = "localhost:5000"\ninsecure = true\n')
        subprocess.run(["mount", "--bind", plain, "/etc/containers/registries.conf"], check=True)
        os.makedirs(f"{self.state}/log")
        subprocess.run(["mount", "--bind", f"{self.state}/log", "/var/log"], check=True)

    def network(self):
        for words in (
            "link set lo up",
            "link add node0 type bridge",
            f"addr add {NODE}/24 dev node0",
            "link set node0 up",
            f"route add default dev node0 src {NODE}",
        ):
            subprocess.run(["ip", *words.split()], check=True)
        write("/proc/sys/net/ipv4/ip_forward", "1")
        os.makedirs(f"{self.state}/cni")
        write(f"{self.state}/cni/10-pods.conflist", CNI)

    def pause_image(self):
        """What holds a pod's namespaces: a program that does nothing, linked statically."""
        with tempfile.TemporaryDirectory() as root:
            source = write(f"{root}/pause.c", "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
            subprocess.run(["cc", "-O2", "-static", "-o", f"{root}/pause", source], check=True)
            os.unlink(source)
            push(root, "pause", ["/pause"])

    def __enter__(self):
        self.mounts()
        self.network()
        s = self.state
        key = f"{s}/service.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        write(f"{s}/tokens.csv", f"{TOKEN},admin,admin,system:masters\n")
        write(
            f"{s}/kubeconfig",
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": API, "insecure-skip-tls-verify": True}}],
                "users": [{"name": "u", "user": {"token": TOKEN}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "c",
            },
        )
        self.start("etcd", "--data-dir", f"{s}/etcd", "--unsafe-no-fsync")
        self.start("registry", "localhost:5000")
        self.start("containerd", "-c", write(f"{s}/containerd.toml", CONTAINERD.format(state=s)))
        self.start(
            "kube-apiserver",
            "--etcd-servers=http://127.0.0.1:2379",
            f"--advertise-address={NODE}",
            f"--cert-dir={s}/certificates",
            "--service-cluster-ip-range=10.90.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={s}/tokens.csv",
            "--authorization-mode=RBAC",
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged",
        )
        wait_for("kube-apiserver", lambda: succeeds("kubectl", "get", "--raw", "/readyz"))
        kubeconfig = f"--kubeconfig={s}/kubeconfig"
        self.start(
            "kube-controller-manager",
            kubeconfig,
            "--leader-elect=false",
            f"--service-account-private-key-file={key}",
            f"--root-ca-file={s}/certificates/apiserver.crt",
        )
        self.start("kube-scheduler", kubeconfig, "--leader-elect=false")
        self.pause_image()
        self.start(
            "kubelet",
            kubeconfig,
            f"--config={write(f'{s}/kubelet.json', KUBELET)}",
            "--hostname-override=node",
            f"--node-ip={NODE}",
        )
        wait_for("the node", lambda: succeeds("kubectl", "wait", "--for=condition=Ready", "node/node", "--timeout=2s"))
        wait_for("its account", lambda: succeeds("kubectl", "get", "serviceaccount", "default"))
        return self

    def __exit__(self, *_):
        for process in reversed(self.running):
            process.terminate()
        for process in reversed(self.running):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)


def push(root, name, entrypoint):
    """An image of the files of root, into the registry."""
    container = subprocess.check_output(["buildah", "from", "scratch"], text=True).strip()
    try:
        for words in (
            ["copy", "-q", container, root, "/"],
            ["config", "--entrypoint", json.dumps(entrypoint), container],
            ["commit", "-q", container, f"docker://localhost:5000/{name}"],
        ):
            subprocess.run(["buildah", *words], check=True, stdout=subprocess.DEVNULL)
    finally:
        subprocess.run(["buildah", "rm", container], stdout=subprocess.DEVNULL)


def remove_cgroups():
    """kubelet leaves the cgroups of its pods. What was killed in them may not be gone yet."""
    for _ in range(50):
        left = [base for base, _, _ in os.walk("/sys/fs/cgroup", topdown=False) if "/kubepods" in base]
        for base in left:
            with contextlib.suppress(OSError):
                os.rmdir(base)
        if not any(map(os.path.exists, left)):
            return
        time.sleep(0.2)


def run(programs, command):
    """The command, in a cluster of its own. Returns its exit status."""
    with tempfile.TemporaryDirectory(prefix="yrt-cluster-", dir=os.environ.get("YRT_CLUSTER_STATE")) as state:
        words = "unshare --mount --net --uts --pid --fork --kill-child --mount-proc --propagation private".split()
        try:
            return subprocess.run([*words, sys.executable, __file__, "--inside", programs, state, *command]).returncode
        finally:
            kept = os.environ.get("YRT_CLUSTER_LOGS")
            for name in glob.glob(f"{state}/*.log") if kept else []:
                shutil.copy(name, kept)
            remove_cgroups()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which kills the child, and with it all in its namespaces
    if sys.argv[1] != "--inside":
        if not os.access(f"{sys.argv[1]}/bin/kube", os.X_OK) or not shutil.which("kubectl"):
            print(f"skip: sh tests/cluster/build.sh {sys.argv[1]} was not run, or kubectl is missing")
            return 77
        return run(os.path.abspath(sys.argv[1]), sys.argv[2:])
    with Cluster(sys.argv[2], sys.argv[3]):
        return subprocess.run(sys.argv[4:]).returncode


if __name__ == "__main__":
    sys.exit(main())
