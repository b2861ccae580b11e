# SPDX-License-Identifier: Apache-2.0
"""
Profiles handed to stores: what each of them gets, read by others' readers; what becomes of it where a store does not
take it.
"""

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse

import servers
import stores
import yrt

sys.path.insert(0, os.path.join(yrt.SOURCE, "tests", "tools"))
import oracles  # noqa: E402

STACKS = "main (tid 7);start;work 30\nmain (tid 7);start;idle 12\n"
META = ("frequency=99", "start=1700000000", "duration=10")
LABELS = {"service.name": "shop", "host.name": "h{1,2}", "k8s.pod.uid": "1b2c3d4e-5f60"}


def push(*args, env=None, stdin=None):
    done = subprocess.run([yrt.YRT, "push", *map(str, args)], capture_output=True, text=True, timeout=60, input=stdin,
                          env={**os.environ, **(env or {})})
    return done


def recorded(dir):
    """A recording of a real program."""
    path = os.path.join(dir, "real.yrt")
    with yrt.Fixture("inlines") as fixture:
        at = yrt.Run("record", "-p", fixture.pid, "-d", 60, "-F", 499, "-o", path, output=False).sampling()
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


def pprof_stacks(dir, body):
    path = os.path.join(dir, "sent.pb.gz")
    with open(path, "wb") as out:
        out.write(body)
    top = oracles.pprof_top(path, "samples")
    assert top, "go tool pprof reads nothing"
    read = oracles.Pprof(path)
    read.check()
    return oracles.merge(read.stacks())


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
        assert pprof_stacks(dir, body) == wanted

        url, _, headers, body = sent("parca", path)
        series, = json.loads(body)["series"]
        labels = {pair["name"]: pair["value"] for pair in series["labels"]["labels"]}
        assert url.path == "/api/profiles/writeraw" and headers["Content-Type"] == "application/json"
        assert (
            labels["__name__"] == "process_cpu" and labels["job"] == "shop" and labels["host_name"] == "h{1,2}"
        ), labels
        assert pprof_stacks(dir, base64.b64decode(series["samples"][0]["rawProfile"], validate=True)) == wanted

        url, query, headers, body = sent("coroot", path, env={"YRT_PUSH_TOKEN": "key"})
        assert (
            url.path == "/v1/profiles" and query["service.name"] == ["shop"] and query["host.name"] == ["h{1,2}"]
        ), query
        assert headers["X-API-Key"] == "key" and pprof_stacks(dir, body) == wanted

        url, _, headers, body = sent("otlp", path)
        assert url.path == "/v1development/profiles" and headers["Content-Type"] == "application/x-protobuf"
        check_otlp(oracles.Otlp(body), wanted)
        with open(rendered(path, "otlp"), "rb") as file:
            assert oracles.merge(oracles.Otlp(file.read()).stacks()) == wanted


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


def test_allocations_as_otlp():
    """Two values: two profiles."""
    with tempfile.TemporaryDirectory() as dir:
        path = yrt.made(dir, "a.otlp", "a;b 4096\na;c 64\n", "unit=bytes", "more=objects", format="otlp")
        with open(path, "rb") as file:
            read = oracles.Otlp(file.read())
        assert [read.type(p) for p in read.profiles] == [("alloc_objects", "count"), ("alloc_space", "bytes")]
        assert oracles.merge(read.stacks(1)) == {("a", "b"): 4096, ("a", "c"): 64}


def test_hostile_names():
    """Any bytes: what protoc calls a string is one."""
    with tempfile.TemporaryDirectory() as dir:
        path = yrt.made(dir, "h.yrt", "\ufffd\x01\"</script>{};ok 3\n", *META)
        with open(rendered(path, "otlp"), "rb") as file:
            assert sum(oracles.merge(oracles.Otlp(file.read()).stacks()).values()) == 3


def made(dir):
    return yrt.made(dir, "made.yrt", STACKS, *META)


def test_busy_and_down():
    """Again after a while, as long as the store says so; then a clear error, and the file stays."""
    with tempfile.TemporaryDirectory() as dir:
        path = made(dir)
        with stores.Store((503, {}), (429, {"Retry-After": "1"}), (200, {})) as store:
            done = push(path, "--push", f"otlp+http://127.0.0.1:{store.port}", "--remove")
            assert done.returncode == 0 and len(store.requests) == 3 and not os.path.exists(path), done.stderr
            assert store.requests[0][2] == store.requests[2][2], "not the same profile each time"
        path = made(dir)
        with stores.Store((500, {})) as store:
            done = push(path, "--push", f"otlp+http://127.0.0.1:{store.port}", "--push-tries", 2, "--remove")
            assert done.returncode == yrt.OUTPUT and len(store.requests) == 2 and "HTTP 500" in done.stderr, done.stderr
            assert (
                os.path.exists(path) and f"{path} is kept" in done.stderr and "as told\ufffd[31m\n" in done.stderr
            ), done.stderr
            url = f"otlp+http://127.0.0.1:{store.port}"
        done = push(path, "--push", url, "--push-tries", 2)  # nobody listens there any more
        assert (
            done.returncode == yrt.OUTPUT and "is the store there?" in done.stderr and os.path.exists(path)
        ), done.stderr


def test_refusals():
    """What will not be otherwise in a moment is said at once."""
    with tempfile.TemporaryDirectory() as dir:
        path = made(dir)
        for status, words, *headers in (
            (401, "YRT_PUSH_TOKEN"),
            (413, "too large"),
            (404, "check host, port, path"),
            (400, "store's log"),
            (308, "sends yrt to https://store.invalid/ingest: ", ("Location", "https://store.invalid/ingest?name=a")),
        ):
            with stores.Store((status, dict(headers))) as store:
                done = push(path, "--push", f"pyroscope+http://127.0.0.1:{store.port}")
                assert (
                    done.returncode == yrt.OUTPUT and words in done.stderr and f"HTTP {status}" in done.stderr
                ), done.stderr
                assert len(store.requests) == 1 and os.path.exists(path), done.stderr


PAGE = b"""<!doctype html>
<html><head><style>p { color: red }</style><title>Sign in</title></head>
<body class="x"><p>Welcome &mdash; please</p></body></html>"""


def test_answers():
    """
    What a store says, as text: of a page, and of protobuf. A page is no store's yes, and OTLP's yes may be a no: the
    file stays.
    """
    page, otlp = {"Content-Type": "text/html; charset=utf-8"}, {"Content-Type": "application/x-protobuf"}
    with tempfile.TemporaryDirectory() as dir:
        path = made(dir)
        for answer, code, *words in (
            ((200, page, 0, PAGE), yrt.OUTPUT, "HTTP 200: Sign in Welcome &mdash; please\n", "a web page answers"),
            ((502, page, 0, PAGE), yrt.OUTPUT, "HTTP 502: Sign in Welcome"),
            ((400, otlp, 0, b"\x08\x03\x12\x08no field"), yrt.OUTPUT, "HTTP 400: no field\n"),
            ((200, otlp, 0, b"\n\x0b\x08\x01\x12\x07too old"), yrt.OUTPUT, "HTTP 200: too old\n", "has rejected 1"),
            ((200, otlp, 0, b"\n\x0b\x08\x01\x12\xff\xff\xff\xff\x7ftoo"), yrt.OUTPUT, "HTTP 200: too\n"),
            ((200, otlp, 0, b"\n\x09\x12\x07old way"), 0, "otlp says: old way\n"),
            ((200, otlp, 0, b"\n\xff"), 0, "took"),
            ((200, otlp, 0, b""), 0, "took"),
        ):
            with stores.Store(answer) as store:
                done = push(path, "--push", f"otlp+http://127.0.0.1:{store.port}", "--push-tries", 1)
            assert done.returncode == code and all(word in done.stderr for word in words), (answer, done.stderr)
            assert os.path.exists(path) and len(store.requests) == 1, (answer, done.stderr)


def test_token():
    """As it comes from a file, with a line break at its end; with one inside it is none."""
    with tempfile.TemporaryDirectory() as dir, stores.Store() as store:
        url = f"otlp+http://127.0.0.1:{store.port}"
        done = push(made(dir), "--push", url, "--tenant", "t1\n", env={"YRT_PUSH_TOKEN": "secret\r\n"})
        assert done.returncode == 0, done.stderr
        (_, headers, body), = store.requests
        assert headers["Authorization"] == "Bearer secret" and headers["X-Scope-OrgID"] == "t1" and body, headers
        done = push(made(dir), "--push", url, env={"YRT_PUSH_TOKEN": "secret\nX-Other: 1"})
        assert done.returncode == yrt.USAGE and "YRT_PUSH_TOKEN" in done.stderr, done.stderr
        assert "secret" not in done.stderr and len(store.requests) == 1, done.stderr


def test_hang():
    """A store that is slow is waited for, one that hangs is not, and SIGTERM ends it at once."""
    with tempfile.TemporaryDirectory() as dir, stores.Store((200, {}, 1), (200, {}, 3), (200, {}, 0)) as store:
        done = push(made(dir), "--push", f"coroot+http://127.0.0.1:{store.port}", "--push-tries", 1)
        assert done.returncode == 0, done.stderr
        done = push(
            made(dir), "--push", f"coroot+http://127.0.0.1:{store.port}", "--push-timeout", 1, "--push-tries", 2
        )
        assert done.returncode == 0 and len(store.requests) == 3, done.stderr
    with tempfile.TemporaryDirectory() as dir, stores.Store(None) as store:
        path = made(dir)
        at = subprocess.Popen(
            [
                yrt.YRT,
                "push",
                path,
                "--push",
                f"coroot+http://127.0.0.1:{store.port}",
                "--push-timeout",
                "60",
                "--remove",
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            end = time.monotonic() + 30
            while not store.requests and time.monotonic() < end:
                time.sleep(0.02)
            assert store.requests
            at.terminate()
            _, said = at.communicate(timeout=20)
        finally:
            yrt.stop(at, signal.SIGKILL)
        assert at.returncode == yrt.OUTPUT and "interrupted" in said and os.path.exists(path), said
    with tempfile.TemporaryDirectory() as dir, stores.Store(None) as store:
        done = push(
            made(dir), "--push", f"coroot+http://127.0.0.1:{store.port}", "--push-timeout", 0.5, "--push-tries", 2
        )
        assert done.returncode == yrt.OUTPUT and "0.5 s each" in done.stderr and len(store.requests) == 2, done.stderr


def test_certificate():
    """One that nobody signed is refused, and one of another host; --ca believes it. A host that is not there."""
    with tempfile.TemporaryDirectory() as dir:
        path, key, cert = made(dir), os.path.join(dir, "key.pem"), os.path.join(dir, "cert.pem")
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-keyout",
                key,
                "-out",
                cert,
                "-days",
                "2",
                "-subj",
                "/CN=store",
                "-addext",
                "subjectAltName=IP:127.0.0.1",
            ],
            check=True,
            capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        with stores.Store(context=context) as store:
            url = f"otlp+https://127.0.0.1:{store.port}"
            done = push(path, "--push", url)
            assert done.returncode == yrt.OUTPUT and "--ca FILE" in done.stderr and not store.requests, done.stderr
            # another one's
            done = push(path, "--push", url.replace("127.0.0.1", "localhost"), "--ca", cert, "--push-tries", 1)
            assert done.returncode == yrt.OUTPUT and "certificate" in done.stderr and not store.requests, done.stderr
            done = push(path, "--push", url, "--ca", cert)
            assert done.returncode == 0 and len(store.requests) == 1, done.stderr
            done = push(path, "--push", url, "--ca", path)
            assert done.returncode == yrt.OUTPUT and "no certificates (PEM) in that file" in done.stderr, done.stderr
            done = push(path, "--push", url, "--ca", path + ".pem")
            assert done.returncode == yrt.INPUT and "takes a file of certificates" in done.stderr, done.stderr
            done = push(path, "--push", url.replace("https", "http"), "--push-tries", 1)
            assert done.returncode == yrt.OUTPUT and "does it speak http, not https" in done.stderr, done.stderr
        with stores.Store() as store:
            done = push(path, "--push", f"otlp+https://127.0.0.1:{store.port}")
            assert done.returncode == yrt.OUTPUT and "give http in place of https" in done.stderr, done.stderr
        done = push(path, "--push", "otlp+http://nobody.invalid:4318", "--push-tries", 1)
        assert done.returncode == yrt.OUTPUT and "nobody.invalid" in done.stderr and os.path.exists(path), done.stderr


def test_usage():
    with tempfile.TemporaryDirectory() as dir:
        path = made(dir)
        for args in (
            [path],
            [path, "--push", "ftp://h"],
            [path, "--push", "http://h:1/x"],
            [path, "--push", "tempo+http://h:1"],
            *([path, "--push", f"otlp+http://{at}"] for at in ("", "h h", ":4318", "h:", "h:0", "h:65536", "h:4x")),
            *([path, "--push", f"otlp+http://{at}"] for at in ("[::1", "[::1]4", "[]:1x")),
            [path, "--push", "otlp+http://u:p@h"],
            ["--push", "otlp+http://h"],
            [path, "--push", "otlp+http://h", "--label", "x"],
        ):
            done = push(*args)
            assert done.returncode == yrt.USAGE and done.stderr, (args, done.returncode, done.stderr)


def test_urls():
    """Which store it is, by prefix or path; its own path where none is given; IPv6."""
    with tempfile.TemporaryDirectory() as dir, stores.Store() as store:
        at = f"127.0.0.1:{store.port}"
        for url, begin in (
            (f"http://{at}/ingest", "/ingest?name="),
            (f"parca+http://{at}", "/api/profiles/writeraw"),
            (f"otlp+http://{at}/?x=1#y", "/v1development/profiles?x=1"),
            (f"otlp+http://{at}/own/path", "/own/path"),
            (f"coroot+http://{at}/own?x=1", "/own?x=1&service.name="),
        ):
            done = push(made(dir), "--push", url)
            assert done.returncode == 0 and store.requests[-1][0].startswith(begin), (url, done.stderr, store.requests)
        done = push(made(dir), "--push", "http://[::1]:4318", "--push-tries", 1)
        assert done.returncode == yrt.OUTPUT and "otlp at http://[::1]:4318/v1development/" in done.stderr, done.stderr


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
                60,
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
                    60,
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
                assert len(os.listdir(dir)) == 1 + (answer != 200 or named), os.listdir(dir)
            finally:
                subprocess.run(["umount", "-l", dir], check=True)  # yrt may still be in it, if a test fails
    result = yrt.run("flame", "-p", "1", "--push", "otlp+http://127.0.0.1:1", "-o", "x.html", output=False).expect(
        yrt.USAGE
    )
    assert "sends a recording" in result.stderr, result.stderr


yrt.main(globals())
