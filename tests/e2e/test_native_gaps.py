# SPDX-License-Identifier: Apache-2.0
"""
A large library of which .eh_frame covers a fifth, as in libx265 and libdav1d: the rest is assembly by hand, with rows
that yrt makes from the code. Its callers are found whatever the size of the file. The same for code that a program
makes itself, as oneDNN's kernels: on a page of its own, and behind other code, aligned or not (GHDL's mcode); before
yrt looks, and later.
"""

import os
import subprocess
import tempfile

import assembled
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
# As musl's, which has no FDE, or one that covers the child, in a program whose own code has: Zig's compiler, and Rust's
# programs for musl.
CLONE = LIBRARY.replace(
    "filler told",
    """filler told
.globl spawn
.type spawn,@function
spawn:
{begin}
xor %eax, %eax
mov $56, %al
mov %rdi, %r11
mov %rdx, %rdi
mov %r11, %r9
and $-16, %rsi
sub $8, %rsi
mov %rcx, (%rsi)
syscall
test %eax, %eax
{branch}
pop %rdi
{popped}
call *%r9
mov %eax, %edi
xor %eax, %eax
mov $60, %al
syscall
hlt
2: ret
{end}
.size spawn, .-spawn
""",
).replace(".fill 4 << 20, 1, 0x90", "")
SPAWNS = """
int spawn(long (*function)(long), char *stack, int flags, long arg);
static char stack[1 << 16];
__attribute__((noinline)) long work(long n) { for (volatile int i = 0; i < 1000; i++) n += i; return n; }
long child(long n) { for (;;) n += work(n); }
int main(void) { spawn(child, stack + sizeof(stack) / 2, 0x50f00, 1); return (int)child(1); }
"""
MAKER = """
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <time.h>
extern const char kernel[], kernel_end[];
typedef long (*made)(long rounds, long (*callback)(long));
static char *code;
#define NEAR (0x1230 + ((kernel_end - kernel + 3) & ~3)) /* right behind, at no multiple of 16 bytes */
__attribute__((noinline)) long back(long n) { for (volatile int i = 0; i < 20; i++) n += i; return n; }
__attribute__((noinline)) long early(void) { return ((made)code)(1000, back) + 1; }
__attribute__((noinline)) long late(void) { return ((made)(code + 0x1230))(1000, back) + 1; }
__attribute__((noinline)) long near(void) { return ((made)(code + NEAR))(1000, back) + 1; }
int main(void)
{
    time_t end = time(0) + 2;
    code = mmap(0, 1 << 21, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, kernel, kernel_end - kernel);
    while (time(0) < end)
        early();
    memcpy(code + 0x1230, kernel, kernel_end - kernel);
    memcpy(code + NEAR, kernel, kernel_end - kernel);
    for (;;) {
        late();
        near();
    }
}
"""
KERNEL = """
.globl kernel, kernel_end
.data
kernel:
push %rbp
mov %rsp, %rbp
push %rbx
push %r12
push %r13
sub $72, %rsp
mov $0x400, %rbp
mov %rdi, %rbx
mov %rsi, %r12
1: mov %rbx, %rdi
call *%r12
mov $100, %eax
2: dec %eax
jnz 2b
dec %rbx
jnz 1b
add $72, %rsp
pop %r13
pop %r12
pop %rbx
pop %rbp
ret
kernel_end:
.section .note.GNU-stack,"",@progbits
"""

# As GHC makes them: StgRun() with its CFI (rts/StgCRun.c), and functions that go on by jumps, with a stack in rbp.
OWN_STACK = """
.macro function name
.globl \\name
.type \\name,@function
\\name:
.endm
.text
function enter
.cfi_startproc
sub $48, %rsp
mov %rsp, %rax
sub $16384, %rsp
mov %rbx, (%rax)
mov %rbp, 8(%rax)
mov %r12, 16(%rax)
mov %r13, 24(%rax)
mov %r14, 32(%rax)
mov %r15, 40(%rax)
.cfi_def_cfa rsp, 0
.cfi_offset rbx, 16384
.cfi_offset rbp, 16392
.cfi_offset r12, 16400
.cfi_offset r13, 16408
.cfi_offset r14, 16416
.cfi_offset r15, 16424
.cfi_offset rip, 16432
.cfi_escape 0x16, 7, 4, 0x77, 0xb8, 0x80, 1
mov %rdi, %rax
jmp *%rax
leave: mov %rbx, %rax
add $16384, %rsp
mov (%rsp), %rbx
mov 8(%rsp), %rbp
mov 16(%rsp), %r12
mov 24(%rsp), %r13
mov 32(%rsp), %r14
mov 40(%rsp), %r15
add $48, %rsp
ret
.cfi_endproc
.size enter, .-enter
function begin
lea words(%rip), %rbp
jmp spin
.size begin, .-begin
function spin
mov $5000, %ecx
1: dec %ecx
jnz 1b
jmp *(%rbp)
.size spin, .-spin
function calls
sub $8, %rsp
mov $1000, %edi
call worker@plt
add $8, %rsp
test %rax, %rax
jnz spin
jmp *-8(%r13)
.size calls, .-calls
function inner
mov $5000, %ecx
1: dec %ecx
jnz 1b
mov $1, %ebx
jmp leave
.size inner, .-inner
.fill 256, 1, 0xcc
.data
words: .quad calls
.section .note.GNU-stack,"",@progbits
"""
POPPED = """
.text
.globl popped
popped: .cfi_startproc
pop %rdx
.cfi_adjust_cfa_offset -8
mov $100000, %ecx
1: dec %ecx
jnz 1b
push %rdx
.cfi_adjust_cfa_offset 8
ret
.cfi_endproc
.section .note.GNU-stack,"",@progbits
"""
POPS = """
void popped(void);
__attribute__((noinline)) void work(void) { popped(); __asm__ volatile(""); }
int main(void) { for (;;) work(); }
"""
OTHER_STACK = """
.text
.globl start
start: .cfi_startproc
.cfi_signal_frame
push %rbx
.cfi_adjust_cfa_offset 8
.cfi_offset rbx, -16
lea -64(%rsp), %rax
and $-16, %rax
mov %rax, c_stack(%rip)
mov %rsp, -24(%rdi)
lea -32(%rdi), %rsp
.cfi_remember_state
.cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 16
call *%rsi
mov 8(%rsp), %rsp
.cfi_restore_state
pop %rbx
ret
.cfi_endproc
.globl c_call
c_call: .cfi_startproc
.cfi_signal_frame
mov c_stack(%rip), %rax
mov %rsp, 8(%rax)
mov %rax, %rsp
.cfi_remember_state
.cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 8
call *%rdi
mov 8(%rsp), %rsp
.cfi_restore_state
ret
.cfi_endproc
.globl direct_call
direct_call: .cfi_startproc
push %rbx
.cfi_adjust_cfa_offset 8
.cfi_offset rbx, -16
mov %rsp, %rbx
.cfi_def_cfa_register rbx
mov c_stack(%rip), %rsp
call *%rdi
mov %rbx, %rsp
.cfi_def_cfa_register rsp
pop %rbx
ret
.cfi_endproc
.globl run_fiber
run_fiber: .cfi_startproc
.cfi_signal_frame
push %rbx
.cfi_adjust_cfa_offset 8
.cfi_offset rbx, -16
lea parent(%rip), %rax
mov %rsp, 16(%rax)
mov %rax, -24(%rdi)
lea -32(%rdi), %rsp
.cfi_remember_state
.cfi_escape 0x0f, 8, 0x77, 8, 0x06, 0x23, 16, 0x06, 0x23, 16
call *%rsi
mov 8(%rsp), %rax
mov 16(%rax), %rsp
.cfi_restore_state
pop %rbx
ret
.cfi_endproc
.lcomm c_stack, 8
.lcomm parent, 32
.section .note.GNU-stack,"",@progbits
"""
CHANGES = """
void start(void *stack, void (*task)(void)), c_call(void (*)(void)), direct_call(void (*)(void));
void run_fiber(void *stack, void (*task)(void));
static char stacks[4][65536] __attribute__((aligned(16)));
#define SPINS(name) \\
    __attribute__((noinline)) void name(void) { for (volatile int i = 0; i < 5000; i++); }
SPINS(own) SPINS(linked) SPINS(direct) SPINS(below) SPINS(above)
__attribute__((noinline)) void task(void) {
    for (;;) {
        own(), c_call(linked), direct_call(direct);
        run_fiber(stacks[1], below), run_fiber(stacks[3], above);
    }
}
int main(void) { start(stacks[2], task); return 1; }
"""
FIBER = """
.text
.globl told
told: .cfi_startproc
.fill {told}, 1, 0x90
ret
.cfi_endproc
.globl begin
begin:
mov %rsi, %rbx
lea -16(%rdi), %rsp
lea 2f(%rip), %rbp
lea 1f(%rip), %rcx
jmp *%rcx
{trampoline}
2: {zero}
call _exit@PLT
hlt
.section .note.GNU-stack,"",@progbits
"""
FIBERS = """
void begin(void *top, void (*task)(void));
__attribute__((noinline)) void spins(void) { for (volatile int i = 0; i < 5000; i++); }
__attribute__((noinline)) void task(void) { for (;;) spins(); }
static char stack[65536] __attribute__((aligned(16)));
int main(void)
{
    for (unsigned i = 0; i < sizeof(stack); i++)
        stack[i] = 0x11;
    begin(stack + sizeof(stack) - 64, task);
    return 1;
}
"""
ENTERS = """
long enter(const void *code), begin(void), inner(void);
__attribute__((noinline)) long worker(long n)
{
    for (volatile int i = 0; i < 1000; i++)
        n += i;
    return n + enter(inner);
}
__attribute__((noinline)) long work(void) { return enter(begin) + 1; }
int main(void) { return (int)work(); }
"""


@yrt.measured
def test_made_code():
    with tempfile.TemporaryDirectory() as directory:
        paths = {name: os.path.join(directory, name) for name in ("kernel.s", "maker.c", "maker")}
        for name, text in (("kernel.s", KERNEL), ("maker.c", MAKER)):
            with open(paths[name], "w") as out:
                out.write(text)
        subprocess.run(["gcc", "-O2", "-o", paths["maker"], paths["maker.c"], paths["kernel.s"]], check=True)
        with subprocess.Popen([paths["maker"]]) as process:
            try:
                result = yrt.run("c-flame", "-p", process.pid, "-d", 3, "-F", 999, "--annotate").expect()
            finally:
                yrt.stop(process)
    texts = [(";".join((*frames, "")), n) for frames, n in result.stacks]
    early, late, near = (
        sum(n for text, n in texts if f";main;{name};[anonymous];" in text) for name in ("early", "late", "near")
    )
    called = sum(n for text, n in texts if ";[anonymous];back;" in text)
    assert early > 9 and late > 9 and near > 9 and called > 9, yrt.show(result.stacks)
    assert early + late + near > 0.8 * result.samples and ";? early;" not in result.text, result.text
    guesses = [line for line in result.text.splitlines() if ";? " in line]  # until the function was seen
    for name, n in ("late", late), ("near", near):
        assert sum(int(line.split()[-1]) for line in guesses if f";? {name};" in line) < n / 2, result.text
    return [
        f"{early}, {late}, {near} of {result.samples} samples below the callers of code made before, meanwhile, and"
        " meanwhile at no multiple of 16 bytes"
    ]


@yrt.measured
def test_large_library():
    result, texts = assembled.sample(LIBRARY, PROGRAM, "-d", 1.5)
    whole = sum(n for text, n in texts if ";main;work;kernel;" in text)
    below = sum(n for text, n in texts if ";main;work;kernel;helper;" in text)
    assert whole > 0.99 * result.samples > 49 and below > 0.5 * result.samples, yrt.show(result.stacks)
    assert ";?" not in result.text, result.text  # nothing is a guess
    return [
        f"{whole} of {result.samples} samples below the caller of what has no rows, {below} in what it calls, none"
        " guessed"
    ]


@yrt.measured
def test_clone():
    """A thread's stack ends in clone(), whichever way the child takes, with and without an FDE."""
    child_next, child_jumps = "jnz 2f\nxor %ebp, %ebp", "jz 1f\nret\n1: xor %ebp, %ebp"
    told = (".cfi_startproc", ".cfi_adjust_cfa_offset -8", ".cfi_endproc")
    for branch, cfi in (child_next, [""] * 3), (child_jumps, [""] * 3), (child_next, told), (child_jumps, told):
        library = CLONE.replace("{branch}", branch)
        for word, directive in zip(("{begin}", "{popped}", "{end}"), cfi):
            library = library.replace(word, directive)
        result, texts = assembled.sample(library, SPAWNS, "-d", 0.3)
        begun = sum(n for text, n in texts if text.startswith("spawn;child;"))
        assert begun > 3 and not result.stats["truncated"], yrt.show(result.stacks)


@yrt.measured
def test_own_stack():
    """Haskell's code is below what entered it, also where C called it back; its own callers are said to be missing."""
    result, texts = assembled.sample(OWN_STACK, ENTERS, "-d", 0.7)
    outer = ";main;work;[native frames missing here: own_stack];"
    back = f"{outer}calls;worker;[native frames missing here: own_stack];inner;"
    spin, worker, inner = (
        sum(n for text, n in texts if part in text) for part in (f"{outer}spin;", f"{outer}calls;worker;", back)
    )
    assert min(spin, worker, inner) > 3 and not result.stats["truncated"], yrt.show(result.stacks)
    assert spin + worker > 0.9 * result.samples and ";?" not in result.text, yrt.show(result.stacks)
    return [f"{spin} of {result.samples} samples in code with a stack of its own, {worker} in C that it calls"]


@yrt.measured
def test_other_stack():
    """As in OCaml 5: a stack of its own lies below that of C, which it calls, through a word or a register. A fiber's
    caller is on a stack above or below its own, where a record says."""
    result, texts = assembled.sample(OTHER_STACK, CHANGES, "-d", 1.0)
    outer = ";main;start;task;"
    parts = [f"{outer}own;", f"{outer}c_call;linked;", f"{outer}direct_call;direct;"]
    parts += [f"{outer}run_fiber;below;", f"{outer}run_fiber;above;"]
    found = [sum(n for text, n in texts if part in text) for part in parts]
    assert min(found) > 0.05 * result.samples > 5 and sum(found) > 0.97 * result.samples, yrt.show(result.stacks)
    assert not result.stats["truncated"] and ";?" not in result.text, yrt.show(result.stacks)
    where = "code of a stack below C's, C that it calls in two ways, and two fibers"
    return [f"{found} of {result.samples} samples in {where}"]


@yrt.measured
def test_popped():
    """As in OCaml 4: before it calls C by a jump, a function pops its return address, and its CFI says so."""
    result, texts = assembled.sample(POPPED, POPS, "-d", 0.3)
    found = sum(n for text, n in texts if text.endswith(";main;work;popped;"))
    assert found > 0.9 * result.samples > 9 and not result.stats["truncated"], yrt.show(result.stacks)


@yrt.measured
def test_fiber():
    """As in Boost.Context: the first function of a fiber returns to code that ends the process, which nobody called."""
    jump, ret = "1: push %rbp\njmp *%rbx", "1: push %rbp\npush %rbx\nret"
    for told, trampoline, zero in (
        (16, jump, "xor %rdi, %rdi"),
        (4096, jump, "xor %rdi, %rdi"),
        (4096, ret, "xor %edi, %edi"),
    ):
        library = FIBER.replace("{told}", str(told)).replace("{trampoline}", trampoline).replace("{zero}", zero)
        result, texts = assembled.sample(library, FIBERS, "-d", 0.3)
        found = sum(n for text, n in texts if text.startswith(("begin;task;", "told;begin;task;")))
        assert found == result.samples > 9 and not result.stats["truncated"], yrt.show(result.stacks)


yrt.main(globals())
