/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which waits get a stack of their own (wait.h), so that walks and what is skipped take at most 1 % of a CPU. */
#ifndef YRT_WAIT_CHANCE_BPF_H
#define YRT_WAIT_CHANCE_BPF_H

#include "wait/wait_state.bpf.h"

#define WAIT_SPENT_NS   200000ull   /* of a CPU, on walks and on waits that are skipped, in */
#define WAIT_WINDOW_NS  20000000ull /* at most */
#define WAIT_WALKED_NS  40000ull    /* of that on walks, at least */
#define WAIT_EACH_MIN   1000ull
#define WAIT_EACH_MAX   1000000000ull
#define WAIT_STANDS_MAX 1024u
#define WAIT_FIRST_NS   1000000ull
#define WAIT_OFTEN_LONG 16u /* of 256: to walk now costs less than a sixteenth of walking from outside later */

u32 wait_unlimited = 0; /* each wait has its stack, whatever that costs */

/* Threads begin with waits for a CPU or for each other: the first ones do not count if others are much shorter. */
static inline void wait_learn_brief(struct wait_state *w, u64 ns)
{
	if (w->briefs < WAIT_BRIEFS) {
		w->briefs++;
		if (w->briefs == 1 || ns < w->brief_ns / 4)
			w->brief_ns = ns;
	}
	w->brief_ns = w->brief_ns - w->brief_ns / WAIT_BRIEFS + ns / WAIT_BRIEFS;
}

/* A thread's first wait, for a CPU to begin on, says little of those to come. */
static inline void wait_learn(struct wait_state *w, u64 ns)
{
	w->longs = w->longs - w->longs / 8 + (ns >= WAIT_LONG_NS ? 256 / 8 : 0);
	if (ns < WAIT_DUE_NS)
		wait_learn_brief(w, ns);
	if (w->mean_ns)
		w->mean_ns = w->mean_ns - w->mean_ns / 8 + ns / 8;
	else
		w->mean_ns = ns < WAIT_FIRST_NS ? WAIT_FIRST_NS : ns;
}

/*
 * Is a stack taken, and for how much does it stand? For threads with many short waits one of n waits is chosen: the
 * first by chance, later ones after a number of others that is drawn each time, n - 1 on average. 0: none.
 */
static __attribute__((noinline)) u32 wait_chance(struct wait_state *w, struct wait_stats *ws)
{
	u64 stands = ws->each_ns / (w->mean_ns | 1), before = w->drawn;

	if (!w->mean_ns || !stands || w->longs >= WAIT_OFTEN_LONG)
		return WAIT_ONE;
	if (stands > WAIT_STANDS_MAX)
		stands = WAIT_STANDS_MAX;
	if (!before && bpf_get_prandom_u32() % (u32)stands)
		return 0;
	w->drawn = stands;
	w->skip = bpf_get_prandom_u32() % (u32)(2 * stands - 1);
	return (u32)(before ? before : stands) * WAIT_ONE;
}

/*
 * Walks take at most 1 % of a CPU, unless --max-cpu is 0. They take less of it where many waits are skipped, down to a
 * fifth: that many waits make enough samples. Of a shift they may take more, as nothing is walked in the pause.
 */
static __attribute__((noinline)) int wait_budget(struct wait_stats *ws, struct wait_state *w, u64 begin)
{
	u64 may = wait_factor > 1 ? WAIT_SPENT_NS / 2 * wait_factor : WAIT_SPENT_NS;
	u64 now = bpf_ktime_get_ns(), elapsed = now - ws->window_ns, skipped = ws->skipped - ws->window_skipped;

	if (wait_factor > 1)
		skipped = 0;
	w->walk_ns = now - begin;
	if (wait_unlimited || w->longs >= WAIT_OFTEN_LONG)
		return 0;
	ws->spent_ns += now - begin;
	if (ws->spent_ns < WAIT_WALKED_NS || ws->spent_ns + skipped * WAIT_SKIPPED_NS < may)
		return 0;
	if (elapsed < WAIT_WINDOW_NS && ws->each_ns < WAIT_EACH_MAX)
		ws->each_ns = ws->each_ns ? ws->each_ns * 2 : WAIT_EACH_MIN;
	else if (elapsed > 2 * WAIT_WINDOW_NS)
		ws->each_ns = ws->each_ns > WAIT_EACH_MIN ? ws->each_ns / 2 : 0;
	ws->window_ns = now;
	ws->window_skipped = ws->skipped;
	ws->spent_ns = 0;
	return 0;
}

#endif
