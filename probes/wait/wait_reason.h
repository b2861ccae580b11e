/* SPDX-License-Identifier: Apache-2.0 */
/* Why a thread waits, in words: "futex", "read of a socket", "sleep", "run queue", "page fault". */
#ifndef YRT_WAIT_REASON_H
#define YRT_WAIT_REASON_H

#include <stdbool.h>
#include <types.h>

#include "unwind/profile/idle.h"
#include "unwind/profile/profile.h"

/* reason: wait_reason() of wait_record.h; text: REASON_LEN bytes. */
void wait_reason_text(u32 reason, char *text);
/* The reason of what waits without a thread: "goroutine: chan receive". */
u32 wait_reason_of_task(const char *kind, const char *state);
/* Whether the thread runs, could run, or waits. */
enum profile_kind wait_kind(u32 reason);
/* May it be a wait by design? */
enum idle_chance wait_idle(u32 reason);
/* As event_ops.futex. */
bool wait_is_for_futex(u32 reason);
/* Does a kernel function of this name only lead from a wait to the program that sees it? */
bool wait_leads_to_program(const char *symbol);

#endif
