# SPDX-License-Identifier: Apache-2.0
"""frontends/job: its manifests, and yrt with what they give it: their capabilities, pid namespaces, a pod's cgroups, a root that is read-only."""

import json
import os
import re
import subprocess
import sys
import tempfile

import pods
import stores
import yrt

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
import oracles  # noqa: E402

JOB = os.path.join(yrt.SOURCE, "frontends", "job")


def capabilities(manifest):
    """What a manifest adds, as setpriv has it: a list in brackets, or a line each."""
    with open(os.path.join(JOB, manifest)) as file:
        text = file.read().split("add:")[1]
    if text.lstrip().startswith("["):
        return re.findall(r"[A-Z_]+", text.split("]")[0])
    return re.findall(r"^ +- ([A-Z_]+)\b", text.split("volumeMounts")[0], re.M)


def limited(names):
    """The words that run a program with no other capabilities than these."""
    kept = "".join(f",+{name.lower()}" for name in names)
    return ["setpriv", f"--bounding-set=-all{kept}", "--inh-caps=-all", "--no-new-privs"]


def test_manifests_agree():
    """All list the same capabilities, each explained in the Job's."""
    names = capabilities("job.yaml")
    assert len(names) == 6 and all(capabilities(m) == names for m in ("sidecar.yaml", "ephemeral.yaml")), names
    with open(os.path.join(JOB, "job.yaml")) as file:
        text = file.read()
    assert all(re.search(rf"- {name} # \S", text) for name in names)


def test_node():
    """The Job: a pod of the node by its UID, with the listed capabilities and no more, and each of the needed ones is needed."""
    names = capabilities("job.yaml")
    with pods.Pod() as pod, yrt.Fixture("deep30", seconds=3) as fixture, tempfile.TemporaryDirectory() as dir, stores.Store() as store:
        pod.add(fixture.pid)
        at = yrt.Run("record", "--select", f"pod={pod.uid},exe=deep30", "-d", 4, "--push", f"otlp+http://127.0.0.1:{store.port}",
                     output=False, prefix=limited(names), cwd=dir).sampling()
        fixture.release()
        fixture.finish()
        at.result().expect()
        read = oracles.Otlp(store.requests[0][2])
        resource = read.resource()
        assert resource["k8s.pod.uid"] == pod.uid and resource["container.id"] == pod.container, resource
        assert resource["service.name"] == "deep30" and not os.listdir(dir), resource
        stacks = oracles.merge(read.stacks())
        assert sum(n for frames, n in stacks.items() if "f30" in frames) > 0.8 * sum(stacks.values()), stacks


def test_kernel_names():
    """With the listed capabilities the kernel's functions have names."""
    with yrt.Fixture("syscalls") as fixture:
        fixture.release()
        stacks = yrt.run("flame", "-p", fixture.pid, "-d", 1, "-F", 999, prefix=limited(capabilities("job.yaml"))).expect().stacks
        assert any("entry_SYSCALL" in f for frames, _ in stacks for f in frames), stacks[:5]


def test_without():
    """What is missing is reported by its name, and by the line of the manifest that gives it."""
    names = capabilities("job.yaml")
    with yrt.Fixture("deep30") as fixture:
        for missing in "BPF", "PERFMON", "SYS_PTRACE":
            result = yrt.run("flame", "-p", fixture.pid, "-d", 1, prefix=limited(set(names) - {missing}))
            assert result.code == yrt.PERMISSION and missing in result.stderr, (missing, result.code, result.stderr)


def test_sidecar():
    """A pid namespace of the pod's own, a root that is read-only: pids are those of the namespace."""
    names = capabilities("sidecar.yaml")
    with tempfile.TemporaryDirectory() as dir:
        script = ("mount -o remount,ro,bind / 2>/dev/null || mount --bind / / && mount -o remount,ro,bind /; "
                  f"{yrt.fixture_path('deep30')} 6 >/dev/null & "
                  + " ".join(limited(names)) + f" {yrt.YRT} watch --select exe=deep30 -d 1 --every 1 -n 1 --dir {dir}; kill %1; "
                  f"{yrt.YRT} render {dir}/watch-*.yrt -o -")
        done = subprocess.run(["unshare", "--pid", "--mount", "--fork", "--mount-proc", "bash", "-c",
                               f"mount --bind {dir} {dir}; {script}"], capture_output=True, text=True, timeout=60)
        stacks = yrt.parse_folded(done.stdout)
        total = sum(n for _, n in stacks)
        assert total > 2 and sum(n for frames, n in stacks if "f30" in frames) > 0.8 * total, (done.returncode, done.stderr, stacks[:3])


def test_image():
    """The image has yrt, its libraries and no shell; it is small."""
    if not all(yrt.shutil.which(tool) for tool in ("buildah", "skopeo")):
        print("     the image was not built: buildah and skopeo are not here")
        return
    with tempfile.TemporaryDirectory() as dir:
        archive = os.path.join(dir, "yrt.tar")
        subprocess.run(["sh", os.path.join(JOB, "build.sh"), yrt.YRT, f"oci-archive:{archive}"], check=True, capture_output=True)
        config = json.loads(subprocess.run(["skopeo", "inspect", "--config", f"oci-archive:{archive}"], check=True, capture_output=True).stdout)
        assert config["config"]["Entrypoint"] == ["/usr/bin/yrt"], config
        subprocess.run(["skopeo", "copy", "-q", f"oci-archive:{archive}", f"dir:{dir}/image"], check=True, capture_output=True)
        layer = max((os.path.join(dir, "image", n) for n in os.listdir(f"{dir}/image")), key=os.path.getsize)
        root = os.path.join(dir, "root")
        os.mkdir(root)
        subprocess.run(["tar", "xf", layer, "-C", root], check=True)
        size = int(subprocess.run(["du", "-sk", root], check=True, capture_output=True, text=True).stdout.split()[0])
        assert size < 40000 and os.path.getsize(layer) < 30 << 20, (size, os.path.getsize(layer))
        assert os.listdir(f"{root}/usr/bin") == ["yrt"] and not os.path.exists(f"{root}/bin"), os.listdir(root)
        out = subprocess.run(["chroot", root, "/usr/bin/yrt", "--version"], capture_output=True, text=True, check=True).stdout
        assert out.startswith("yrt "), out


yrt.main(globals())
