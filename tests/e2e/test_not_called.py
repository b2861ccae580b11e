# SPDX-License-Identifier: Apache-2.0
"""
Functions that no call instruction called: handlers of signals, in code without unwind information. Stacks in pieces,
and callers on a stack below.
"""

import os
import subprocess
import tempfile

import assembled
import yrt

SPIN = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
volatile unsigned long sum;
__attribute__((noinline)) void spin(int n) { for (int i = 0; i < n * 1000; i++) sum += i; }
"""

# Statically linked, these functions are a gap between glibc's, which have FDEs.
HANDLES = SPIN + """
__attribute__((noinline)) void handler(int number) { spin(number / 5); }
int main(void) { signal(SIGUSR1, handler); for (;;) raise(SIGUSR1); }
"""

# As in dietlibc and musl: what a handler returns to is right behind one function and right before the next.
RESTORER = """
.text
.globl send
send: push %rbx
mov $39, %eax
syscall
mov %eax, %edi
mov $10, %esi
mov $62, %eax
syscall
pop %rbx
ret
restorer: mov $15, %rax
syscall
.globl install
install: sub $56, %rsp
mov %rdi, (%rsp)
movq $0x04000000, 8(%rsp)
lea restorer(%rip), %rax
mov %rax, 16(%rsp)
movq $0, 24(%rsp)
mov $10, %edi
mov %rsp, %rsi
xor %edx, %edx
mov $8, %r10d
mov $13, %eax
syscall
add $56, %rsp
ret
.section .note.GNU-stack,"",@progbits
"""
SENDS = SPIN + """
void install(void (*)(int)), send(void);
void handler(int number) { spin(number / 5); }
int main(void) { install(handler); for (;;) { send(); sum++; } }
"""

# The second stack lies above the first. The caller's stack pointer is in rbp meanwhile.
SWITCH = """
.text
.globl on_stack
on_stack: .cfi_startproc
push %rbp
.cfi_adjust_cfa_offset 8
.cfi_offset rbp, -16
mov %rsp, %rbp
.cfi_def_cfa_register rbp
mov %rdi, %rsp
call *%rsi
mov %rbp, %rsp
pop %rbp
.cfi_def_cfa rsp, 8
ret
.cfi_endproc
.section .note.GNU-stack,"",@progbits
"""
SWITCHES = SPIN + """
void on_stack(void *stack, void (*task)(void));
static char stacks[2][65536] __attribute__((aligned(16)));
void upper(void) { spin(99); sum++; }
void lower(void) { on_stack(stacks + 2, upper); sum++; }
int main(void) { for (;;) { on_stack(stacks + 1, lower); sum++; } }
"""

# A context's stack is below all that the system maps, where the next part of it is.
PIECES = SPIN + """
static ucontext_t outside, inside;
static char stack[65536];
__attribute__((noinline)) void large(int n) { volatile char room[200000]; room[n] = 1; spin(n); sum += room[n + 1]; }
void coroutine(void) { for (;;) { large(99); sum++; } }
int main(void)
{
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = sizeof(stack);
	makecontext(&inside, coroutine, 0);
	swapcontext(&outside, &inside);
}
"""


def sample(program, *flags):
    """The samples of a program that gcc makes of this text."""
    with tempfile.TemporaryDirectory() as directory:
        source, path = os.path.join(directory, "program.c"), os.path.join(directory, "program")
        with open(source, "w") as out:
            out.write(program)
        subprocess.run(["gcc", "-O2", "-w", "-o", path, source, *flags], check=True)
        with subprocess.Popen([path]) as process:
            try:
                result = yrt.run("flame", "-p", process.pid, "-F", 1999, "-d", 1, "--annotate").expect()
            finally:
                yrt.stop(process)
    return result, [(";".join((*frames, "")), n) for frames, n in result.stacks]


def cut(result):
    return sum(result.stats["truncated"].values())


def count(texts, part):
    return sum(n for text, n in texts if part in text)


@yrt.measured
def test_gaps():
    result, texts = sample(HANDLES, "-static", "-fno-asynchronous-unwind-tables", "-Wl,-z,noexecstack")
    handled = sum(n for text, n in texts if ";main;raise;" in text and ";spin;" in text)
    assert handled > 0.3 * result.samples > 20, yrt.show(result.stacks)
    assert cut(result) + count(texts, ";?") <= 0.01 * result.samples, yrt.show(result.stacks)
    return [f"{handled} of {result.samples} samples in a handler"]


@yrt.measured
def test_restorer():
    result, texts = assembled.sample(RESTORER, SENDS, "-d", 1)
    handled = sum(n for text, n in texts if ";main;send;" in text and ";spin;" in text)
    returning = sum(n for text, n in texts if ";main;send;" in text and "rt_sigreturn" in text)
    assert min(10 * handled, 50 * returning) > result.samples > 500, yrt.show(result.stacks)
    assert cut(result) + count(texts, "install") <= 0.002 * result.samples, yrt.show(result.stacks)
    return [f"{handled} of {result.samples} samples in a handler, {returning} where it returns"]


@yrt.measured
def test_above():
    result, texts = assembled.sample(SWITCH, SWITCHES, "-d", 0.5)
    found = count(texts, ";main;on_stack;lower;on_stack;upper;")
    assert found > 0.95 * result.samples > 20 and not result.stats["truncated"], yrt.show(result.stacks)
    return [f"{found} of {result.samples} samples on a stack above that of their callers"]


@yrt.measured
def test_pieces():
    result, texts = sample(PIECES, "-fsplit-stack")
    found = count(texts, "coroutine;__morestack;large;spin;")
    assert found > 0.9 * result.samples > 20 and not result.stats["truncated"], yrt.show(result.stacks)
    return [f"{found} of {result.samples} samples on the second part of a stack"]


yrt.main(globals())
