# SPDX-License-Identifier: Apache-2.0
"""
Several processes in one picture: a level for them that distinguishes them, in every format, by program where there are
many.
"""

import collections
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import yrt

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
import oracles  # noqa: E402

BURN = "while True: pass"
FAMILY = f'python3 -c "{BURN}" left & python3 -c "{BURN}" right & perl -e "while (1) {{}}" & wait'
CONTAINER = "0123456789abcdef" * 4  # as docker names a group of processes


@yrt.measured
def test_live():
    """A Perl and two Pythons that differ by an argument, of a shell that waits."""
    with tempfile.TemporaryDirectory() as directory:
        recording = os.path.join(directory, "x.yrt")
        parent = subprocess.Popen(["sh", "-c", FAMILY], start_new_session=True)
        group = None
        try:
            for child in yrt.children(parent.pid, 3):
                yrt.busy_for([child], 0.1)  # it is what it becomes
            group = contained(parent.pid)
            yrt.run("record", "-s", "-p", parent.pid, "-d", "3", "-o", recording, output=False).expect()
            children = yrt.read(f"/proc/{parent.pid}/task/{parent.pid}/children").split()
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
            parent.wait()
        stacks = folded(recording)
        levels = collections.Counter()
        for frames, count in stacks:
            levels[frames[0]] += count
        all_of = sum(levels.values())
        for pattern in (
            r"python3 -c while True: pass left \(pid (\d+)\)",
            r"python3 .* right \(pid (\d+)\)",
            r"perl -e .* \(pid (\d+)\)",
        ):
            hit = [(m[1], n) for name, n in levels.items() if (m := re.fullmatch(pattern, name))]
            assert len(hit) == 1 and hit[0][0] in children and hit[0][1] > all_of / 10, (pattern, levels, children)
        threads = {frames[1] for frames, _ in folded(recording, "-t") if "left" in frames[0]}
        assert len(threads) == 1 and re.fullmatch(r"(python3|MainThread) \(tid \d+\)", threads.pop()), threads
        assert {f[0] for f, _ in folded(recording, "--processes", "none")} <= {
            "_start",
            "[truncated: no_region]",
            "entry_SYSCALL_64_after_hwframe",
        }
        assert any(f[0] == "perl" for f, _ in folded(recording, "--processes", "program"))
        check_pprof(recording, children, group)
        scope = render(recording, "speedscope")
        assert re.search(r'"name":"python3 -c while True: pass left \(pid \d+\): \w+ \(tid \d+\)"', scope), scope[-500:]
        assert re.search(r"\d +[├└] python3 -c .*left \(pid \d+\)\n", render(recording, "txt")), render(
            recording, "txt"
        )[:800]
    close(group)


def check_pprof(recording, children, group):
    render(recording, "pprof", "x.pb.gz")
    profile = oracles.Pprof(os.path.join(os.path.dirname(recording), "x.pb.gz"))
    profile.check()
    seen = {}
    for s in profile.profile["sample"]:
        labels = profile.labels(s)
        seen[str(labels["pid"])] = labels
    assert set(seen) <= set(children) and len(seen) == 3, (seen, children)
    assert sorted(v["process"].split()[0] for v in seen.values()) == ["perl", "python3", "python3"], seen
    if group:
        assert {v.get("container") for v in seen.values()} == {CONTAINER[:12]}, seen
    program = profile.text(profile.profile["mapping"][0], "filename")
    assert os.path.basename(program).startswith(("python3", "perl")), program


def contained(pid):
    """Puts a process and its children to come into a control group of a container's name. None: not possible here."""
    for root in "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/pids", "/sys/fs/cgroup":
        if not os.path.exists(os.path.join(root, "cgroup.procs")):
            continue
        group = os.path.join(root, f"docker-{CONTAINER}.scope")
        try:
            os.mkdir(group)
            for one in [pid, *map(int, yrt.read(f"/proc/{pid}/task/{pid}/children").split())]:
                with open(os.path.join(group, "cgroup.procs"), "w") as f:
                    f.write(str(one))
            return group
        except OSError:
            close(group)
    return None


def close(group):
    for _ in range(50):
        try:
            return group and os.rmdir(group)
        except FileNotFoundError:
            return None
        except OSError:
            time.sleep(0.1)


def folded(path, *flags):
    return yrt.parse_folded(render(path, "folded", None, *flags))


def render(path, form, name=None, *flags):
    to = os.path.join(os.path.dirname(path), name or "rendered")
    yrt.run("render", path, "-f", form, "-o", to, *flags, output=False, stats=False).expect()
    return yrt.read(to)


@yrt.measured
def test_one():
    """A program alone: no level for it, but the labels and the first mapping of a pprof."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "x.pb.gz")
        with yrt.Program(["python3", "-c", BURN]) as busy:
            yrt.busy_for([busy.pid], 0.1)
            plain = yrt.run("flame", "-p", busy.pid, "-d", "1").expect()
            yrt.run("flame", "-p", busy.pid, "-d", "1", "-o", path, output=False).expect()
            busy.kill()
        assert not any("(pid " in frames[0] for frames, _ in plain.stacks), plain.text[:500]
        profile = oracles.Pprof(path)
        program = profile.text(profile.profile["mapping"][0], "filename")
        assert os.path.basename(program) == os.path.basename(sys_python()), program
        assert {profile.labels(s)["pid"] for s in profile.profile["sample"]} == {busy.pid}


def sys_python():
    return subprocess.run(
        ["python3", "-c", "import os; print(os.path.realpath('/proc/self/exe'))"], capture_output=True, text=True
    ).stdout.strip()


MANY = (
    "".join(f"cc1 -o file{n}.o|process|cc1||{100 + n};main;work 10\n" for n in range(20))
    + "make -j|process|make||99;main 5\n"
)
LONG = "/usr/bin/java -Xmx4g -cp /opt/" + "x" * 60 + " Server --port"
TWINS = f"{LONG} 8080|process|java||7;run 3\n{LONG} 9090|process|java||8;run 4\n"


def test_many():
    """Of a program with many processes there is one box, unless each is asked for; long names keep what differs."""
    with tempfile.TemporaryDirectory() as directory:
        many, twins = yrt.made(directory, "many.yrt", MANY), yrt.made(directory, "twins.yrt", TWINS)
        assert folded(many) == [
            (["cc1 (20 processes)", "main", "work"], 200),
            (["make -j (pid 99)", "main"], 5),
        ], folded(many)
        assert len(folded(many, "--processes", "each")) == 21
        assert [f[0] for f, _ in folded(twins)] == ["java … 8080 (pid 7)", "java … 9090 (pid 8)"], folded(twins)
        out = os.path.join(directory, "d.folded")
        yrt.run("diff", many, many, "-o", out, output=False, stats=False).expect()
        assert "cc1;main;work 200 200\n" in yrt.read(out), yrt.read(out)
        bad = yrt.run("render", many, "-o", out, "--processes", "some", output=False, stats=False)
        assert bad.code == yrt.USAGE and "not \"some\"" in bad.stderr, bad.stderr


yrt.main(globals())
