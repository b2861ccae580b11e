/* SPDX-License-Identifier: Apache-2.0 */
/* Where calls of a language's function end, as debug registers watch it. */
#ifndef YRT_HIT_CALLEE_ENDS_H
#define YRT_HIT_CALLEE_ENDS_H

#include "hit_callee.h"
#include "unwind/error.h"
#include "unwind/runtime_calls.h"

struct callee_end { /* of a call, or of some of them */
	u64 at;
	u8 bytes;
	enum callee_exit kind;
};

/* What the i-th register behind that of the entry watches; exceptions are the last. */
struct callee_end callee_end_of(const struct runtime_callee *callee, u32 i);
/* Registers that the ends of its calls take. raises: also the one that tells when an exception ends a call. */
u32 callee_ends_of(const struct runtime_callee *callee, bool raises);
/* Does it always return what another function returns, which takes its frame over? Its calls are seen up to there. */
bool callee_ends_in_tail_calls(const struct runtime_callee *callee);
/* Can its calls be measured? */
/* Does it return at more places than registers can watch? The last of them are watched, if it is measured at all. */
bool callee_ends_unseen(const struct runtime_callee *callee);
struct error *callee_check_ends(const struct runtime_callee *callee);

#endif
