# SPDX-License-Identifier: Apache-2.0
"""
As a user that is not root, with the capabilities that README.md lists: all of them, and each missing one with what that
costs.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile

import yrt

ALL = "bpf", "perfmon", "sys_ptrace", "dac_read_search", "checkpoint_restore"
ENTRY = re.compile(r"entry_SYSCALL|asm_(sysvec|exc)_")
BURN = "while :; do : > /dev/null; done"  # in the kernel too


def as_user(*capabilities):
    """The beginning of a command line: nobody, with these."""
    given = ",".join(["-all", *("+" + c for c in capabilities)])
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
            f"--inh-caps={given}", f"--ambient-caps={given}", f"--bounding-set={given}"]


@contextlib.contextmanager
def target(mode, replaced=False):
    """A shell of root's, in a folder of that mode."""
    with tempfile.TemporaryDirectory() as directory:
        shell = os.path.join(directory, "burner")
        shutil.copy(os.path.realpath("/bin/dash"), shell)
        os.chmod(directory, mode)
        with yrt.Program([shell, "-c", BURN]) as busy:
            yrt.busy_for([busy.pid], 0.1)
            if replaced:
                os.unlink(shell)
            try:
                yield busy.pid
            finally:
                busy.kill()


def run(pid, *capabilities):
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(yrt.YRT, directory)
        os.chmod(directory, 0o755)
        return yrt.run("flame", "-p", pid, "-d", "1", "-F", "299", "--no-cache", prefix=as_user(*capabilities),
                       binary=os.path.join(directory, os.path.basename(yrt.YRT)), stats=True)


def without(name):
    return [c for c in ALL if c != name]


def whole(result):
    """Whether stacks go down to the shell's own start, with the kernel's names."""
    result.expect()
    return result.incomplete() < 0.1 and result.share("_start") > 0.8


def names_kernel(result):
    return any("do_sys_open" in f or "sys_openat" in f for frames, _ in result.stacks for f in frames)


def position(frames, frame):
    """Where it is, or behind the last."""
    return next((i for i, f in enumerate(frames) if frame.match(f)), len(frames))


@yrt.measured
def test_all():
    with target(0o700) as pid:
        result = run(pid, *ALL)
        assert whole(result) and "note" not in result.stderr, result.stderr
        assert names_kernel(result), yrt.show(result.stacks)
    with target(0o755, replaced=True) as pid:
        result = run(pid, *ALL)
        assert whole(result) and "note" not in result.stderr, result.stderr


@yrt.measured
def test_smallest():
    """What nobody hides takes three."""
    with target(0o755) as pid:
        result = run(pid, "bpf", "perfmon", "sys_ptrace")
        assert whole(result), result.stderr
        for missing in "bpf", "perfmon", "sys_ptrace":
            refused = run(pid, *without(missing))
            assert refused.code == yrt.PERMISSION and "doctor" in refused.stderr, (missing, refused.stderr)


@yrt.measured
def test_costs():
    with target(0o700) as pid:
        unread = run(pid, *without("dac_read_search"))
        assert not whole(unread) and "with CAP_DAC_READ_SEARCH" in unread.stderr, unread.stderr
        assert unread.stderr.count("cannot open") == 1, unread.stderr
    with target(0o755, replaced=True) as pid:
        replaced = run(pid, *without("checkpoint_restore"))
        assert not whole(replaced) and "was replaced or deleted" in replaced.stderr, replaced.stderr


@yrt.measured
def test_names_of_kernel():
    """The kernel names its functions itself: the names are those of /proc/kallsyms, which yrt cannot read here."""
    known = {line.split()[2] for line in yrt.read("/proc/kallsyms").splitlines()}
    hide = "mount --bind /dev/null /proc/kallsyms && exec \"$@\""
    with target(0o755) as pid:
        result = yrt.run(
            "flame", "-p", pid, "-d", "1", "-F", "299", prefix=["unshare", "-m", "sh", "-c", hide, "sh"]
        ).expect()
    assert names_kernel(result), yrt.show(result.stacks)
    seen = {f for frames, _ in result.stacks for f in frames[position(frames, ENTRY):]}
    unknown = [f for f in seen if re.sub(r" \[\w+\]$", "", f) not in known and not f.startswith("bpf_")]
    assert len(seen) > 10 and not unknown, unknown
    yield f"{len(seen)} names"


def test_doctor():
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(yrt.YRT, directory)
        os.chmod(directory, 0o755)
        binary = os.path.join(directory, os.path.basename(yrt.YRT))
        nothing = yrt.run("doctor", output=False, stats=False, prefix=as_user(), binary=binary).expect(yrt.PERMISSION)
        assert (
            all(f"cap_{c}" in nothing.stdout for c in ALL) and "without any: render, diff, symbolize" in nothing.stdout
        ), nothing.stdout
        some = yrt.run("doctor", output=False, stats=False, prefix=as_user("bpf", "perfmon"), binary=binary).expect()
        for name, cost in (("CAP_SYS_PTRACE", "only processes of this user"), ("CAP_DAC_READ_SEARCH", "may not read"),
                           ("CAP_CHECKPOINT_RESTORE", "replaced or deleted")):
            at = some.stdout.index(name)
            assert "not there" in some.stdout[at:at + 60] and cost in some.stdout[at:at + 220], some.stdout
        own = subprocess.Popen([*as_user(), "sleep", "60"])
        yrt.until(lambda: yrt.read(f"/proc/{own.pid}/comm") == "sleep\n", "it sleeps")
        yrt.run("inspect", "-p", own.pid, output=False, stats=False, prefix=as_user(), binary=binary).expect()
        own.kill()
        own.wait()


yrt.main(globals())
