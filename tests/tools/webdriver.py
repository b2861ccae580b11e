# SPDX-License-Identifier: Apache-2.0
"""A small W3C WebDriver client for headless Chromium (packages chromium, chromium-driver)."""
import json
import os
import shutil
import subprocess
import tempfile
import urllib.request

ARGUMENTS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-default-apps --disable-dev-shm-usage --hide-scrollbars""".split()
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Escape": "\ue00c", "Enter": "\ue007", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015"}


class Browser:
    """with Browser() as b: ..."""

    def __init__(self, width=1280, height=900):
        self.size = (width, height)

    def __enter__(self):
        self.home = tempfile.mkdtemp(prefix="yrt-browser-")
        environment = dict(os.environ, HOME=self.home, TMPDIR=self.home)
        try:
            self.start(environment)
        except BaseException:
            self.__exit__()
            raise
        return self

    def find_port(self, environment):
        """chromedriver takes a port that was free a moment before, and ends if another program was faster."""
        for _ in range(5):
            self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                           stderr=subprocess.DEVNULL, env=environment, text=True)
            for line in self.driver.stdout:
                if "started successfully on port" in line:
                    return int(line.strip(" .\n").split()[-1])
            self.driver.wait()
        raise RuntimeError("chromedriver did not start")

    def start(self, environment):
        self.base = "http://127.0.0.1:%d" % self.find_port(environment)
        arguments = ARGUMENTS + ["--user-data-dir=" + self.home, "--window-size=%d,%d" % self.size]
        reply = self.send("POST", "/session", {"capabilities": {"alwaysMatch": {"timeouts": {"script": 300000},
            "goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base += "/session/" + reply["sessionId"]
        self.resize(*self.size)

    def __exit__(self, *_):
        try:
            if "/session/" in getattr(self, "base", ""):
                self.send("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            shutil.rmtree(self.home, ignore_errors=True)

    def send(self, method, path, body=None):
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=300) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, url):
        self.send("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self.send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments):
        """The value of the expression as soon as it is true; false after 250 seconds."""
        return self.send("POST", "/execute/async", {"args": list(arguments), "script": """
            const done = arguments[arguments.length - 1], started = performance.now();
            const test = () => { return %s; };
            (function look() {
                const value = test();
                if (value || performance.now() - started > 250000) done(value); else setTimeout(look, 20);
            })();""" % script})

    def element(self, css):
        return self.send("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        self.send("POST", "/element/%s/click" % self.element(css))

    def text(self, css):
        return self.run("return document.querySelector(arguments[0]).textContent", css)

    def actions(self, kind, actions, name=None, **parameters):
        source = dict(type=kind, id=name or kind, actions=actions, **parameters)
        self.send("POST", "/actions", {"actions": [source]})

    def mouse(self, x, y, click=False, kind="mouse"):
        actions = [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}]
        if click:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.actions("pointer", actions, kind, parameters={"pointerType": kind})

    def keys(self, *keys):
        """Presses named keys, or types text."""
        typed = [c for key in keys for c in ([KEYS[key]] if key in KEYS else key)]
        self.actions("key", [{"type": t, "value": c} for c in typed for t in ("keyDown", "keyUp")])

    def devtools(self, command, **parameters):
        return self.send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height, scale=1, mobile=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                      mobile=mobile)

    def media(self, **features):
        self.devtools("Emulation.setEmulatedMedia",
                      features=[{"name": k.replace("_", "-"), "value": v} for k, v in features.items()])

    def log(self):
        """Messages of the console since the last call."""
        return self.send("POST", "/se/log", {"type": "browser"})

    def screenshot(self):
        import base64
        return base64.b64decode(self.send("GET", "/screenshot"))
