/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The longest calls of a run, with what they were called with and what they waited for (--over). Each is described as
 * it arrives, as descriptors and memory may mean something else later.
 */
#ifndef YRT_HIT_SLOW_H
#define YRT_HIT_SLOW_H

#include "hit.h"
#include "hit_call.h"
#include "hit_price.h"
#include "latency.h"
#include "unwind/error.h"
#include "unwind/profile/collect.h"

#define SLOW_CALLS_MAX 100
#define SLOW_STACKS    (2 * LATENCY_WAITS)
#define SLOW_AWAITS    8

struct slow_stack {
	u64 ns, hash; /* ns 0: unused */
	char *text;   /* stack_text(), owned; NULL: not known (yet) */
};

struct slow_call {
	u64 at_ns, ns; /* since sampling began; how long it took */
	u32 tgid, tid;
	char comm[COMM_LEN];
	bool raised;   /* an exception left it */
	char *text;    /* "open("/etc/passwd", 0)", hostile; owned */
	u64 ran_ns;    /* that it did not wait */
	bool ran_most; /* short waits may be missing: it ran at most so long */
	u32 nwaits;
	struct slow_call_wait {
		u64 ns;
		u32 reason;                   /* wait_reason() */
	} wait[LATENCY_WAITS];                /* longest first */
	struct slow_stack stack[SLOW_STACKS]; /* of its waits, and what it ran, longest first */
	struct slow_stack await[SLOW_AWAITS]; /* where it was suspended (hit_awaits.h), the same */
};

struct slow_calls { /* longest first; all zero at first */
	struct slow_call of[SLOW_CALLS_MAX];
	u32 n;
};

struct latency_summary {          /* sampler_stats.of_event */
	struct latency_of {       /* an -e */
		const char *what; /* as the user says it, as long as the sampler; as slow */
		struct latency_stats counts;
		struct latency_price price;
		double progress; /* of the target beside its probes, at least; 0: not known, 1: they took nothing */
		double probed;   /* sampler_stats.probed, of its own */
		const struct slow_calls *slow;
	} of[HIT_SPECS_MAX];
	u32 n;
	struct hit_unseen unseen;
	const struct hit_inlined_all *inlined; /* as of hit_summary */
};

/*
 * Takes it if it is among the longest. text: it with its arguments; or NULL. began_ns: when sampling did. *ret: it;
 * NULL: it is not.
 */
struct error *slow_calls_add(struct slow_calls *calls, struct hit_function *function, const char *text,
        const struct latency_record *record, u64 began_ns, struct slow_call **ret);
/* Among n that are sorted, longest first; the shortest has to be unused. */
void slow_stack_put(struct slow_stack *of, u32 n, struct slow_stack stack);
/* Hashes are forgotten: stacks become text as soon as they are named. */
void slow_calls_name(struct slow_calls *calls, struct collector *c);
/* A call has to last so long to be among them. */
u64 slow_calls_least(const struct slow_calls *calls);
void slow_calls_free(struct slow_calls *calls);

#endif
