# SPDX-License-Identifier: Apache-2.0
"""
The whole program under AddressSanitizer and UndefinedBehaviorSanitizer: the binary of the asan preset, on programs that
differ in what is read of them. tests/run.sh builds it first; where only the release tree was built, the release binary
is run instead and this says so.
"""

import os
import subprocess
import tempfile

import java
import lua
import yrt

SANITIZED = os.path.join(os.path.dirname(yrt.BUILD), "asan", "yrt")
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1:halt_on_error=1:exitcode=99:strict_string_checks=1",
           "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99:print_stacktrace=1"}

# Virtual functions that call each other; more .rodata than malloc() keeps, so that memory of it is unmapped once it is
# freed.
SERVER = """
#include <cstdint>
#include <ctime>
extern const char much[8 << 20] = {1};
namespace shop {
struct Request { virtual ~Request() {} virtual uint64_t serve(uint64_t n) = 0; };
struct Page : Request { uint64_t serve(uint64_t n) override; };
struct Image : Request { Page page; uint64_t serve(uint64_t n) override; };
__attribute__((noinline)) uint64_t Page::serve(uint64_t n) { for (volatile int i = 0; i < 1000000; i = i + 1) n = n * 33 + i; return n; }
__attribute__((noinline)) uint64_t Image::serve(uint64_t n) { Request *volatile inner = &page; return inner->serve(n) + 1; }
}
int main() {
    shop::Request *volatile request = new shop::Image;
    uint64_t n = much[0];
    for (time_t end = time(nullptr) + 1000; time(nullptr) < end;) n = request->serve(n);
    return n == 42;
}
"""


def binary():
    if os.path.exists(SANITIZED):
        return SANITIZED
    print(
        f"there is no {SANITIZED}: the release binary is run instead (cmake --preset asan && cmake --build --preset"
        " asan)"
    )
    return yrt.YRT


def run(*args, **kw):
    """Anything that a sanitizer says is a failure, whatever the exit code."""
    return checked(yrt.run(*args, binary=binary(), env=OPTIONS, timeout=300, **kw))


def checked(result):
    for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
        assert word not in result.stderr, result.stderr
    return result


def test_stripped_server():
    """Classes of a stripped program: their names outlive the file that they were read from."""
    with tempfile.TemporaryDirectory() as dir:
        source, program = os.path.join(dir, "server.cc"), os.path.join(dir, "server")
        with open(source, "w") as f:
            f.write(SERVER)
        subprocess.run(["g++", "-O2", "-s", "-o", program, source], check=True)
        with subprocess.Popen([program]) as process:
            try:
                for view in ("flame", "c-flame"):
                    result = checked(yrt.sample_busy(
                        view, [process.pid], seconds=0.5, rate=499, binary=binary(), env=OPTIONS))
                    chain = ["shop::Image::[virtual 2]", "shop::Page::[virtual 2]"]
                    # the kernel's interrupts may come behind it
                    own = [([f for f in frames if "shop::" in f], n) for frames, n in result.stacks]
                    assert all(frames == chain[:len(frames)] for frames, _ in own), yrt.show(result.stacks)
                    assert sum(n for frames, n in own if frames == chain) > 10, yrt.show(result.stacks)
            finally:
                yrt.stop(process)


def views(pid, *names):
    """Each way of looking at one process; a recording is drawn in several formats and compared as well."""
    with tempfile.TemporaryDirectory() as dir:
        for name in names:
            run(name, "-p", pid, "-d", 1, "-o", os.path.join(dir, name + ".html"), output=False).expect()
        kept = os.path.join(dir, "kept.yrt")
        run("record", "-p", pid, "-d", 1, "-F", 499, "-o", kept, output=False).expect()
        for end in ("pb.gz", "speedscope.json", "txt"):
            run("render", kept, "-o", os.path.join(dir, "out." + end), output=False, stats=False).expect()
        run("diff", kept, kept, "-o", os.path.join(dir, "diff.html"), output=False, stats=False).expect()
    run("inspect", "-p", pid, output=False, stats=False).expect()


def test_native():
    with yrt.Fixture("deep30", wait=False) as fixture:
        views(fixture.pid, "flame", "c-flame")


def test_lua():
    with lua.fixture("split.lua", 1000, "jit", wait=False) as fixture:
        views(fixture.pid, "flame", "lua-flame")


def test_python():
    with subprocess.Popen([os.environ.get("YRT_PYTHON", "/usr/bin/python3"), "-c",
                           "import json, re\n"
                           "def work(n): return re.sub('1+', '', json.dumps(json.loads(json.dumps(list(range(n))))))\n"
                           "while True: work(1000)"]) as process:
        try:
            views(process.pid, "flame", "python-flame")
        finally:
            yrt.stop(process)


def test_java():
    with java.Java("alloc_split", 1000, timeout=1000) as jvm:
        views(jvm.pid, "flame", "java-flame", "java-alloc")


yrt.main(globals())
