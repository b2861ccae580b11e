# SPDX-License-Identifier: Apache-2.0
"""
A toolchain of gos.txt, from the Go module proxy by the go command that is here, below the build directory. Not a test
itself.

    go_version.py VERSION COMMAND...    runs a test with YRT_GO as that go; ends with 77 if the proxy can not be reached
"""

import json
import os
import re
import shutil
import subprocess
import sys

BUILD = os.environ["YRT_BUILD"]
SKIPPED = 77
REACHED = re.compile(r"404|410|not found|unknown revision|SECURITY ERROR|checksum mismatch", re.I)


def download(version, root):
    module = f"golang.org/toolchain@v0.0.1-go{version}.linux-amd64"
    env = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-modcacherw", "GOMODCACHE": f"{root}.modules"}
    done = subprocess.run(
        [os.environ.get("YRT_GO", "go"), "mod", "download", "-json", module], capture_output=True, text=True, env=env
    )
    answer = json.loads(done.stdout) if done.stdout.strip().startswith("{") else {"Error": done.stderr}
    if "Dir" not in answer:
        error = answer.get("Error", done.stderr)
        assert not REACHED.search(error), error
        print(f"skipped: Go {version}: the module proxy can not be reached: {error.strip()}", flush=True)
        sys.exit(SKIPPED)
    # modules hold no permission to execute
    for at, _, names in os.walk(answer["Dir"]):
        for name in names if os.path.relpath(at, answer["Dir"]).split(os.sep)[0] in ("bin", "pkg") else ():
            os.chmod(os.path.join(at, name), 0o755)
    os.rename(answer["Dir"], root)
    shutil.rmtree(f"{root}.modules", ignore_errors=True)


def toolchain(version):
    root = os.path.join(BUILD, "suites", f"go-{version}")
    if not os.path.exists(root):
        os.makedirs(os.path.dirname(root), exist_ok=True)
        download(version, root)
    return root


if __name__ == "__main__":
    root = toolchain(sys.argv[1])
    os.environ["YRT_GO"] = os.path.join(root, "bin", "go")
    os.environ["GOROOT"] = root
    os.environ["YRT_GO_VERSION"] = sys.argv[1]
    sys.exit(subprocess.run([sys.executable, *sys.argv[2:]]).returncode)
