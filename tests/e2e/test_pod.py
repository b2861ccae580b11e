# SPDX-License-Identifier: Apache-2.0
"""
frontends/job as its README says, with a real Envoy in a container of its own: yrt's image, read-only, with the listed
capabilities and no others, in the pod's cgroups and namespaces.
"""

import contextlib
import glob
import os
import signal
import sys
import tempfile
import time

import image
import lua
import pods
import servers
import stores
import yrt

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
import oracles  # noqa: E402


@contextlib.contextmanager
def envoy_pod(**kw):
    """(directory, root of yrt's image, out, Envoy, pod)"""
    with tempfile.TemporaryDirectory() as directory:
        root, out = image.build(directory), os.path.join(directory, "out")
        os.mkdir(out)
        with image.Envoy(
            servers.envoy_program(), directory, **{"connections": 2, **kw}
        ) as envoy, pods.Pod() as pod:
            pod.add(envoy.pid)
            yield root, out, envoy, pod


@yrt.measured
def test_ephemeral():
    """
    The README's first line to a flame graph: another container that joins Envoy's pid namespace, the page by stdout.
    """
    words = image.readme_command()
    words[words.index("-d") + 1] = "4"
    with envoy_pod() as (root, out, envoy, _):
        result = image.run(
            root, *words, "--stats", "/out/stats.json", "-F", "499", out=out, manifest="ephemeral.yaml", join=envoy.pid
        ).expect()
    assert result.stdout.startswith("<!doctype html>") and "note" not in result.stderr, (
        result.stdout[:50],
        result.stderr,
    )
    image.check_picture(lua.parse_page(result.stdout))
    assert result.incomplete() < 0.01, result.stats


def test_job():
    """The Job's own arguments, from the node's pid namespace, to a store."""
    with envoy_pod() as (root, out, envoy, pod), stores.Store() as store:
        words = [
            w.replace("POD-UID", pod.uid).replace("pyroscope:4040", f"127.0.0.1:{store.port}")
            for w in image.arguments("job.yaml")
        ]
        words[words.index("-d") + 1] = "600"
        at = image.Run(root, *words, "-F", "499", out=out).sampling()
        yrt.busy_for([envoy.pid], 1)
        at.interrupt()
        at.result().expect()
        (at, _, body), = store.requests
        assert "k8s_pod_uid%3D" + pod.uid in at and "name=envoy" in at, at
        with open(os.path.join(out, "x.pb.gz"), "wb") as file:
            file.write(body)
        stacks = oracles.merge(oracles.Pprof(file.name).stacks())
        assert glob.glob(f"{out}/cache/*.cfi") and len(glob.glob(f"{out}/cache/*.search")) >= 2, os.listdir(out)
        kept = os.listdir(out)
        assert "x.pb.gz" in kept and not [name for name in kept if name.endswith(".yrt")], kept
    total = sum(stacks.values())
    assert (
        total > 10 and sum(n for frames, n in stacks.items() if any(map(image.SCRIPT.match, frames))) > 2
    ), yrt.show(stacks.items())


@yrt.measured
def test_restart():
    """Envoy ends and is started again in its pod while the Job samples: the result has both."""
    with envoy_pod(load=120) as (root, out, envoy, pod), tempfile.TemporaryDirectory() as directory:
        at = image.Run(
            root,
            "lua-flame",
            "--select",
            f"pod={pod.uid},exe=envoy",
            "-d",
            120,
            "-F",
            499,
            "-q",
            "-o",
            "-",
            "-f",
            "folded",
            "--stats",
            "/out/stats.json",
            out=out,
        ).sampling()
        try:
            pids = [envoy.pid]
            yrt.busy_for([envoy.pid], 1)
            yrt.stop(envoy.process)
            with image.Envoy(servers.envoy_program(), directory, connections=2, load=60) as second:
                pids.append(second.pid)
                pod.add(second.pid)
                yrt.busy_for([second.pid], 3)
                at.interrupt()
                result = at.result().expect()
        finally:
            yrt.stop(at.process, signal.SIGKILL)
    everything = yrt.parse_folded(result.stdout)
    for pid in pids:
        stacks = [(frames, n) for frames, n in everything if frames[0].endswith(f"(pid {pid})")]
        total = sum(n for _, n in stacks)
        scripts = sum(n for frames, n in stacks if any(map(image.SCRIPT.match, frames)))
        assert total > 10 and scripts > 8, (pid, total, scripts, yrt.show(stacks))
    assert result.incomplete() < 0.01, result.stats


def test_sidecar():
    """The sidecar's own arguments, in the pod's pid namespace: what the store has taken is gone from the volume."""
    with envoy_pod() as (root, out, envoy, _), stores.Store() as store:
        words = [w.replace("pyroscope:4040", f"127.0.0.1:{store.port}") for w in image.arguments("sidecar.yaml")]
        image.run(
            root, *words, "-d", 2, "--every", 3, "-n", 2, out=out, manifest="sidecar.yaml", join=envoy.pid
        ).expect()
        assert len(store.requests) == 2 and not glob.glob(f"{out}/*.yrt"), (len(store.requests), os.listdir(out))


@yrt.measured
def test_first_sample():
    """
    From the start of the container's process to the first sample, with an empty and a filled cache, which is where the
    image's root is writable.
    """
    with envoy_pod(load=120) as (root, out, envoy, pod):
        found = []
        for _ in range(4):
            at = time.monotonic_ns()
            result = image.run(
                root,
                "lua-flame",
                "--select",
                f"pod={pod.uid},exe=envoy",
                "-d",
                1,
                "-F",
                999,
                "-q",
                "-o",
                "-",
                "-f",
                "html",
                "--stats",
                "/out/stats.json",
                out=out,
                prefix=["chrt", "-f", "5"],
            ).expect()
            assert glob.glob(f"{out}/cache/*.cfi") and len(glob.glob(f"{out}/cache/*.search")) >= 2, os.listdir(
                f"{out}/cache"
            )
            assert lua.parse_page(result.stdout), result.stderr
            found.append((result.stats["first_sample_at_ns"] - at) / 1e6)
    yield (
        f"cold {found[0]:.0f} ms, then {', '.join(f'{ms:.0f}' for ms in found[1:])} ms (with the start of Python, which"
        " makes the container)"
    )


yrt.main(globals())
