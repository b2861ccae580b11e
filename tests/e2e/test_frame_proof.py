# SPDX-License-Identifier: Apache-2.0
"""
A large program without unwind tables but with frame pointers, as Chromium: the code proves its callers, and they are no
guesses. What a function without a frame, or one that keeps data in the frame pointer, leads to stays marked.
"""

import os
import subprocess
import tempfile

import yrt

SOURCE = """
#include <stdlib.h>
#define OWN __attribute__((noinline))
__asm__(".text\\n.globl filler\\nfiller: .fill 8 << 20, 1, 0xcc\\n");
volatile long sink;
typedef long (*function)(long);
OWN long leaf(long n) { for (long i = 0; i < 4000; i++) sink += i * n; return sink; }
OWN long early(long n) { if (n & 1) return leaf(n) + 1; if (n < 0) abort(); return leaf(n + 1) + leaf(n); }
OWN long room(long n) { volatile char *p = __builtin_alloca(16 + (n & 255)); p[n & 15] = 1; return early(n) + p[0]; }
OWN long cases(long n) {
    switch (n & 7) {
    case 0: return room(n) + 1;
    case 1: return early(n) * 3;
    case 2: sink++; return room(n + 2) ^ 5;
    case 3: return leaf(n) - 4;
    case 4: sink--; return room(n) / 3;
    case 5: return early(n) % 77;
    case 6: return room(n * 2) + 9;
    default: return leaf(n) | 1;
    }
}
OWN long tail(long n) { sink += n; return cases(n); }
function volatile pointer = tail;
OWN long lying(long n, function call);
__asm__(".p2align 4, 0xcc\\nlying: push %rbp\\nmov %rsp, %rbp\\npush %rbp\\npush %rbx\\nmov %rsi, %rbx\\n"
        "lea -8(%rbp), %rbp\\ncall *%rbx\\nlea 8(%rbp), %rbp\\npop %rbx\\npop %rbp\\npop %rbp\\nret\\n");
OWN long honest(long n) { return pointer(n) + 1; }
OWN long dishonest(long n) { return lying(n, leaf) + 1; }
int main(int argc, char **argv) {
    (void)argv;
    for (long n = 0;; n++) sink += argc > 1 ? dishonest(n) : honest(n);
}
"""
FLAGS = ["-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-omit-frame-pointer",
         "-mno-omit-leaf-frame-pointer"]


def sample(compiler, *args):
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "program")
        with open(program + ".c", "w") as out:
            out.write(SOURCE)
        subprocess.run([compiler, *FLAGS, "-o", program, program + ".c"], check=True)
        with subprocess.Popen([program, *args]) as process:
            try:
                return yrt.sample_busy("flame", [process.pid], seconds=0.5, rate=499)
            finally:
                yrt.stop(process)


def test_proven():
    result = sample("clang")
    assert result.samples > 20
    assert result.stats["guessed_samples"] < result.samples / 20, result.text


def test_leaf_without_frame():
    """gcc makes no frame in leaves: there the frame pointer is the caller's."""
    result = sample("gcc")
    assert result.samples > 20
    assert result.stats["guessed_samples"] > result.samples / 2, result.text


def test_lie_stays_marked():
    result = sample("clang", "lie")
    assert result.samples > 20
    assert result.stats["guessed_samples"] > result.samples * 9 / 10, result.text


yrt.main(globals())
