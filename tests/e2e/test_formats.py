# SPDX-License-Identifier: Apache-2.0
"""
Each output format of a real profile, read by somebody else: protoc and go tool pprof, speedscope's schema, xmllint,
Chromium. A recording is drawn in all formats, and all must show what the folded stacks show.
"""

import collections
import contextlib
import functools
import json
import os
import re
import sys
import tempfile

import yrt

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
import oracles  # noqa: E402
from webdriver import Browser  # noqa: E402

HOSTILE = """\
%3C/script%3E%3Cimg src=x onerror=alert(1)%3E|native|m%22%27%26|%5C%0A.c|7;%FF%C3%28|script|luajit;%1B[31m 3
%E2%80%AE%EF%BF%BF|jit|]]%3E;a%3Bb 2
"""


@functools.cache
def recorded():
    """The recording of three threads, made once for all tests."""
    with tempfile.TemporaryDirectory() as directory, yrt.Fixture("threads", 3) as fixture:
        path = os.path.join(directory, "x.yrt")
        at = yrt.Run("record", "-p", fixture.pid, "-d", 600, "-F", 999, "-o", path, output=False).sampling()
        fixture.release()
        yrt.until(lambda: all(yrt.thread_cpu_seconds(fixture.pid, f"worker-{n}") > 0.3 for n in range(3)), "all work")
        at.interrupt()
        at.result().expect()
        with open(path, "rb") as file:
            return file.read()


@contextlib.contextmanager
def recording():
    """A directory with x.yrt."""
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "x.yrt"), "wb") as file:
            file.write(recorded())
        yield directory


def render(directory, extension, *flags, name="x.yrt"):
    path = os.path.join(directory, "x." + extension)
    yrt.run("render", os.path.join(directory, name), "-o", path, *flags, output=False, stats=False).expect()
    return path


def folded(directory, *flags, name="x.yrt"):
    return yrt.parse_folded(yrt.read(render(directory, "folded", *flags, name=name)))


def equal(got, wanted):
    got, wanted = oracles.merge(got), oracles.merge(wanted)
    assert (
        got == wanted
    ), f"too much: {dict((got - wanted).most_common(3))}, too little: {dict((wanted - got).most_common(3))}"


def totals(stacks):
    """{function: (self, with all below)}."""
    flat, cumulative = collections.Counter(), collections.Counter()
    for frames, count in stacks:
        flat[frames[-1]] += count
        for name in set(frames):
            cumulative[name] += count
    return {name: (flat[name], cumulative[name]) for name in cumulative}


def test_pprof():
    with recording() as directory:
        stacks, profile = folded(directory), oracles.Pprof(render(directory, "pb.gz"))
    profile.check()
    assert profile.types() == [("samples", "count"), ("cpu", "nanoseconds")], profile.types()
    equal(profile.stacks(), stacks)
    counts, times = (sum(n for _, n in profile.stacks(i)) for i in (0, 1))
    assert abs(times / (counts * 1e9 / 999) - 1) < 1e-6, (counts, times)
    assert any("samples of" in c for c in profile.comments()), profile.comments()
    threads = collections.Counter(
        profile.labels(s)["thread"] for s in profile.profile["sample"] for _ in range(s["value"][0])
    )
    assert all(threads[f"worker-{n}"] > 50 for n in range(3)), threads
    assert {profile.labels(s)["runtime"] for s in profile.profile["sample"]} == {"native"}
    assert profile.profile["duration_nanos"][0] > 0.3e9, profile.profile["duration_nanos"]


def test_pprof_mappings():
    """Files with their build-ids, as readelf shows them, and functions at their addresses."""
    with recording() as directory:
        profile = oracles.Pprof(render(directory, "pb.gz"))
    program = yrt.fixture_path("threads")
    mapping = next(m for m in profile.mappings.values() if profile.text(m, "filename") == program)
    notes = oracles.run("readelf", "-n", program)
    assert profile.text(mapping, "build_id") == re.search(r"Build ID: (\w+)", notes)[1]
    symbols = {
        name: int(addr, 16) for addr, name in re.findall(r"^(\w+) [tTwW] (\S+)$", oracles.run("nm", program), re.M)
    }
    seen = 0
    for location in profile.locations.values():
        name = profile.text(profile.functions[location["line"][-1]["function_id"][0]], "name")
        if profile.one(location, "mapping_id") == mapping["id"][0] and name in symbols:
            assert profile.one(location, "address") == symbols[name], name
            seen += 1
    assert seen >= 2, "no function of the program was compared"


def test_go_pprof():
    with recording() as directory:
        wanted, got = totals(folded(directory)), oracles.pprof_top(render(directory, "pb.gz"), "samples")
    assert got == wanted, {
        name: (got.get(name), wanted.get(name)) for name in {*got, *wanted} if got.get(name) != wanted.get(name)
    }


def test_go_pprof_inlined():
    """What was inlined is one location with what it is in, and pprof says so."""
    with tempfile.TemporaryDirectory() as directory:
        yrt.made(
            directory,
            "made.yrt",
            "main;outer|native|m||1;inner|native|m|||16;innermost|native|m|||16 5\nmain;outer|native|m||1 2\n",
        )
        profile = oracles.Pprof(render(directory, "pb.gz", name="made.yrt"))
        raw = oracles.run(oracles.tool("go"), "tool", "pprof", "-raw", os.path.join(directory, "x.pb.gz"))
    equal(profile.stacks(), [(["main", "outer", "inner", "innermost"], 5), (["main", "outer"], 2)])
    assert sorted(len(location["line"]) for location in profile.locations.values()) == [1, 1, 3], profile.locations
    assert "innermost" in raw


def test_pprof_read():
    """What yrt wrote, and the same as Google's library writes it, drawn again; what is none is refused."""
    with recording() as directory:
        wanted, threads = folded(directory), folded(directory, "-t")
        profile = render(directory, "pb.gz")
        again, other = (os.path.join(directory, name) for name in ("again.pb.gz", "cut.pb.gz"))
        oracles.run(oracles.tool("go"), "tool", "pprof", "-proto", "-output", again, profile)
        for name in ("x.pb.gz", "again.pb.gz"):
            equal(folded(directory, name=name), wanted)
            equal(folded(directory, "-t", name=name), threads)
        text = yrt.read(render(directory, "txt", name="x.pb.gz"))
        with open(profile, "rb") as whole, open(other, "wb") as cut:
            cut.write(whole.read()[:-200])
        refused = yrt.run("render", other, "-o", os.path.join(directory, "no.txt"), output=False, stats=False).expect(
            yrt.INPUT
        )
        difference = os.path.join(directory, "d.pb.gz")
        yrt.run("diff", profile, profile, "-o", difference, output=False, stats=False).expect()
        negative = yrt.run(
            "render", difference, "-o", os.path.join(directory, "no.txt"), output=False, stats=False
        ).expect(yrt.INPUT)
    assert " samples of " in text and "yrt record" in text, text  # the comments
    assert "not a complete gzip file" in refused.stderr and "is a difference of two profiles" in negative.stderr, (
        refused.stderr,
        negative.stderr,
    )


def test_pprof_difference():
    """go tool pprof shows what changed, and shares of the profile from before."""
    with tempfile.TemporaryDirectory() as directory:
        yrt.made(directory, "a.yrt", "main;grew 30\nmain;same 50\nmain;gone 20\n", "frequency=100", "unit=samples")
        yrt.made(directory, "b.yrt", "main;grew 60\nmain;same 100\nmain;new 40\n", "frequency=100", "unit=samples")
        paths = [os.path.join(directory, name) for name in ("a.yrt", "b.yrt", "d.pb.gz", "raw.pb.gz")]
        yrt.run("diff", *paths[:2], "-o", paths[2], output=False, stats=False).expect()
        yrt.run("diff", "--raw", *paths[:2], "-o", paths[3], output=False, stats=False).expect()
        shares, counts = oracles.pprof_top(paths[2], "samples"), oracles.pprof_top(paths[3], "samples")
        base = oracles.run(oracles.tool("go"), "tool", "pprof", "-top", "-sample_index=samples", paths[3])
    assert {n: v[0] for n, v in shares.items() if v[0]} == {"gone": -40, "new": 40}, shares
    assert {n: v[0] for n, v in counts.items() if v[0]} == {"grew": 30, "same": 50, "gone": -20, "new": 40}, counts
    assert "of 100 total" in base, base


def test_speedscope():
    with recording() as directory:
        stacks, scope = folded(directory), oracles.Speedscope(render(directory, "json"))
    equal([(frames, round(weight / (1e9 / 999))) for frames, weight in scope.stacks()], stacks)
    names = [p["name"] for p in scope.file["profiles"]]
    assert all(any(f"worker-{n} (tid " in name for name in names) for n in range(3)), names
    assert {p["unit"] for p in scope.file["profiles"]} == {"nanoseconds"}
    assert re.search(r": \d+ samples of \d+ expected .* lost", scope.file["name"]), scope.file["name"]


def test_svg():
    with recording() as directory:
        stacks, titles = folded(directory), oracles.svg_titles(render(directory, "svg"))
    shares = {}
    for title in titles:
        shares.setdefault(title[0], float(re.search(r", ([\d.]+) %, itself", title[-1])[1]))
    samples = sum(n for _, n in stacks)
    assert shares["all"] == 100 and titles[0][-1].startswith(f"{samples} samples"), titles[0]
    for name, (_, below) in totals(stacks).items():
        once = (
            max(f.count(name) for f, _ in stacks) == 1
            and len({tuple(f[: f.index(name)]) for f, _ in stacks if name in f}) == 1
        )
        if once and below > samples / 50:
            assert abs(shares[name] - 100 * below / samples) < 0.011, (name, shares[name], 100 * below / samples)


def test_txt():
    with recording() as directory:
        stacks, text = folded(directory), yrt.read(render(directory, "txt"))
    rows = re.findall(r"^ *([\d.]+) +([\d.]+)?  (?:[│├└ ]*)(\S+)", text, re.M)
    samples, shown = sum(n for _, n in stacks), {name: (total, own) for total, own, name in reversed(rows)}
    assert shown["all"][0] == "100.00", text[:1000]
    for name, (own, below) in totals(stacks).items():
        roots = {tuple(f[:f.index(name)]) for f, _ in stacks if name in f}
        if below > samples / 20 and len(roots) == 1 and max(f.count(name) for f, _ in stacks) == 1:
            assert abs(float(shown[name][0]) - 100 * below / samples) < 0.01, (name, shown[name], below)


def jfr_stacks(path, event, member=None):
    """What the JDK's own reader makes of a recording: [(frames from the root, count)]."""
    text = oracles.run(oracles.tool("jfr"), "print", "--json", "--stack-depth", "1000", "--events", event, path)
    stacks = []
    for made in json.loads(text)["recording"]["events"]:
        frames = [f["method"]["name"] for f in made["values"]["stackTrace"]["frames"]][::-1]
        stacks.append((frames, made["values"][member] if member else 1))
    return stacks


def test_jfr():
    with recording() as directory:
        stacks, path = folded(directory), render(directory, "jfr")
        equal(jfr_stacks(path, "jdk.ExecutionSample"), stacks)
        summary = oracles.run(oracles.tool("jfr"), "summary", path)
        said = json.loads(oracles.run(oracles.tool("jfr"), "print", "--json", "--events", "yrt.Profile", path))
    assert re.search(rf"jdk.ExecutionSample +{sum(n for _, n in stacks)} ", summary), summary
    values = said["recording"]["events"][0]["values"]
    assert values["unit"] == "samples" and " lost" in values["loss"], values


def test_jfr_of_other_units():
    """Numbers of any size; classes and methods of Java; what is there of a profile that has nothing."""
    java = "com.x.Main$1.run|jit|hotspot|Main.java|7"
    made = [(["main"], 1), (["main", "run"], (1 << 52) + 3), (["main", "run", "read (f)"], 1 << 50)]
    text = "main|native|app 1\nmain|native|app;%s %d\nmain|native|app;%s;read (f)|kernel|kernel %d\n" % (
        java, made[1][1], java, made[2][1])
    with tempfile.TemporaryDirectory() as directory:
        yrt.made(directory, "made.yrt", text, "unit=bytes", "title=alloc", "frequency=0")
        path = render(directory, "jfr", name="made.yrt")
        equal(jfr_stacks(path, "yrt.Value", "value"), made)
        printed = oracles.run(oracles.tool("jfr"), "print", "--events", "yrt.Value", path)
        yrt.made(directory, "time.yrt", text, "unit=nanoseconds", "title=off-flame", "frequency=0")
        types = oracles.run(oracles.tool("jfr"), "metadata", render(directory, "jfr", name="time.yrt"))
        yrt.made(directory, "none.yrt", "")
        empty = oracles.run(oracles.tool("jfr"), "summary", render(directory, "jfr", name="none.yrt"))
    assert "com.x.Main$1.run()" in printed and "app.main()" in printed, printed
    assert '@Timespan("NANOSECONDS")' in types, types
    assert re.search(r"jdk.ExecutionSample +0 ", empty) and re.search(r"yrt.Profile +1 ", empty), empty


GEOMETRY = """
    const box = (e) => { const r = e.getBBox(); return [r.x, r.y, r.x + r.width, r.y + r.height]; };
    return [...document.querySelectorAll("g")].map((g) => [g.querySelector("title").textContent, box(g.querySelector("rect")),
        g.querySelector("text") && box(g.querySelector("text"))]);"""


def check_picture(svg):
    """
    As Chromium draws it: labels are inside their frames, frames are inside the picture and above one of the row below.
    """
    with Browser() as b:
        b.open("file://" + svg)
        frames = b.run(GEOMETRY)
        width, height = b.run(
            "const s = document.documentElement; return [s.width.baseVal.value, s.height.baseVal.value];"
        )
        assert not b.log(), "the picture complains"
    assert len(frames) > 5 and any(text for _, _, text in frames)
    bottom = max(y for _, (_, y, _, _), _ in frames)
    for title, (left, top, right, end), text in frames:
        assert 0 <= left and right <= width and 0 <= top and end <= height, title
        assert not text or (left <= text[0] and text[2] <= right + 0.5), (title, (left, right), text)
        below = [o for _, o, _ in frames if abs(o[1] - top - 17) < 1 and o[0] - 0.6 <= left and right <= o[2] + 1.1]
        assert top == bottom or below, f"{title} stands on nothing"


def test_svg_in_chromium():
    with recording() as directory:
        check_picture(render(directory, "svg"))
        yrt.made(directory, "made.yrt", "main;a 5\nmain;gone;b 9\n")
        diff = os.path.join(directory, "d.svg")
        yrt.run("diff", os.path.join(directory, "made.yrt"), os.path.join(directory, "x.yrt"), "-o", diff, output=False,
                stats=False).expect()
        check_picture(diff)


def test_svg_of_wide_names():
    """Labels fit in other scripts too."""
    names = [
        "\u4e16\u754c" * 40,
        "\U0001f525" * 60,
        "\u0645\u0631\u062d\u0628\u0627" * 40,
        "e\u0301" * 90,
        "W" * 200,
        "i" * 300,
    ]
    stacks = "".join(f"{name};{name[::-1]} {n + 1}\n" for n, name in enumerate(names))
    with tempfile.TemporaryDirectory() as directory:
        yrt.made(directory, "made.yrt", stacks)
        check_picture(render(directory, "svg", name="made.yrt"))


def test_hostile_names():
    with tempfile.TemporaryDirectory() as directory:
        yrt.made(directory, "made.yrt", HOSTILE, "target=%3C/title%3E", "command=a%00b", "loss=%FF", "frequency=99")
        stacks = folded(directory, name="made.yrt")
        profile = oracles.Pprof(render(directory, "pb.gz", name="made.yrt"))
        profile.check()
        scope = oracles.Speedscope(render(directory, "json", name="made.yrt"))
        titles = [t[0] for t in oracles.svg_titles(render(directory, "svg", name="made.yrt"))]
        text = yrt.read(render(directory, "txt", name="made.yrt"))
        oracles.pprof_top(os.path.join(directory, "x.pb.gz"), "samples")
    clean = [([f.replace("a:b", "a;b") for f in frames], n) for frames, n in stacks]
    equal(profile.stacks(), clean)
    assert sum(w for _, w in scope.stacks()) > 0
    assert "</script><img src=x onerror=alert(1)>" in titles, titles
    assert "\x1b" not in text and "\x1b" not in "".join(f for frames, _ in stacks for f in frames), repr(text)


def test_stdout_and_names():
    with tempfile.TemporaryDirectory() as directory:
        yrt.made(directory, "made.yrt", "main;a 3\nmain;b 1\n")
        path = os.path.join(directory, "made.yrt")
        for name, begins in (
            ("txt", "  total"),
            ("svg", "<?xml"),
            ("speedscope", '{"$schema"'),
            ("html", "<!"),
            ("folded", "main;a 3"),
        ):
            out = yrt.run("render", path, "-f", name, "-o", "-", output=False, stats=False).expect().stdout
            assert out.lower().lstrip("\n").startswith(begins.lower()) or name == "html", (name, out[:80])
        text = yrt.run("render", "--help", output=False, stats=False).expect().stdout
        for name in ("folded", "html", "svg", "txt", "pprof", "speedscope", "firefox", "chrome", "perf", "jfr", "yrt"):
            assert re.search(rf"^\s+{name} ", text, re.M), text


yrt.main(globals())
