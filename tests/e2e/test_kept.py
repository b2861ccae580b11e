# SPDX-License-Identifier: Apache-2.0
"""
Assembly that keeps its CFA in rax across calls of its own functions, as AES-GCM of OpenSSL and GnuTLS: the callee's
code proves that rax is still what it was, so that the caller is no guess. With CFI and without.
"""

import assembled
import yrt

LIBRARY = """
.text
.globl told
told: .cfi_startproc
.fill 4096, 1, 0x90
ret
.cfi_endproc
.type mix,@function
mix: movdqu 32(%rsp), %xmm0
1: aesenc %xmm0, %xmm0
dec %r10d
jnz 1b
ret
.type rounds,@function
rounds: mov $2000, %r10d
call mix
mov $2000, %r10d
1: pxor %xmm1, %xmm1
dec %r10d
jnz 1b
ret
.globl seal
.type seal,@function
seal: {begin}
mov %rsp, %rax
{register}
push %rbx
{rbx}
push %r12
{r12}
sub $200, %rsp
and $-128, %rsp
xor %ebx, %ebx
call rounds
mov -16(%rax), %r12
mov -8(%rax), %rbx
lea (%rax), %rsp
{stack}
ret
{end}
.section .note.GNU-stack,"",@progbits
"""
WORDS = {
    "begin": ".cfi_startproc",
    "register": ".cfi_def_cfa_register %rax",
    "rbx": ".cfi_offset %rbx, -16",
    "r12": ".cfi_offset %r12, -24",
    "stack": ".cfi_def_cfa_register %rsp",
    "end": ".cfi_endproc",
}
PROGRAM = """
void seal(void);
__attribute__((noinline)) void work(void) { seal(); __asm__ volatile(""); }
int main(void) { for (;;) work(); }
"""


def test_kept():
    for told in True, False:
        library = LIBRARY
        for word, directive in WORDS.items():
            library = library.replace("{" + word + "}", directive if told else "")
        result, texts = assembled.sample(library, PROGRAM)
        below = sum(n for text, n in texts if ";main;work;seal;rounds;" in text)
        deep = sum(n for text, n in texts if ";main;work;seal;rounds;mix;" in text)
        assert min(below - deep, deep) > 9 and below > 0.98 * result.samples, yrt.show(result.stacks)
        assert ";?" not in result.text and not result.stats["truncated"], result.text
        how = "with" if told else "without"
        yield f"{how} CFI: {below - deep} and {deep} of {result.samples} samples in two callees"


yrt.main(globals())
