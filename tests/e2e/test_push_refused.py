# SPDX-License-Identifier: Apache-2.0
"""Stores that are down, busy, slow, elsewhere, or say no: what yrt says and does then."""

import base64
import os
import signal
import ssl
import subprocess
import tempfile
import time

import stores
import yrt
from stores import made, push


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
        with stores.Store((404, {})) as store:  # Coroot's answer to a wrong key
            done = push(path, "--push", f"coroot+http://127.0.0.1:{store.port}")
            assert done.returncode == yrt.OUTPUT and "API key" in done.stderr, done.stderr


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
    """
    A token from a file ends in a line break, which is taken off. One with a line break inside is refused. With a user it
    is a password.
    """
    with tempfile.TemporaryDirectory() as dir, stores.Store() as store:
        url = f"otlp+http://127.0.0.1:{store.port}"
        done = push(made(dir), "--push", url, "--tenant", "t1\n", env={"YRT_PUSH_TOKEN": "secret\r\n"})
        assert done.returncode == 0, done.stderr
        (_, headers, body), = store.requests
        assert headers["Authorization"] == "Bearer secret" and headers["X-Scope-OrgID"] == "t1" and body, headers
        done = push(made(dir), "--push", url, env={"YRT_PUSH_TOKEN": "glc_x:y\n", "YRT_PUSH_USER": "4711\n"})
        _, headers, body = store.requests.pop()
        assert headers["Authorization"] == "Basic " + base64.b64encode(b"4711:glc_x:y").decode() and body, headers
        done = push(made(dir), "--push", url, env={"YRT_PUSH_TOKEN": "secret\nX-Other: 1"})
        assert done.returncode == yrt.USAGE and "YRT_PUSH_TOKEN" in done.stderr, done.stderr
        assert "secret" not in done.stderr and len(store.requests) == 1, done.stderr


@yrt.measured
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
            _, said = at.communicate(timeout=300)
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


yrt.main(globals())
