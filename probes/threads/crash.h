/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a core says of the moment of death besides stacks: the instruction, what lies at the address that it failed on,
 * the text of a failed assertion. All of it is read from the core and the files that it maps, and is untrusted.
 */
#ifndef YRT_CRASH_H
#define YRT_CRASH_H

#include "thread.h"
#include "unwind/binary/core_file.h"
#include "unwind/error.h"

struct process;

#define CRASH_TEXT 512
#define CRASH_INSN 200

struct crash {
	char instruction[CRASH_INSN]; /* "mov eax, dword ptr [rdi + 16]"; empty: it is not known, or did not cause it */
	char about[CRASH_TEXT];       /* the address: "a null pointer, plus 16"; empty: nothing is known */
	char message[CRASH_TEXT];     /* what glibc kept of abort()'s reason (__abort_msg); empty: nothing; hostile */
};

/* killed: the thread. p: of the core. Never fails: what is not known is empty. */
void crash_describe(
        const struct core_file *core, const struct process *p, const struct thread_record *killed, struct crash *ret);

#endif
