# SPDX-License-Identifier: Apache-2.0
"""
What the tests of Go share: programs of fixtures/go, built once by the toolchain that is asked for. Not a test itself.
"""

import os
import re
import shutil
import subprocess

import yrt

GO = os.environ.get("YRT_GO") or shutil.which("go") or "/usr/local/go/bin/go"


# Nothing that the user has set for his own programs.
ENV = {
    **os.environ,
    "GOTOOLCHAIN": "local",
    "GOENV": "off",
    "GOFLAGS": "",
    "GO111MODULE": "off",
    "CGO_CFLAGS": "-O2 -gdwarf-4",
    "CC": os.path.join(yrt.SOURCE, "tests", "versions", "cc.sh"),
}


def build(program, *flags, name=None, env=None):
    """A program of fixtures/go, built with these flags of `go build`; returns its path."""
    assert os.access(GO, os.X_OK), f"no Go toolchain at {GO}: put one into PATH, or its go into YRT_GO"
    folder = os.path.join(yrt.BUILD, "fixtures", "go" + os.environ.get("YRT_GO_VERSION", ""))
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name or program)
    subprocess.run([GO, "build", "-o", path, *flags, "."], cwd=os.path.join(yrt.SOURCE, "fixtures", "go", program),
                   env={**ENV, **(env or {})}, check=True, timeout=300)
    return path


def minor():
    """26 of go1.26.8."""
    told = subprocess.run([GO, "version"], capture_output=True, text=True, check=True, env=ENV).stdout
    return int(re.search(r"go1\.(\d+)", told)[1])


# What only leads from one stack, language or calling convention to another: the view hides it.
GLUE = {"runtime.goexit", "runtime.systemstack_switch", "runtime.cgocallback", "runtime.cgocallback_gofunc",
        "runtime.cgocallbackg", "runtime.cgocallbackg1", "runtime.asmcgocall", "runtime.systemstack"}


def shown(chain):
    """A chain as runtime.CallersFrames() gives it, without what the view hides."""
    return [
        f for f in chain if f not in GLUE and not f.startswith("_cgoexp_") and not re.fullmatch(r"runtime\.call\d+", f)
    ]


# What runtime.Callers() leaves out of panics that run deferred calls, besides wrappers (1.14 to 1.21).
PANIC = {"runtime.deferreturn", "runtime.runOpenDeferFrame", "runtime.deferCallSave", "runtime.reflectcallSave"}


def is_go(frame):
    """Names of functions in C have no dots, unless they are none."""
    return "." in frame and "+0x" not in frame


def check_chains(result, chains):
    """
    Each sample of a chain's leaf has exactly the callers that the runtime reports; returns how many were seen of each.
    """
    for leaf, chain in sorted(chains.items()):
        want, seen = shown(chain), 0
        for frames, n in result.stacks:
            if leaf not in frames:
                continue
            have = [f for f in frames[:frames.index(leaf) + 1] if is_go(f) and f not in PANIC]
            assert have == want, f"{leaf}:\n have {have}\n want {want}"
            seen += n
        assert seen, f"no sample of {leaf}"
        yield f"{leaf}: {seen} samples, {len(want)} functions deep"
