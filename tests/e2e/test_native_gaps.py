# SPDX-License-Identifier: Apache-2.0
"""
A large library of which .eh_frame covers a fifth, as in libx265 and libdav1d: the rest is assembly by hand, with rows
that yrt makes from the code. Its callers are found whatever the size of the file.
"""

import os
import subprocess
import tempfile

import yrt

LIBRARY = """
.macro filler name
.globl \\name
.type \\name,@function
\\name: .cfi_startproc
.fill 1 << 20, 1, 0x90
ret
.cfi_endproc
.size \\name, .-\\name
.endm
.text
filler told
.globl kernel
.type kernel,@function
kernel:
push %rbx
push %rbp
push %r12
sub $72, %rsp
xor %ebp, %ebp
mov %rdi, %rbx
1: imul $3, %rbp, %rbp
mov %rbp, 8(%rsp)
call helper
dec %rbx
jnz 1b
mov %rbp, %rax
add $72, %rsp
pop %r12
pop %rbp
pop %rbx
ret
.size kernel, .-kernel
helper:
push %r12
mov $20, %r12d
2: dec %r12d
jnz 2b
pop %r12
ret
.fill 4 << 20, 1, 0x90
.section .note.GNU-stack,"",@progbits
"""
PROGRAM = """
long kernel(long rounds);
__attribute__((noinline)) long work(void) { return kernel(100000) + 1; }
int main(void) { for (volatile long sum = 0;;) sum += work(); }
"""


def test_large_library():
    with tempfile.TemporaryDirectory() as directory:
        paths = {name: os.path.join(directory, name) for name in ("library.s", "library.so", "program.c", "program")}
        for name, text in (("library.s", LIBRARY), ("program.c", PROGRAM)):
            with open(paths[name], "w") as out:
                out.write(text)
        subprocess.run(["gcc", "-shared", "-o", paths["library.so"], paths["library.s"]], check=True)
        subprocess.run(["gcc", "-O2", "-o", paths["program"], paths["program.c"], paths["library.so"]], check=True)
        with subprocess.Popen([paths["program"]]) as process:
            try:
                result = yrt.run("c-flame", "-p", process.pid, "-d", 3, "-F", 999, "--annotate").expect()
            finally:
                yrt.stop(process)
    texts = [(";".join((*frames, "")), n) for frames, n in result.stacks]
    whole = sum(n for text, n in texts if ";main;work;kernel;" in text)
    below = sum(n for text, n in texts if ";main;work;kernel;helper;" in text)
    assert whole > 0.99 * result.samples > 99 and below > 0.5 * result.samples, yrt.show(result.stacks)
    assert ";?" not in result.text, result.text  # nothing is a guess
    return [
        f"{whole} of {result.samples} samples below the caller of what has no rows, {below} in what it calls, none"
        " guessed"
    ]


yrt.main(globals())
