/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which waits get a stack of their own (wait.h), so that walks and what is skipped take at most 1 % of a CPU. */
#ifndef YRT_WAIT_CHANCE_BPF_H
#define YRT_WAIT_CHANCE_BPF_H

#include "wait/wait_state.bpf.h"

#define WAIT_SPENT_NS     200000ull   /* of a CPU, on walks and on waits that are skipped, in */
#define WAIT_WINDOW_NS    20000000ull /* at most */
#define WAIT_WALKED_NS    40000ull    /* of that on walks, at least */
#define WAIT_WALK_MOST_NS 50000ull    /* of a walk: more is what the host of a virtual machine took meanwhile */
#define WAIT_EACH_MIN     1000ull
#define WAIT_EACH_MAX     1000000000ull
#define WAIT_STANDS_MAX   1024u
#define WAIT_FIRST_NS     1000000ull
#define WAIT_OFTEN_LONG   16u /* of 256: to walk now costs less than a sixteenth of walking from outside later */

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
	if (ns < WAIT_BRIEF_NS)
		wait_learn_brief(w, ns);
	if (w->mean_ns)
		w->mean_ns = w->mean_ns - w->mean_ns / 8 + ns / 8;
	else
		w->mean_ns = ns < WAIT_FIRST_NS ? WAIT_FIRST_NS : ns;
}

/* -ln of a random number from 0 to 1, in 1024ths: the logarithm of its fraction is a parabola, 0.7 % off at most. */
static inline u64 wait_exponential(void)
{
	u32 random = bpf_get_prandom_u32() | 1, power = 0;
	u64 part;

	for (u32 step = 16; step; step >>= 1)
		if (random >> power >> step)
			power += step;
	part = ((u64)random << (31 - power) & 0x7fffffff) >> 21; /* of log2, in 1024ths */
	part = part * (1379 - 355 * part / 1024) / 1024;
	return ((u64)(32 - power) * 1024 - part) * 710 / 1024; /* ln 2 */
}

/* Waits to skip before the next one of `stands`, as if each was drawn with that probability. */
static inline u32 wait_draw(u32 stands)
{
	if (stands < 2)
		return 0;
	return (u32)((wait_exponential() * (1024 * stands - 512 - 85 / stands)) >> 20);
}

/*
 * Is the stack of the wait taken that begins? Each one is drawn with the same probability, whatever it will last: the
 * first by itself, later ones by how many to skip.
 */
static __attribute__((noinline)) bool wait_chance(struct wait_state *w, struct wait_stats *ws)
{
	u64 stands = ws->each_ns / (w->mean_ns | 1);

	w->stands = wait_factor;
	if (!w->mean_ns || !stands || w->longs >= WAIT_OFTEN_LONG)
		return true;
	if (stands > WAIT_STANDS_MAX)
		stands = WAIT_STANDS_MAX;
	if (!w->drawn && bpf_get_prandom_u32() % (u32)stands)
		return false;
	w->stands = (w->drawn ? w->drawn : (u32)stands) * wait_factor;
	w->drawn = stands;
	w->skip = wait_draw((u32)stands);
	return true;
}

/*
 * Walks take at most 1 % of a CPU, unless --max-cpu is 0. They take less of it where many waits are skipped, down to a
 * fifth: that many waits make enough samples. It follows slowly, as the more chances differ the less sums are worth.
 * Of a shift they may take more, as nothing is walked in the pause.
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
	ws->spent_ns += now - begin < WAIT_WALK_MOST_NS ? now - begin : WAIT_WALK_MOST_NS;
	if (ws->spent_ns < WAIT_WALKED_NS || ws->spent_ns + skipped * WAIT_SKIPPED_NS < may)
		return 0;
	if (elapsed < WAIT_WINDOW_NS && ws->each_ns < WAIT_EACH_MAX)
		ws->each_ns = ws->each_ns ? ws->each_ns + ws->each_ns / 4 : WAIT_EACH_MIN;
	else if (elapsed > 8 * WAIT_WINDOW_NS)
		ws->each_ns = ws->each_ns > WAIT_EACH_MIN ? ws->each_ns / 2 : 0;
	else if (elapsed > 2 * WAIT_WINDOW_NS)
		ws->each_ns = ws->each_ns > WAIT_EACH_MIN ? ws->each_ns - ws->each_ns / 4 : 0;
	ws->window_ns = now;
	ws->window_skipped = ws->skipped;
	ws->spent_ns = 0;
	return 0;
}

#endif
