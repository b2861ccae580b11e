/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a core says of the moment of death besides stacks: the instruction, what lies at the address that it failed on,
 * the text of a failed assertion. All of it is read from the core and the files that it maps, and is untrusted.
 */
#ifndef YRT_CRASH_H
#define YRT_CRASH_H

#include <arch.h>
#include <types.h>

#include "crash_access.h"

struct core_file;
struct dump_list;
struct dump_thread;

#define CRASH_TEXT 512

struct crash {
	u32 first; /* a fault that the thread was handling when it got the signal; 0: none. All else is of that then */
	bool has_address;
	u64 address;
	enum crash_access access;
	u64 reg[ARCH_NREGS];
	char instruction[CRASH_INSN]; /* "mov eax, dword ptr [rdi + 16]"; empty: it is not known, or did not cause it */
	char about[CRASH_TEXT];       /* the address: "a null pointer, plus 16"; empty: nothing is known */
	char refused[CRASH_REFUSED]; /* what the thread did, if no address says it: "divided by zero"; empty: unknown */
	char message[CRASH_TEXT];    /* why the program ended itself: glibc's __abort_msg, an exception of C++, what a
	                                 runtime says; empty: nothing; hostile */
	u32 speaker;                 /* the thread whose message it is, if another one got the signal; else 0 */
};

/* killed: the thread, one of the list. Never fails: what is not known is empty. */
void crash_describe(const struct core_file *core, const struct dump_list *list, const struct dump_thread *killed,
        struct crash *ret);

#endif
