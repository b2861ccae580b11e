# SPDX-License-Identifier: Apache-2.0
"""Profiles handed to stores: what each of them gets, read by others' readers; what is kept where one is not taken."""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse

import servers
import stores
import yrt
from stores import META, made, push

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
import oracles  # noqa: E402

LABELS = {"service.name": "shop", "host.name": "h{1,2}", "k8s.pod.uid": "1b2c3d4e-5f60"}


def recorded(dir):
    """A recording of a real program."""
    path = os.path.join(dir, "real.yrt")
    with yrt.Fixture("inlines") as fixture:
        at = yrt.Run("record", "-p", fixture.pid, "-d", 600, "-F", 499, "-o", path, output=False).sampling()
        fixture.release()
        yrt.until(lambda: yrt.cpu_seconds(fixture.pid) > 0.5, "it works")
        at.interrupt()
        at.result().expect()
    return path


def rendered(path, extension):
    out = f"{path}.{extension}"
    subprocess.run([yrt.YRT, "render", path, "-o", out], check=True)
    return out


def sent(kind, path, *flags, env=None):
    """The one request of a push: (parsed URL, query, headers, body)."""
    with stores.Store() as store:
        labels = [word for key, value in LABELS.items() for word in ("--label", f"{key}={value}")]
        done = push(path, "--push", f"{kind}+http://127.0.0.1:{store.port}", *labels, *flags, env=env)
        assert done.returncode == 0 and "took" in done.stderr, done.stderr
        (at, headers, body), = store.requests
    url = urllib.parse.urlsplit(at)
    return url, urllib.parse.parse_qs(url.query), headers, body


def kept(dir, body):
    path = os.path.join(dir, "sent.pb.gz")
    with open(path, "wb") as out:
        out.write(body)
    return path


# Labels of samples, of which Pyroscope would make a series each.
EACH = {"pid", "thread", "thread_id", "runtime", "kind"}


def labels_of(dir, body):
    read = oracles.Pprof(kept(dir, body))
    return {key for sample in read.profile["sample"] for key in read.labels(sample)}


def pprof_stacks(dir, body):
    path = kept(dir, body)
    top = oracles.pprof_top(path, "samples")
    assert top, "go tool pprof reads nothing"
    read = oracles.Pprof(path)
    read.check()
    return oracles.merge(read.stacks())


@yrt.measured
def test_what_stores_get():
    with tempfile.TemporaryDirectory() as dir:
        path = recorded(dir)
        wanted = oracles.merge(oracles.Pprof(rendered(path, "pb.gz")).stacks())
        assert sum(wanted.values()) > 100

        url, query, headers, body = sent("pyroscope", path, "--tenant", "t1", env={"YRT_PUSH_TOKEN": "secret"})
        assert (
            url.path == "/ingest" and query["format"] == ["pprof"] and int(query["until"][0]) > int(query["from"][0])
        ), url
        name = query["name"][0]
        assert name.startswith("shop{") and "host_name=h_1_2_" in name and "k8s_pod_uid=1b2c3d4e-5f60" in name, name
        assert headers["X-Scope-OrgID"] == "t1" and headers["Authorization"] == "Bearer secret", headers
        assert pprof_stacks(dir, body) == wanted and not EACH & labels_of(dir, body), labels_of(dir, body)

        url, _, headers, body = sent("parca", path)
        series, = json.loads(body)["series"]
        labels = {pair["name"]: pair["value"] for pair in series["labels"]["labels"]}
        assert url.path == "/api/profiles/writeraw" and headers["Content-Type"] == "application/json"
        assert (
            labels["__name__"] == "process_cpu" and labels["job"] == "shop" and labels["host_name"] == "h{1,2}"
        ), labels
        body = base64.b64decode(series["samples"][0]["rawProfile"], validate=True)
        assert pprof_stacks(dir, body) == wanted and EACH <= labels_of(dir, body), labels_of(dir, body)

        url, query, headers, body = sent("coroot", path, env={"YRT_PUSH_TOKEN": "key"})
        assert (
            url.path == "/v1/profiles" and query["service.name"] == ["shop"] and query["host.name"] == ["h{1,2}"]
        ), query
        assert headers["X-API-Key"] == "key"
        check_coroot(oracles.Pprof(kept(dir, body)), oracles.Pprof(rendered(path, "pb.gz")))

        url, _, headers, body = sent("otlp", path)
        assert url.path == "/v1development/profiles" and headers["Content-Type"] == "application/x-protobuf"
        check_otlp(oracles.Otlp(body), wanted)
        with open(rendered(path, "otlp"), "rb") as file:
            assert oracles.merge(oracles.Otlp(file.read()).stacks()) == wanted


def check_coroot(read, plain):
    """Coroot knows a profile by the type of its value, and takes its time for the end (collector/profiles.go)."""
    read.check()
    assert read.types() == [("ebpf:cpu:nanoseconds", "nanoseconds")], read.types()
    assert oracles.merge(read.stacks()) == oracles.merge(plain.stacks(1)), "not the time of the samples"
    begin, lasted = (plain.one(plain.profile, name) for name in ("time_nanos", "duration_nanos"))
    assert read.one(read.profile, "time_nanos") == begin + lasted and lasted > 0, (begin, lasted)


def check_otlp(read, wanted):
    assert oracles.merge(read.stacks()) == wanted
    assert (
        read.type(read.profiles[0]) == ("samples", "count") and read.one(read.profiles[0], "period") == 2004008
    ), read.profiles[0]
    resource = read.resource()
    assert all(resource[key] == value for key, value in LABELS.items()), resource
    assert read.frame_types() <= {"native", "kernel"} and "native" in read.frame_types()
    builds = {os.path.basename(file): build for file, build in read.build_ids().items()}
    assert builds["inlines"] and len(builds["inlines"]) == 40, builds
    assert {"thread.name", "thread.id"} <= set(read.attributes(read.profiles[0]["samples"][0]))


COLLECTOR = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{take}"}}}}}}}}
exporters: {{otlp_http: {{profiles_endpoint: "http://127.0.0.1:{give}/v1development/profiles", compression: none}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [otlp_http]}}}}
"""


@yrt.measured
def test_collector():
    """
    A real OpenTelemetry Collector, which sends on what it was sent: stacks, values, labels. YRT_OTELCOL:
    fixtures/collector/get.sh builds it.
    """
    program = os.environ.get("YRT_OTELCOL")
    if not program:
        raise yrt.Skipped("YRT_OTELCOL names no Collector")
    with tempfile.TemporaryDirectory() as dir, stores.Store() as store:
        path, port = recorded(dir), servers.free_port()
        with open(os.path.join(dir, "config.yaml"), "w") as file:
            file.write(COLLECTOR.format(take=port, give=store.port))
        collector = subprocess.Popen(
            [program, "--config", f"file:{file.name}", "--feature-gates", "service.profilesSupport"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            labels = [word for key, value in LABELS.items() for word in ("--label", f"{key}={value}")]
            done = push(path, "--push", f"otlp+http://127.0.0.1:{port}", "--push-tries", 8, *labels)
            assert done.returncode == 0, done.stderr
            end = time.monotonic() + 30
            while not store.requests and time.monotonic() < end:
                time.sleep(0.05)
        finally:
            yrt.stop(collector)
        check_otlp(oracles.Otlp(store.requests[0][2]), oracles.merge(oracles.Pprof(rendered(path, "pb.gz")).stacks()))


def values_of(dir, *meta):
    """What a profile's numbers are to readers of pprof and of OTLP, and Parca's name for it."""
    path = yrt.made(dir, "values.yrt", "a;b 4096\na;c 64\n", *meta)
    pprof = oracles.Pprof(rendered(path, "pb.gz"))
    pprof.check()
    with open(rendered(path, "otlp"), "rb") as file:
        otlp = oracles.Otlp(file.read())
    for i, profile in enumerate(otlp.profiles):
        assert otlp.period(profile) == pprof.period()  # Parca needs one
        counted = {stack: n for stack, n in oracles.merge(pprof.stacks(i)).items() if n}
        assert otlp.type(profile) == pprof.types()[i], pprof.types()
        assert oracles.merge(otlp.stacks(i)) == counted, (pprof.types(), counted)
    _, _, _, body = sent("parca", path)
    name, = [p["value"] for p in json.loads(body)["series"][0]["labels"]["labels"] if p["name"] == "__name__"]
    again = subprocess.run([yrt.YRT, "render", f"{path}.pb.gz", "-o", "-"], capture_output=True, text=True, check=True)
    assert again.stdout == "a;b 4096\na;c 64\n", again.stdout  # readers take what was counted
    return name, pprof.types(), pprof.period()


def test_labels():
    """A label twice: the last one counts. Parca takes no name twice, and job is one that it has by default."""
    twice = ["--label", "a.b=1", "--label", "a.b=2", "--label", "a_b=3", "--label", "job=front"]
    with tempfile.TemporaryDirectory() as dir:
        path = made(dir)
        _, _, _, body = sent("otlp", path, *twice)
        read = oracles.Otlp(body)
        keys = [a["key"][0] for a in read.resources["resource"][0]["attributes"]]
        assert len(keys) == len(set(keys)) and read.resource()["a.b"] == "2", keys
        _, _, _, body = sent("parca", path, *twice)
        pairs = [(pair["name"], pair["value"]) for pair in json.loads(body)["series"][0]["labels"]["labels"]]
        labels = dict(pairs)
        assert len(labels) == len(pairs) and labels["job"] == "front" and labels["a_b"] == "2", pairs
        assert labels["service_name"] == "shop" and labels["__name__"] == "process_cpu", pairs
        with stores.Store() as store:
            done = push(path, "--push", f"otlp+http://127.0.0.1:{store.port}", "--label", "service=front")
            assert done.returncode == 0, done.stderr
            (_, _, body), = store.requests
        assert oracles.Otlp(body).resource()["service.name"] == "front", "service means service.name"


def test_values():
    """Each value by its type: time that was waited for is no memory."""
    with tempfile.TemporaryDirectory() as dir:
        count, ns = "count", "nanoseconds"
        for command, unit, more, name, types in (
            ("java-alloc", "bytes", "objects", "memory", [("alloc_objects", count), ("alloc_space", "bytes")]),
            ("pools", "bytes", "blocks", "memory", [("inuse_objects", count), ("inuse_space", "bytes")]),
            ("lock-flame", ns, "waits", "mutex", [("delay", ns), ("contentions", count)]),
            ("lua-off-flame", ns, "waits", "off_cpu", [("off_cpu", ns), ("waits", count)]),
            ("off-flame", "waits", ns, "off_cpu", [("waits", count), ("off_cpu", ns)]),
            ("wall-flame", ns, "waits", "wall", [("wall", ns), ("waits", count)]),
            ("io-flame", ns, "bytes", "file_io", [("file_io", ns), ("bytes", "bytes")]),
            ("latency", ns, "calls", "latency", [("latency", ns), ("calls", count)]),
            ("fault-flame", "faults", "", "page_faults", [("faults", count)]),
            ("probe", "hits", "", "probe", [("hits", count)]),
            ("stacks", "samples", "", "process_cpu", [("samples", count)]),
        ):
            got = values_of(dir, f"title={command}", f"unit={unit}", *([f"more={more}"] if more else []))
            assert got == (name, types, (*next(t for t in types if not t[0].endswith("_objects")), 1)), got


def test_frame_types():
    """Those of the conventions: what a VM's own code does is native, not of a type of its own."""
    with tempfile.TemporaryDirectory() as dir:
        path = os.path.join(dir, "python.yrt")
        yrt.run(
            "record", "-F", 499, "-o", path, "--", sys.executable, "-c",
            "import time\nwhile time.process_time() < 0.5: sum(range(100))", output=False,
        ).expect()
        with open(rendered(path, "otlp"), "rb") as file:
            types = oracles.Otlp(file.read()).frame_types()
        assert {"cpython", "native"} <= types <= {"cpython", "native", "kernel"}, types


def test_hostile_names():
    """Any bytes: what protoc calls a string is one."""
    with tempfile.TemporaryDirectory() as dir:
        path = yrt.made(dir, "h.yrt", "\ufffd\x01\"</script>{};ok 3\n", *META)
        with open(rendered(path, "otlp"), "rb") as file:
            assert sum(oracles.merge(oracles.Otlp(file.read()).stacks()).values()) == 3


def test_stdin_is_kept():
    with tempfile.TemporaryDirectory() as dir, stores.Store((401, {})) as store:
        done = subprocess.run(
            [yrt.YRT, "push", "-", "--push", f"otlp+http://127.0.0.1:{store.port}"],
            cwd=dir,
            input="a;b 5\n",
            capture_output=True,
            text=True,
        )
        kept, = os.listdir(dir)
        assert done.returncode == yrt.OUTPUT and kept in done.stderr, done.stderr
        out = subprocess.run(
            [yrt.YRT, "render", os.path.join(dir, kept), "-o", "-"], capture_output=True, text=True, check=True
        )
        assert out.stdout == "a;b 5\n", out.stdout
        done = subprocess.run(
            [yrt.YRT, "push", "-", "--push", f"otlp+http://127.0.0.1:{store.port}"],
            cwd="/proc",
            input="a;b 5\n",
            capture_output=True,
            text=True,
        )
        assert done.returncode == yrt.OUTPUT and "it is lost: cannot write unsent-" in done.stderr, done.stderr


def test_kept_at_once():
    """Several that are not taken in one second, in one folder: each has a file of its own."""
    with tempfile.TemporaryDirectory() as dir, yrt.Fixture("deep30", wait=False) as fixture:
        nowhere = ["--push", "otlp+http://127.0.0.1:1", "--push-tries", "1"]
        commands = [["push", "-", *nowhere]] * 4 + [["record", "-p", str(fixture.pid), "-d", "0.5", *nowhere]] * 3
        pipes = [
            subprocess.Popen([yrt.YRT, *command], cwd=dir, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for command in commands
        ]
        for i, at in enumerate(pipes):
            _, err = at.communicate(f"a;b{i} 5\n", timeout=300)
            assert at.returncode == yrt.OUTPUT and "it is kept in" in err, err
        kept = os.listdir(dir)
        assert sum(name.startswith("unsent-") for name in kept) == 4 and len(kept) == 7, kept
        shows = ([yrt.YRT, "render", os.path.join(dir, name), "-o", "-"] for name in kept if name.startswith("unsent-"))
        stacks = {subprocess.run(show, capture_output=True, text=True).stdout for show in shows}
        assert stacks == {f"a;b{i} 5\n" for i in range(4)}, stacks


def test_nothing():
    """
    What came from a program that failed, or was never written, is no profile; a recording in which nothing ran is one.
    """
    with tempfile.TemporaryDirectory() as dir, stores.Store((200, {})) as store:
        empty = os.path.join(dir, "empty.yrt")
        open(empty, "w").close()
        for path in "-", empty:
            done = push(path, "--remove", "--push", f"otlp+http://127.0.0.1:{store.port}", stdin="")
            assert (
                done.returncode == yrt.INPUT and "nothing is sent" in done.stderr and os.path.exists(empty)
            ), done.stderr
        assert not store.requests
        with yrt.Fixture("deep30") as fixture:
            yrt.run("record", "-p", fixture.pid, "-d", 0.5, "-o", empty, output=False).expect()
        assert not push(empty, "--push", f"otlp+http://127.0.0.1:{store.port}").returncode and len(store.requests) == 1


def burning():
    """Enough for some samples, however busy the machine is."""
    return yrt.Fixture("deep30", seconds=0.5, cpu=True)


def test_push_of_a_run():
    """
    flame --push: sent with where it is from, and gone; kept, and reported, if the store is down; without room in a file
    it is sent all the same.
    """
    for answer, code in (200, 0), (401, yrt.OUTPUT):
        with tempfile.TemporaryDirectory() as dir, burning() as fixture, stores.Store(
            (answer, {})
        ) as store:
            at = yrt.Run(
                "flame",
                "-p",
                fixture.pid,
                "-d",
                600,
                "--push",
                f"otlp+http://127.0.0.1:{store.port}",
                output=False,
                cwd=dir,
            ).sampling()
            fixture.release()
            fixture.finish()
            result = at.result().expect(code)
            read = oracles.Otlp(store.requests[0][2])
            resource = read.resource()
            assert (
                resource["service.name"] == "deep30"
                and resource["host.name"]
                and len(resource["process.executable.build_id.gnu"]) == 40
            )
            assert any("f01" in frames for frames, _ in read.stacks())
            kept = os.listdir(dir)
            assert len(kept) == (code != 0) and all(name in result.stderr for name in kept), (kept, result.stderr)
    for answer, named in (200, False), (401, False), (200, True):
        with tempfile.TemporaryDirectory() as dir, burning() as fixture, stores.Store(
            (answer, {})
        ) as store:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", dir], check=True)
            try:
                with open(os.path.join(dir, "filler"), "wb") as file:
                    file.write(bytes(4096))
                at = yrt.Run(
                    "record",
                    "-p",
                    fixture.pid,
                    "-d",
                    600,
                    "--push",
                    f"otlp+http://127.0.0.1:{store.port}",
                    *(["-o", "x.yrt"] if named else []),
                    output=False,
                    stats=False,
                    cwd=dir,
                ).sampling()
                fixture.release()
                fixture.finish()
                result = at.result().expect(0 if answer == 200 and not named else yrt.OUTPUT)
                assert "No space left" in result.stderr and ("sent from memory" in result.stderr) == (
                    answer == 200
                ), result.stderr
                assert (
                    any("f01" in frames for frames, _ in oracles.Otlp(store.requests[0][2]).stacks())
                    and len(store.requests) == 1
                )
                assert len(os.listdir(dir)) == 1 + named, os.listdir(dir)  # none that is empty
            finally:
                subprocess.run(["umount", "-l", dir], check=True)  # yrt may still be in it, if a test fails
    result = yrt.run("flame", "-p", "1", "--push", "otlp+http://127.0.0.1:1", "-o", "x.html", output=False).expect(
        yrt.USAGE
    )
    assert "sends a recording" in result.stderr, result.stderr


yrt.main(globals())
