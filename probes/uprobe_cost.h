/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hit of a uprobe costs on this machine.
 *
 * The kernel emulates some instructions and executes the others in a single step: a second exception. On bare metal
 * each takes below a microsecond; a virtual machine that intercepts single steps needs 20.
 */
#ifndef YRT_UPROBE_COST_H
#define YRT_UPROBE_COST_H

#include <stdbool.h>
#include <types.h>

struct bpf_program;
struct uprobe_shifts;

#define UPROBE_CODE 16 /* bytes of the longest instruction, and one */

/* Does the kernel emulate the instruction that begins there (arch/x86/kernel/uprobes.c of Linux 6.18)? */
bool uprobe_is_emulated(const u8 code[UPROBE_CODE]);
/*
 * In ns; 0: unknown. warm: caches are as where one hit follows another, not as a rare hit finds them in a large
 * program. program finds no target there. The uprobe that measures it is taken away with those of s (NULL: at once,
 * which may take a tenth of a second).
 */
u64 uprobe_cost(const struct bpf_program *program, bool emulated, bool warm, struct uprobe_shifts *s);

#endif
