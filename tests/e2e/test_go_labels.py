# SPDX-License-Identifier: Apache-2.0
"""
Go: --labels, --creators and goroutines by -t against what the program knows of them; what the runtime does of its own.
"""

import os
import re
import shutil
import subprocess
import tempfile

import go
import yrt

RATE = 997
# The machine's own reader, whatever release is tested.
PPROF = [shutil.which("go") or go.GO, "tool", "pprof"]
ENV = {key: value for key, value in os.environ.items() if key != "GOROOT"}
STRIPPED = "-ldflags=-s -w"
LABELS = {"main.burnBoth": "labels: kind=both, tier=1", "main.burnOne": "labels: kind=one", "main.burnNone": None,
          "main.burnEven": "labels: turn=turn 1000", "main.burnOdd": "labels: turn=turn 1001"}
GONE = "labels: [gone]"


def sample(*arguments, flags=(), path=None):
    with yrt.Fixture(
        path or go.build("labels", STRIPPED, name="labels-stripped"), *arguments, seconds=None, wait=False
    ) as f:
        result = yrt.sample(f, *flags, "-U", view="go-flame", seconds=2, rate=RATE)
        assert result.incomplete() <= 0.001, f"{result.incomplete():.4%} cut: {result.stats['truncated']}"
        return result, f.start["numbers"]


def check_labels(result, creator):
    gone = 0
    for function, labels in LABELS.items():
        stacks = [(frames, n) for frames, n in result.stacks if function in frames]
        assert stacks, f"no sample of {function}"
        for frames, n in stacks:
            before = frames[:frames.index(next(f for f in frames if f.startswith("main.")))]
            gone += n if GONE in before else 0
            want = [f for f in (GONE if GONE in before else labels, "created by main.start" if creator else None) if f]
            assert before == want, f"{function}: {before}, not {want}"
    assert gone <= result.samples / 100, f"labels of {gone} of {result.samples} samples were gone"
    return f"{result.summary()}; labels of {gone} were gone"


@yrt.measured
def test_labels():
    yield check_labels(sample(flags=("--labels", "--creators"))[0], True)


def test_pprof():
    """In pprof's format labels are labels of samples, as runtime/pprof has them, and no frames."""
    with tempfile.TemporaryDirectory() as folder, yrt.Fixture(
        go.build("labels", STRIPPED, name="labels-stripped"), seconds=None, wait=False
    ) as f:
        path = os.path.join(folder, "labels.pb.gz")
        at = yrt.Run("go-flame", "--labels", "-p", f.pid, "-F", RATE, "-o", path, output=False).sampling()
        yrt.busy_for([f.pid], 2)
        at.interrupt()
        at.result().expect()
        tags, top = (
            subprocess.run([*PPROF, *what, path], capture_output=True, text=True, check=True, env=ENV).stdout
            for what in (["-tags"], ["-top", "-cum"])
        )
    found = {
        (key, value)
        for key, rest in re.findall(r"^ *(\w+): Total.*\n((?: +.*\n)+)", tags, re.M)
        for value in re.findall(r"%\): (.*)", rest)
    }
    want = {("kind", "both"), ("tier", "1"), ("kind", "one"), ("turn", "turn 1000"), ("turn", "turn 1001")}
    assert want <= found, f"missing {want - found}: {tags}"
    assert "labels:" not in top, top
    yield f"{sorted(want)}"


@yrt.measured
def test_garbage():
    """What others wrote to the reused memory of labels is not reported as labels."""
    yield check_labels(sample("garbage", flags=("--labels",), path=go.build("labels"))[0], False)


@yrt.measured
def test_goroutines():
    result, numbers = sample(flags=("-t",))
    for function, number in numbers.items():
        stacks = [frames for frames, _ in result.stacks if function in frames]
        assert stacks and all(frames[0] == f"goroutine {number}" for frames in stacks), (function, number, stacks[:3])
    yield f"{result.summary()}; {len(numbers)} goroutines by their numbers"


def claim(path, minor):
    """A copy that says of itself that another release built it."""
    release = (
        subprocess.run([go.GO, "version"], capture_output=True, text=True, check=True, env=go.ENV)
        .stdout.split()[2]
        .encode()
    )
    other, copy = release.replace(b"1.%d" % go.minor(), b"1.%d" % minor), f"{path}-as-{minor}"
    with open(path, "rb") as f:
        whole = f.read()
    assert release in whole and len(release) == len(other), release
    with open(copy, "wb") as f:
        f.write(whole.replace(release, other))
    os.chmod(copy, 0o755)
    return copy


def layout(minor):
    with open(os.path.join(yrt.SOURCE, "runtimes", "go", "layouts", f"go1.{minor}.layout"), encoding="utf-8") as f:
        return [line for line in f if re.match(r"runtime\.g:(goid|gopc|labels) ", line)]


@yrt.measured
def test_wrong_release():
    """A layout that is not the program's is not used: what would be read by it is not shown, and that is said."""
    stripped, symbols = go.build("labels", STRIPPED, name="labels-stripped"), go.build("labels")
    others = [minor for minor in (14, 18, 24, 26) if layout(minor) != layout(go.minor())]
    for minor in others:
        with yrt.Fixture(claim(stripped, minor), seconds=None, wait=False) as f:
            done = yrt.run("go-flame", "-U", "-t", "--labels", "--creators", "-p", f.pid, "-d", 1, "-F", RATE).expect()
            assert "creators, labels and numbers of goroutines are not shown" in done.stderr, done.stderr
            told = [
                x
                for frames, _ in done.stacks
                for x in frames
                if x.startswith(("goroutine ", "labels: ", "created by "))
            ]
            assert not told and any("main.burnBoth" in frames for frames, _ in done.stacks), told
    # debug information is right whatever the release is called, but for the form of labels (go_labels.h)
    alike = next(minor for minor in others if (minor < 24) == (go.minor() < 24))
    yield check_labels(sample(flags=("--labels", "--creators"), path=claim(symbols, alike))[0], True)
    yield f"not shown as those of {others}"


def test_from_start():
    """A program that yrt starts has no goroutine to check the layout on when it is met."""
    stripped = go.build("labels", STRIPPED, name="labels-stripped")
    other = next(minor for minor in (18, 24) if layout(minor) != layout(go.minor()))
    for path, right in (stripped, True), (claim(stripped, other), False):
        at = yrt.Run("go-flame", "-U", "--creators", "-d", 600, "-F", RATE, "--", path).sampling()
        yrt.busy_for(yrt.children(at.process.pid, 1), 2)
        at.interrupt()
        done = at.result().expect()
        burnt = [(frames, n) for frames, n in done.stacks if "main.burnNone" in frames]
        shown = sum(n for frames, n in burnt if frames[0] == "created by main.start")
        whole = sum(n for _, n in burnt)
        assert whole and (shown == whole if right else shown < whole / 2), yrt.show(done.stacks, 9)
        assert right or "creators, labels and numbers of goroutines are not shown" in done.stderr, done.stderr
        yield f"{shown} of {whole} with a creator"


@yrt.both_tiers
def test_own_work():
    """Collecting garbage is one frame in the view of Go, and all of its functions in that of everything."""
    path = go.build("labels")
    with yrt.Fixture(path, "garbage", seconds=None, wait=False) as f:
        folded = yrt.sample(f, "-U", view="go-flame", seconds=6, rate=RATE)
        whole = yrt.sample(f, "-U", seconds=6, rate=RATE)
    workers = [(frames, n) for frames, n in whole.stacks if "runtime.gcBgMarkWorker" in frames]
    have, want = sum(n for frames, n in folded.stacks if frames[0] == "(gc)"), sum(n for _, n in workers)
    assert have and want, yrt.show(whole.stacks, 9)
    for frames, _ in folded.stacks:
        assert not {"runtime.gcBgMarkWorker", "runtime.schedule", "runtime.findRunnable", "runtime.sysmon"} & set(
            frames
        ), frames
        inside = [f for f in frames if re.match(r"\((gc|scheduler|sysmon)", f)]
        assert len(inside) <= 1 and (
            not inside or not any(f.startswith("main.") for f in frames[frames.index(inside[0]) :])
        ), frames
    ours, theirs = have / folded.samples, want / whole.samples
    assert not yrt.measuring() or abs(ours - theirs) < 0.1, (ours, theirs)
    yield f"(gc) has {ours:.3f} of the samples; its workers have {theirs:.3f} of the next seconds'"


yrt.main(globals())
