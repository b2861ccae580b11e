# SPDX-License-Identifier: Apache-2.0
"""
Where the walk is lost among native frames, the language goes on: a function that keeps its caller's stack pointer in a
vector register, where no row can describe it, called by Python directly and from a callback that C calls.
"""

import os
import subprocess
import tempfile

import java
import lua
import yrt

WITH_GAP = 0.98  # at its first instruction lost() still has its caller: nothing is missing there
PYTHON = os.environ.get("YRT_PYTHON", "/usr/bin/python3")
LIBRARY = """
void lost(long rounds);
__asm__(".text\\n.globl lost\\n.type lost,@function\\nlost:\\n"
        "movq %rsp, %xmm0\\nsub $0x8000, %rsp\\nand $-4096, %rsp\\n"
        "xor %eax, %eax\\n1: movq $0, (%rsp,%rax,8)\\ninc %eax\\ncmp $1024, %eax\\njb 1b\\n"
        "2: dec %rdi\\njnz 2b\\n"
        "movq %xmm0, %rsp\\nret\\n.size lost, .-lost\\n");
__attribute__((noinline)) long through(long (*callback)(long), long rounds) { return callback(rounds) + 1; }
"""
SCRIPT = """
import ctypes, sys, time
library = ctypes.CDLL(sys.argv[1])
def direct(): library.lost(ctypes.c_long(3000000))
def inner(rounds):
    library.lost(ctypes.c_long(rounds))
    return 0
callback = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(inner)
def indirect(): library.through(callback, ctypes.c_long(3000000))
def main():
    end = time.time() + 60
    while time.time() < end:
        direct()
        indirect()
main()
"""


LUA = """
local ffi = require("ffi")
ffi.cdef("void lost(long rounds); long through(long (*callback)(long), long rounds);")
local library = ffi.load(arg[1])
if arg[2] == "off" then jit.off() end
local function direct() for _ = 1, 100 do library.lost(300000) end end
local function inner(rounds)
    library.lost(rounds)
    return 0
end
local callback = ffi.cast("long (*)(long)", inner)
local function indirect() for _ = 1, 10 do library.through(callback, 3000000) end end
jit.off(indirect)
local function main()
    while true do
        direct()
        indirect()
    end
end
main()
"""


JAVA_LIBRARY = """
#include <jni.h>
extern void lost(long rounds);
JNIEXPORT void JNICALL Java_Lost_spin(JNIEnv *env, jclass lost_class, jlong rounds) { lost(rounds); }
JNIEXPORT void JNICALL Java_Lost_through(JNIEnv *env, jclass lost_class, jlong rounds)
{
	(*env)->CallStaticVoidMethod(env, lost_class, (*env)->GetStaticMethodID(env, lost_class, "inner", "(J)V"), rounds);
}
"""
JAVA = """
public class Lost {
    static native void spin(long rounds);
    static native void through(long rounds);
    static void direct() { spin(3000000); }
    static void inner(long rounds) { spin(rounds); }
    static void indirect() { through(3000000); }
    public static void main(String[] args) {
        System.load(args[0]);
        for (int i = 0; ; i++) {
            direct();
            indirect();
            if (i == 10)
                System.out.println("ready");
        }
    }
}
"""


def version():
    return tuple(map(int, subprocess.check_output([PYTHON, "-c", "import sys; print(*sys.version_info[:2])"]).split()))


def has_order(frames, *wanted):
    """Are there frames that begin so, in this order?"""
    left = iter(frames)
    return all(any(f.startswith(w) for f in left) for w in wanted)


@yrt.measured
def test_python_goes_on():
    with tempfile.TemporaryDirectory() as dir:
        library, source = os.path.join(dir, "lost.so"), os.path.join(dir, "lost.c")
        with open(source, "w") as f:
            f.write(LIBRARY)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        with subprocess.Popen([PYTHON, "-c", SCRIPT, library]) as process:
            try:
                views = {
                    view: yrt.run(view, "-p", process.pid, "-d", 3, "-F", 499).expect()
                    for view in ("python-flame", "flame")
                }
            finally:
                yrt.stop(process)
    for view, result in views.items():
        lost = [(frames, n) for frames, n in result.stacks if frames[-1] == "lost"]
        assert sum(n for _, n in lost) > 0.8 * result.samples > 20, f"{view}: {yrt.show(result.stacks)}"
        gap = "[native frames missing here: no_cfi]"
        # Where the place of the loop's native frames is unknown (up to 3.10, or bytecodes are functions) Python's own
        # are there, with that mark for what lies outside, and from 3.13 on for what lies between.
        rest = "[native frames missing here: resumed]"
        natives = any("through" in frames for frames, _ in lost)
        assert natives or version() < (3, 11) or version() >= (3, 14), yrt.show(lost)
        root = ("_start",) if natives else (rest,) if view == "flame" else ()
        between = ("through",) if natives else (rest,) if version() >= (3, 13) else ()
        good = [
            n
            for frames, n in lost
            if has_order(frames, *root, "<module>", "main", "direct", gap, "lost")
            and not set(between) & set(frames[1:])
        ]
        nested = [
            n
            for frames, n in lost
            if has_order(frames, *root, "<module>", "main", "indirect", *between, "inner", gap, "lost")
        ]
        total = sum(n for _, n in lost)
        assert sum(good) + sum(nested) >= WITH_GAP * total, f"{view}: {yrt.show(lost)}"
        assert sum(good) > 0.2 * total and sum(nested) > 0.2 * total, yrt.show(lost)
        assert result.stats["truncated"].get("resumed", 0) >= WITH_GAP * total, result.stats  # it is not complete
        yield f"{view}: {total} samples in a function without rows, Python's frames in all of them"


def check_lua(mode):
    with tempfile.TemporaryDirectory() as dir:
        library, source, script = (os.path.join(dir, name) for name in ("lost.so", "lost.c", "lost.lua"))
        for path, text in ((source, LIBRARY), (script, LUA)):
            with open(path, "w") as f:
                f.write(text)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        with subprocess.Popen([*lua.host(), script, library, mode]) as process:
            try:
                result = yrt.run("lua-flame", "-p", process.pid, "-d", 4, "-F", 499).expect()
            finally:
                yrt.stop(process)
    names = [([f.split(" (")[0] for f in frames], n) for frames, n in result.stacks]
    lost = [(frames, n) for frames, n in names if frames[-1] == "lost"]
    total = sum(n for _, n in lost)
    assert total > 0.8 * result.samples > 20, yrt.show(result.stacks)
    direct = sum(
        n
        for frames, n in lost
        if has_order(frames, "_start", "main chunk", "main", "direct", "lost") and "inner" not in frames
    )
    nested = sum(
        n
        for frames, n in lost
        if has_order(frames, "_start", "main chunk", "main", "indirect", "through", "inner", "lost")
    )
    # nothing is known of a VM before its first whole stack
    assert direct + nested >= 0.98 * total, yrt.show(result.stacks)
    assert direct > 0.2 * total and nested > 0.2 * total, yrt.show(result.stacks)
    # vm_ffi_call() has a frame pointer, traces do not
    gaps = sum(n for frames, n in lost if frames[-2] == "[native frames missing here: no_cfi]")
    assert mode == "off" or gaps > 0.4 * total, yrt.show(lost)
    yield f"{mode}: {total} samples in a function without rows, {direct} right below Lua, {nested} in a callback"


@yrt.measured
def test_lua_goes_on():
    yield from check_lua("on")


@yrt.measured
def test_lua_interpreter_goes_on():
    yield from check_lua("off")


def check_java(*options):
    """By the anchor that a thread leaves where it leaves Java."""
    java_words = java.words()
    home = os.path.dirname(os.path.dirname(os.path.realpath(java_words[0])))
    with tempfile.TemporaryDirectory() as dir:
        for name, text in (("Lost.java", JAVA), ("lost.c", LIBRARY + JAVA_LIBRARY)):
            with open(os.path.join(dir, name), "w") as f:
                f.write(text)
        library, include = os.path.join(dir, "liblost.so"), os.path.join(home, "include")
        subprocess.run(
            [
                "gcc",
                "-O2",
                "-shared",
                "-fPIC",
                "-fno-optimize-sibling-calls",
                "-I",
                include,
                "-I",
                os.path.join(include, "linux"),
                "-o",
                library,
                os.path.join(dir, "lost.c"),
            ],
            check=True,
        )
        subprocess.run([os.path.join(home, "bin", "javac"), "-d", dir, os.path.join(dir, "Lost.java")], check=True)
        with subprocess.Popen(
            [*java_words, *options, "-cp", dir, "Lost", library], stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout.readline() == "ready\n"
                result = yrt.run("flame", "-p", process.pid, "-d", 4, "-F", 499).expect()
            finally:
                yrt.stop(process)
    lost = [(frames, n) for frames, n in result.stacks if "lost" in frames]
    total = sum(n for _, n in lost)
    assert total > 20, yrt.show(result.stacks)
    gap = "[native frames missing here: no_cfi]"
    direct = [
        n
        for frames, n in lost
        if has_order(frames, "Lost.main", "Lost.direct", "Lost.spin", gap, "lost") and "Lost.inner" not in frames
    ]
    nested = [
        n
        for frames, n in lost
        if has_order(
            frames,
            "Lost.main",
            "Lost.indirect",
            "Lost.through",
            "Java_Lost_through",
            "Lost.inner",
            "Lost.spin",
            gap,
            "lost",
        )
    ]
    assert sum(direct) + sum(nested) >= WITH_GAP * total, yrt.show(lost)
    assert sum(direct) > 0.2 * total and sum(nested) > 0.2 * total, yrt.show(lost)
    assert result.stats["truncated"].get("resumed", 0) >= WITH_GAP * total, result.stats  # it is not complete
    yield f"{total} samples in a function without rows, Java's frames in all of them"


@yrt.measured
def test_java_goes_on():
    yield from check_java()


@yrt.measured
def test_java_interpreter_goes_on():
    yield from check_java("-Xint")


yrt.main(globals())
