# SPDX-License-Identifier: Apache-2.0
"""
The container images that tests run: yrt's, as frontends/job/build.sh fills it, and one of Envoy alone. Not a test
itself.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess

import container
import lua
import servers
import yrt

# The functions of fixtures/envoy/filter.lua.
SCRIPT = re.compile("^(envoy_on_request|check_token|decode_text|parse_claims|stamp_headers|count_headers)( |$)")
JOB = os.path.join(yrt.SOURCE, "frontends", "job")


def capabilities(manifest):
    """What a manifest adds: a list in brackets, or a line each."""
    text = yrt.read(os.path.join(JOB, manifest)).split("add:")[1]
    if text.lstrip().startswith("["):
        return re.findall(r"[A-Z_]+", text.split("]")[0])
    return re.findall(r"^ +- ([A-Z_]+)\b", text.split("volumeMounts")[0], re.M)


def arguments(manifest):
    """Of yrt's container."""
    line, = re.findall(r"^ +args: \[(.*)\]$", yrt.read(os.path.join(JOB, manifest)), re.M)
    return [word.strip('"') for word in re.findall(r'"[^"]*"|[^,\s"]+', line)]


def environment():
    """What the image sets."""
    return dict(re.findall(r"--env (\w+)=(\S+)", yrt.read(os.path.join(JOB, "build.sh"))))


def manifest_environment(manifest):
    """What a manifest gives yrt's container."""
    return dict(re.findall(r"name: (\w+)(?: #.*)?,?\s+value: ([^\s}]+)", yrt.read(os.path.join(JOB, manifest))))


def readme_command():
    """What the README's line with `kubectl debug` runs in the container, without the redirection."""
    text = yrt.read(os.path.join(JOB, "README.md"))
    line, = re.findall(r"^kubectl debug .* -- yrt (.*)>", text, re.M)
    return shlex.split(line)


def build(directory):
    """The files of yrt's image."""
    root = os.path.join(directory, "yrt-image")
    subprocess.run(["sh", os.path.join(JOB, "build.sh"), yrt.YRT, f"root:{root}"], check=True, capture_output=True)
    return root


def fill(root, program, name):
    """Puts a program of this machine, and its libraries, into a root."""
    os.makedirs(os.path.dirname(root + name), exist_ok=True)
    shutil.copy(program, root + name)
    libraries = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    for path in re.findall(r"(/\S+) \(", libraries):
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, root + path)


class Fixture(yrt.Fixture):
    """A fixture in a container of its own, as pid 1 of its namespace; .pid is that of this machine."""

    def __init__(self, name, directory, seconds=1000):
        self.root = os.path.join(directory, f"{name}-image")
        fill(self.root, yrt.fixture_path(name), f"/usr/bin/{name}")
        words = container.container(self.root, pid_namespace=True, env={"FIXTURE_WAIT": "1"})
        super().__init__(*words, f"/usr/bin/{name}", seconds, seconds=None)
        self.pid = child_of(self.process.pid)

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        super().__exit__()


def child_of(pid):
    return int(yrt.read(f"/proc/{pid}/task/{pid}/children"))


class Envoy(servers.Envoy):
    """An Envoy in a container of its own, as pid 1 of its namespace; .pid is that of this machine."""

    def __init__(self, program, directory, **kw):
        root, config = os.path.join(directory, "envoy-image"), os.path.join(directory, "envoy")
        os.makedirs(config)
        fill(root, program, "/usr/local/bin/envoy")
        words = container.container(root, out=config, inside=config, pid_namespace=True)
        start = os.path.join(directory, "start-envoy")
        with open(start, "w") as file:
            file.write(f"#!/bin/sh\nexec {shlex.join(words)} /usr/local/bin/envoy \"$@\"\n")
        os.chmod(start, 0o755)
        super().__init__(start, directory=config, **kw)

    @property
    def pid(self):
        return child_of(self.process.pid)


class Run(yrt.Run):
    """yrt in a container of its image, /out of which is the directory out. sampling() only without join."""

    def __init__(self, root, *args, out, manifest="job.yaml", prefix=(), **kw):
        kw = {"capabilities": capabilities(manifest), "env": environment(), **kw}
        self.args, self.out = [str(a) for a in args], out
        self.process = subprocess.Popen(
            [*prefix, *container.container(root, out=out, **kw), "/usr/bin/yrt", *self.args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def result(self, timeout=300):
        try:
            out, err = self.process.communicate(timeout=timeout)
        finally:
            yrt.stop(self.process)
        stats = self.out and yrt.read(os.path.join(self.out, "stats.json"))
        return yrt.Result(self.process.returncode, out, err, "", json.loads(stats) if stats else None, 0)


def run(*args, timeout=300, **kw):
    return Run(*args, **kw).result(timeout)


def check_picture(stacks):
    """Envoy's C++ by class, the script below it."""
    total = sum(n for _, n in stacks)
    names = [([f.name for f in frames], n) for frames, n in stacks]
    scripts = sum(n for frames, n in names if any(map(SCRIPT.match, frames)))
    filters = sum(
        n for frames, n in names if any(f.startswith("Envoy::Extensions::HttpFilters::Lua::") for f in frames)
    )
    assert total > 40 and scripts > 8 and filters > 8, (total, scripts, filters, lua.show(stacks))
