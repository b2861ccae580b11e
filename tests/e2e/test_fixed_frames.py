# SPDX-License-Identifier: Apache-2.0
"""
More code without unwind information and frame pointers than is followed, whose functions have frames of fixed size.
"""

import assembled
import yrt

# Functions of fixed frames without unwind information, as in native images of GraalVM: more than is followed.
FIXED_FRAMES = """
.text
.macro calls name callee
.p2align 4
.globl \\name
.type \\name,@function
\\name: sub $\\@*16+24, %rsp
cmp $0, %rsp
jbe 2f
cmp $1, %rdi
je 3f
1: call \\callee
add $\\@*16+24, %rsp
ret
2: ud2
3: call \\callee
nop
jmp 1b
.size \\name, .-\\name
.endm
.macro slow
.p2align 4, 0xcc
sub $40, %rsp
call leaf
add $40, %rsp
ret
.endm
calls outer middle
calls middle inner
calls inner leaf
.p2align 4, 0xcc
.globl leaf
.type leaf,@function
leaf: mov $20000, %ecx
1: dec %ecx
jnz 1b
ret
.size leaf, .-leaf
.rept 80000
slow
.fill 48, 1, 0x90
.endr
.section .note.GNU-stack,"",@progbits
"""
FIXED_CALLS = """
long outer(long slow);
__attribute__((noinline)) long work(long slow) { return outer(slow) + 1; }
int main(void) { for (volatile long sum = 0;;) sum += work(0) + work(1); }
"""


def test_fixed_frames():
    result, texts = assembled.sample(FIXED_FRAMES, FIXED_CALLS)
    found = sum(n for text, n in texts if ";main;work;outer;middle;inner;leaf;" in text)
    assert found > 0.9 * result.samples and not result.stats["truncated"], yrt.show(result.stacks)
    wrong = yrt.wrong_chains(result, ["leaf", "inner", "middle", "outer", "work", "main"],
                             names=lambda name: name.removesuffix("@plt"))
    assert not wrong, yrt.show(wrong)
    assert ";?" not in result.text, result.text  # nothing is a guess
    return [f"{found} of {result.samples} samples below all callers in 5 MB of code without unwind information"]


yrt.main(globals())
