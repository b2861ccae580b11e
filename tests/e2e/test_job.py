# SPDX-License-Identifier: Apache-2.0
"""
frontends/job: its manifests, and yrt with what they give it: their capabilities, pid namespaces, a pod's cgroups, a
root that is read-only.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import image
import pods
import stores
import yrt

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
import oracles  # noqa: E402

JOB = image.JOB


def limited(names):
    """The words that run a program with no other capabilities than these."""
    kept = "".join(f",+{name.lower()}" for name in names)
    return ["setpriv", f"--bounding-set=-all{kept}", "--inh-caps=-all", "--no-new-privs"]


def test_manifests_agree():
    """All list the same capabilities, each explained in the Job's, and give what the image sets."""
    names = image.capabilities("job.yaml")
    assert len(names) == 5 and all(image.capabilities(m) == names for m in ("sidecar.yaml", "ephemeral.yaml")), names
    with open(os.path.join(JOB, "job.yaml")) as file:
        text = file.read()
    assert all(re.search(rf"- {name} # \S", text) for name in names)
    assert all(
        image.environment() == image.manifest_environment(m) for m in ("job.yaml", "sidecar.yaml")
    ), image.environment()


def test_node():
    """
    The Job: a pod of the node by its UID, with the listed capabilities and no more, and each of the needed ones is
    needed.
    """
    names = image.capabilities("job.yaml")
    with pods.Pod() as pod, yrt.Fixture(
        "deep30", seconds=1, cpu=True
    ) as fixture, tempfile.TemporaryDirectory() as dir, stores.Store() as store:
        pod.add(fixture.pid)
        at = yrt.Run(
            "record",
            "--select",
            f"pod={pod.uid},exe=deep30",
            "-d",
            600,
            "--push",
            f"otlp+http://127.0.0.1:{store.port}",
            output=False,
            prefix=limited(names),
            cwd=dir,
        ).sampling()
        fixture.release()
        fixture.finish()
        at.interrupt()
        at.result().expect()
        read = oracles.Otlp(store.requests[0][2])
        resource = read.resource()
        assert resource["k8s.pod.uid"] == pod.uid and resource["container.id"] == pod.container, resource
        assert resource["service.name"] == "deep30" and not os.listdir(dir), resource
        stacks = oracles.merge(read.stacks())
        assert any("f30" in frames for frames in stacks), stacks


def test_kernel_names():
    """With the listed capabilities the kernel's functions have names."""
    with yrt.Fixture("syscalls") as fixture:
        fixture.release()
        with_these = limited(image.capabilities("job.yaml"))
        stacks = yrt.sample_busy("flame", [fixture.pid], seconds=0.5, rate=999, prefix=with_these).stacks
        assert any("entry_SYSCALL" in f for frames, _ in stacks for f in frames), stacks[:5]


@yrt.measured
def test_without():
    """What is missing is reported, by the line of the manifest that gives it, and nothing else is."""
    names = image.capabilities("job.yaml")
    with yrt.Fixture("deep30") as fixture:
        for missing in "BPF", "PERFMON", "SYS_PTRACE":
            for command in ["flame", "-d", 1], ["fault-flame", "-d", 1], ["dump"]:
                result = yrt.run(
                    *command, "-p", fixture.pid, output=False, stats=False, prefix=limited(set(names) - {missing})
                )
                assert result.code == yrt.PERMISSION and f"add: [{missing}]" in result.stderr, (
                    missing,
                    command,
                    result.code,
                    result.stderr,
                )
                assert "Unconfined" not in result.stderr, result.stderr


def wake_ups(pid):
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", yrt.read(f"/proc/{pid}/status"), re.M)[1])


def test_refused():
    """
    In the image: calls that a seccomp profile refuses; a program that may not be looked at is not waited for, but by
    watch.
    """
    name = f"deep{os.getpid()}"  # others run deep30 meanwhile
    with tempfile.TemporaryDirectory() as dir, yrt.Fixture(
        shutil.copy(yrt.fixture_path("deep30"), os.path.join(dir, name))
    ) as fixture:
        root, out = image.build(dir), os.path.join(dir, "out")
        os.mkdir(out)
        for call, view in (
            ("bpf", "flame"),
            ("bpf", "dump"),
            ("perf_event_open", "flame"),
            ("perf_event_open", "fault-flame"),
        ):
            result = image.run(root, view, "-p", fixture.pid, out=out, refused=[call]).expect(yrt.PERMISSION)
            assert f"refuses {call}()" in result.stderr and "seccompProfile: {type: Unconfined}" in result.stderr, (
                call,
                view,
                result.stderr,
            )
            assert "CAP_" not in result.stderr, result.stderr
            doctor = image.run(root, "doctor", out=out, refused=[call]).expect(yrt.PERMISSION)
            assert f"refuses {call}()" in doctor.stdout and "-> a seccomp profile" in doctor.stdout, doctor.stdout
        without = [name for name in image.capabilities("job.yaml") if name != "SYS_PTRACE"]
        for command in ["flame", "--wait"], ["flame"]:
            result = image.run(root, *command, "--select", f"exe={name}", out=out, capabilities=without).expect(
                yrt.PERMISSION
            )
            assert str(fixture.pid) in result.stderr and "add: [SYS_PTRACE]" in result.stderr, (command, result.stderr)
        at = image.Run(
            root, "watch", "--select", f"exe={name}", "-d", 0.5, "--every", 0.5, out=out, capabilities=without
        )
        notes = [at.process.stderr.readline() for _ in range(2)]
        assert str(fixture.pid) in notes[0] and "add: [SYS_PTRACE]" in notes[0] and "waiting" in notes[1], notes
        looks = wake_ups(at.process.pid)
        yrt.until(lambda: wake_ups(at.process.pid) > looks + 10, "yrt looks again")  # and says nothing any more
        at.interrupt()
        assert not at.result().expect().stderr
        image.run(root, "doctor", out=out).expect()


def test_other_refusals():
    """With the capability, but refused all the same, as by a security module: here the user namespace is another."""
    if subprocess.run(["unshare", "--user", "true"], capture_output=True).returncode:
        raise yrt.Skipped("no user namespace can be made here, as in a chroot")
    with yrt.Fixture("deep30") as fixture:
        result = yrt.run(
            "inspect", "-p", fixture.pid, output=False, stats=False, prefix=["unshare", "--user", "--map-root-user"]
        ).expect(yrt.PERMISSION)
        assert "CAP_SYS_PTRACE is there" in result.stderr and "appArmorProfile" in result.stderr, result.stderr


def test_hidden():
    """A /proc that hides the processes of others: what is not shown is not said to be missing."""
    with yrt.Fixture("deep30") as fixture, tempfile.TemporaryDirectory() as dir:
        root = image.build(dir)
        without = [name for name in image.capabilities("job.yaml") if name != "SYS_PTRACE"]
        for words, code in ((["-p", fixture.pid], yrt.PERMISSION), (["--select", "exe=deep30"], yrt.NO_PROCESS),
                            (["-p", "deep30"], yrt.NO_PROCESS)):
            result = image.run(root, "flame", *words, "-d", 1, out=dir, capabilities=without, proc="hidepid=4").expect(
                code
            )
            assert "hidepid" in result.stderr and "add: [SYS_PTRACE]" in result.stderr, result.stderr
        image.run(
            root, "flame", "-p", fixture.pid, "-d", 1, "-q", "-o", "-", "-f", "folded", out=dir, proc="hidepid=4"
        ).expect()
        assert (
            "there is no process"
            in image.run(root, "flame", "-p", 1 << 22, out=dir, proc="hidepid=4").expect(yrt.NO_PROCESS).stderr
        )


@contextlib.contextmanager
def containers(*names):
    """(root of yrt's image, out, a fixture of each name in a container of its own)"""
    with tempfile.TemporaryDirectory() as dir, contextlib.ExitStack() as stack:
        out = os.path.join(dir, "out")
        os.mkdir(out)
        yield image.build(dir), out, *(stack.enter_context(image.Fixture(name, dir)) for name in names)


def folded(result):
    stacks = yrt.parse_folded(result.expect().stdout)
    return stacks, sum(n for _, n in stacks)


def share(stacks, total, name):
    return sum(n for frames, n in stacks if name in frames) / max(total, 1)


@yrt.measured
def test_same_pid():
    """Two containers with a pid 1 each: from inside of the first it is that, from the node each has its own."""
    with containers("deep30", "recursion") as (root, out, one, other):
        one.release()
        other.release()
        words = "-d", 2, "-F", 499, "-q", "-o", "-", "-f", "folded"
        stacks, total = folded(
            image.run(root, "flame", "-p", 1, *words, out=out, manifest="sidecar.yaml", join=one.pid)
        )
        assert total > 20 and share(stacks, total, "f30") > 0.9 and not share(stacks, total, other.chain[0]), stacks[:5]
        stacks, total = folded(image.run(root, "flame", "-p", one.pid, "-p", other.pid, *words, out=out))
        assert share(stacks, total, "f30") > 0.2 and share(stacks, total, other.chain[0]) > 0.2, stacks[:5]


@yrt.measured
def test_vanished():
    """The container's files are deleted while its process runs: they are read as it has mapped them."""
    with containers("deep30") as (root, out, fixture):
        shutil.rmtree(os.path.join(fixture.root, "usr"))
        fixture.release()
        stacks, total = folded(
            image.run(root, "flame", "-p", fixture.pid, "-d", 2, "-F", 499, "-q", "-o", "-", "-f", "folded", out=out)
        )
        assert total > 20 and share(stacks, total, "f30") > 0.9 and share(stacks, total, "_start") > 0.9, (
            total,
            yrt.show(stacks),
        )


def test_not_there_yet():
    """
    A pod that does not exist is an error; with --wait it is waited for, also the process in it, and what is sent says
    which it was.
    """
    with containers("deep30") as (root, out, fixture), pods.Pod() as pod, stores.Store() as store:
        fixture.release()
        words = "record", "--select", f"pod={pod.uid},exe=deep30", "--push", f"otlp+http://127.0.0.1:{store.port}"
        result = image.run(root, *words, out=out).expect(yrt.NO_PROCESS)
        assert pod.uid in result.stderr and "hostPID" in result.stderr or "similar" in result.stderr, result.stderr
        at = image.Run(root, *words, "--wait", "-d", 600, "-F", 499, out=out).sampling()
        time.sleep(1)
        pod.add(fixture.pid)
        other = "flame", "--select", f"pod={pod.uid},exe=envoy"
        result = image.run(root, *other, out=out).expect(yrt.NO_PROCESS)
        assert f"pod={pod.uid} has deep30 (pid {fixture.pid})" in result.stderr, result.stderr
        yrt.busy_for([fixture.pid], 0.5)
        at.interrupt()
        result = at.result().expect()
        read = oracles.Otlp(store.requests[0][2])
        resource, stacks = read.resource(), oracles.merge(read.stacks())
        assert resource["k8s.pod.uid"] == pod.uid and resource["container.id"] == pod.container, resource
        assert any("f30" in frames for frames in stacks), (result.stderr, stacks)


def test_no_place():
    """
    No volume and a root that is read-only: the page comes by stdout; a recording has no place, which is said before it
    samples.
    """
    with containers("deep30") as (root, _, fixture):
        fixture.release()
        at = image.Run(
            root, "flame", "-p", fixture.pid, "-d", 600, "-F", 499, "-q", "-o", "-", "-f", "folded", out=None
        ).sampling()
        yrt.busy_for([fixture.pid], 0.5)
        at.interrupt()
        result = at.result()
        assert folded(result)[1] > 10, result.stderr
        for words in ["flame", "-o", "x.html"], ["record", "--push", "otlp+http://127.0.0.1:1"]:
            result = image.run(root, *words, "-p", fixture.pid, "-d", 600, out=None).expect(yrt.OUTPUT)
            assert "Read-only file system" in result.stderr, result.stderr
            assert ("a volume" in result.stderr) == (words[0] == "record"), result.stderr


def test_no_curl():
    """An image without libcurl: what was sampled is kept."""
    with containers("deep30") as (root, out, fixture):
        for path in glob.glob(f"{root}/**/libcurl*", recursive=True):
            os.unlink(path)
        fixture.release()
        at = image.Run(
            root, "record", "-p", fixture.pid, "-d", 600, "--push", "otlp+http://127.0.0.1:1", out=out
        ).sampling()
        yrt.busy_for([fixture.pid], 0.5)
        at.interrupt()
        result = at.result().expect(yrt.UNSUPPORTED)
        kept, = glob.glob(f"{out}/*.yrt")
        assert "needs libcurl" in result.stderr and os.path.basename(kept) in result.stderr, result.stderr
        out = subprocess.run([yrt.YRT, "render", kept, "-o", "-"], capture_output=True, text=True, check=True).stdout
        assert "f30" in out, out


def test_sidecar():
    """A pid namespace of the pod's own, a root that is read-only: pids are those of the namespace."""
    names = image.capabilities("sidecar.yaml")
    with tempfile.TemporaryDirectory() as dir:
        script = (
            "mount -o remount,ro,bind / 2>/dev/null || mount --bind / / && mount -o remount,ro,bind /; "
            f"{yrt.fixture_path('deep30')} 1000 >/dev/null & "
            + " ".join(limited(names))
            + f" {yrt.YRT} watch --select exe=deep30 -d 3 --every 3 -n 1 --dir {dir}; kill %1; "
            f"{yrt.YRT} render {dir}/watch-*.yrt -o -"
        )
        done = subprocess.run(["unshare", "--pid", "--mount", "--fork", "--mount-proc", "bash", "-c",
                               f"mount --bind {dir} {dir}; {script}"], capture_output=True, text=True, timeout=300)
        stacks = yrt.parse_folded(done.stdout)
        assert any("f30" in frames for frames, _ in stacks), (
            done.returncode,
            done.stderr,
            stacks[:3],
        )


def test_image():
    """Its files: yrt, its libraries and no shell, 32 MB at most; yrt runs there, and knows what it needs to push."""
    with tempfile.TemporaryDirectory() as dir:
        root = image.build(dir)
        size = int(subprocess.run(["du", "-sk", root], check=True, capture_output=True, text=True).stdout.split()[0])
        assert size * 1024 < 32_000_000, f"{size} kB"
        assert os.listdir(f"{root}/usr/bin") == ["yrt"] and not os.path.exists(f"{root}/bin"), os.listdir(root)
        out = subprocess.run(
            ["chroot", root, "/usr/bin/yrt", "--version"], capture_output=True, text=True, check=True
        ).stdout
        assert out.startswith("yrt "), out
        pushed = subprocess.run(
            ["chroot", root, "/usr/bin/yrt", "push", "-", "--push", "otlp+http://127.0.0.1:1", "--push-tries", "1"],
            input="a;b 1\n",
            capture_output=True,
            text=True,
        )
        assert pushed.returncode == yrt.OUTPUT and "is the store there?" in pushed.stderr, pushed.stderr
        yield f"{size} kB"


def test_image_of_buildah():
    """The same as an image of the OCI, where buildah and skopeo are."""
    if not all(yrt.shutil.which(tool) for tool in ("buildah", "skopeo")):
        raise yrt.Skipped("buildah and skopeo are not here")
    with tempfile.TemporaryDirectory() as dir:
        archive = os.path.join(dir, "yrt.tar")
        subprocess.run(
            ["sh", os.path.join(JOB, "build.sh"), yrt.YRT, f"oci-archive:{archive}"], check=True, capture_output=True
        )
        config = json.loads(
            subprocess.run(
                ["skopeo", "inspect", "--config", f"oci-archive:{archive}"], check=True, capture_output=True
            ).stdout
        )
        assert config["config"]["Entrypoint"] == ["/usr/bin/yrt"] and config["config"]["WorkingDir"] == "/out", config
        assert "YRT_CACHE_DIR=/out/cache" in config["config"]["Env"] and os.path.getsize(archive) < 32_000_000, config


SECCOMP = "/usr/share/containers/seccomp.json"  # the default of Podman and CRI-O


def default_seccomp(capabilities):
    """The part of it that goes with these capabilities, as the OCI's runtime specification has it."""
    with open(SECCOMP) as file:
        profile = json.load(file)
    calls = []
    for rule in profile["syscalls"]:
        wanted, unwanted = rule.get("includes") or {}, rule.get("excludes") or {}
        if set(wanted.get("caps") or ()) <= capabilities and not set(unwanted.get("caps") or ()) & capabilities \
                and "amd64" in (wanted.get("arches") or ["amd64"]) and "amd64" not in (unwanted.get("arches") or ()):
            calls.append({key: rule[key] for key in ("names", "action", "args", "errnoRet") if rule.get(key)})
    return {"defaultAction": profile["defaultAction"], "defaultErrnoRet": profile.get("defaultErrnoRet", 38),
            "architectures": ["SCMP_ARCH_X86_64"], "syscalls": calls}


def configure(bundle, out, words, seccomp):
    """
    As kubelet asks for it by job.yaml: the node's pid namespace, a root that is read-only, /out, these capabilities.
    """
    capabilities = {f"CAP_{name}" for name in image.capabilities("job.yaml")}
    with open(f"{bundle}/config.json") as file:
        config = json.load(file)
    process, linux = config["process"], config["linux"]
    process.update(args=["/usr/bin/yrt", *words], terminal=False, noNewPrivileges=True,
                   capabilities={kind: sorted(capabilities) for kind in ("bounding", "effective", "permitted")})
    config["root"]["readonly"] = True
    config["mounts"] = [m for m in config["mounts"] if m["destination"] != "/out" and m["type"] != "cgroup"]
    config["mounts"].append({"destination": "/out", "type": "bind", "source": out, "options": ["rbind", "rw"]})
    linux["namespaces"] = [n for n in linux["namespaces"] if n["type"] in ("mount", "ipc", "uts")]
    linux.pop("uidMappings", None), linux.pop("gidMappings", None), linux.pop("seccomp", None)
    if seccomp:
        linux["seccomp"] = default_seccomp(capabilities)
    with open(f"{bundle}/config.json", "w") as file:
        json.dump(config, file)


def run_container(bundle, name):
    try:
        return subprocess.run(["runc", "run", "-b", bundle, name], capture_output=True, text=True, timeout=300)
    finally:
        subprocess.run(["runc", "delete", "--force", name], capture_output=True)


def test_runc():
    """
    The Job as a container runtime runs it: image by buildah, unpacked by umoci, run by runc; the runtimes' own seccomp
    profile refuses it.
    """
    if not all(yrt.shutil.which(tool) for tool in ("buildah", "umoci", "runc")):
        raise yrt.Skipped("buildah, umoci and runc are not here")
    with tempfile.TemporaryDirectory() as dir, pods.Pod() as pod, yrt.Fixture(
        "deep30", seconds=1000
    ) as fixture, stores.Store() as store:
        bundle, out = os.path.join(dir, "bundle"), os.path.join(dir, "out")
        os.mkdir(out)
        subprocess.run(
            ["sh", os.path.join(JOB, "build.sh"), yrt.YRT, f"oci:{dir}/image:yrt"], check=True, capture_output=True
        )
        subprocess.run(["umoci", "unpack", "--image", f"{dir}/image:yrt", bundle], check=True, capture_output=True)
        pod.add(fixture.pid)
        fixture.release()
        words = [
            w.replace("POD-UID", pod.uid)
            .replace("exe=envoy", "exe=deep30")
            .replace("pyroscope:4040", f"127.0.0.1:{store.port}")
            for w in image.arguments("job.yaml")
        ]
        name = f"yrt-test-{os.getpid()}"
        configure(bundle, out, [*words, "-d", "2"], seccomp=False)
        done = run_container(bundle, name)
        assert done.returncode == 0 and len(store.requests) == 1, (
            done.returncode,
            done.stdout,
            done.stderr,
            len(store.requests),
        )
        assert not [name for name in os.listdir(out) if name.endswith(".yrt")], os.listdir(out)
        yield "with the runtimes' seccomp profile" if os.path.exists(SECCOMP) else f"no {SECCOMP} here"
        if os.path.exists(SECCOMP):
            configure(bundle, out, words, seccomp=True)
            done = run_container(bundle, name)
            assert done.returncode == yrt.PERMISSION and "seccompProfile: {type: Unconfined}" in done.stderr, (
                done.returncode,
                done.stderr,
            )


yrt.main(globals())
