/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault that a thread was handling when it died: runtimes catch SIGSEGV, write a report and abort(). The kernel
 * keeps the signal and the registers of that moment on the stack, right above the address of the C library's
 * rt_sigreturn stub (arch/x86/kernel/signal_64.c: struct rt_sigframe; the same since 2.6).
 */
#ifndef YRT_CRASH_SIGNAL_H
#define YRT_CRASH_SIGNAL_H

#include <arch.h>
#include <stdbool.h>
#include <types.h>

struct dump_thread;

struct crash_signal {
	u32 number;
	s32 code; /* si_code */
	bool has_address;
	u64 address;
	u64 reg[ARCH_NREGS]; /* DWARF numbers */
	bool is_page_fault;  /* then the processor said: */
	bool wrote, ran;
};

/* The first of its faults, if there are several. A signal that another process sent is none. */
bool crash_signal_find(const struct dump_thread *t, struct crash_signal *ret);

#endif
