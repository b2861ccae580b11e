# SPDX-License-Identifier: Apache-2.0
"""A store of profiles that keeps what it is sent, on the loopback. Not a test itself."""

import gzip
import http.server
import os
import subprocess
import threading
import time

import yrt

STACKS = "main (tid 7);start;work 30\nmain (tid 7);start;idle 12\n"
META = ("frequency=99", "start=1700000000", "duration=10")


class Store(http.server.ThreadingHTTPServer):
    """
    Each request gets the next (status, headers) of answers, or (status, headers, seconds until then, body); the last
    one is for all that follow. None: no response.
    """

    daemon_threads = True

    def __init__(self, *answers, context=None, address="127.0.0.1"):
        self.answers, self.requests, self.times = list(answers) or [(200, {})], [], []
        self.hold = threading.Event()
        super().__init__((address, 0), Handler)
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def handle_error(self, request, client_address):
        pass  # a client that does not like the certificate, or that waits no longer

    @property
    def port(self):
        return self.server_address[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hold.set()
        self.shutdown()
        self.thread.join()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        self.server.requests.append((self.path, dict(self.headers), body))
        self.server.times.append(time.monotonic())
        answer = self.server.answers[0]
        if len(self.server.answers) > 1:
            self.server.answers.pop(0)
        if answer is None:
            self.server.hold.wait(30)
            return
        if len(answer) > 2:
            self.server.hold.wait(answer[2])
        self.send_response(answer[0])
        for name, value in answer[1].items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer[3] if len(answer) > 3 else b"as told\x1b[31m\r\n")

    def log_message(self, *_):
        pass


def push(*args, env=None, stdin=None):
    done = subprocess.run([yrt.YRT, "push", *map(str, args)], capture_output=True, text=True, timeout=300, input=stdin,
                          env={**os.environ, **(env or {})})
    return done


def made(dir):
    return yrt.made(dir, "made.yrt", STACKS, *META)
