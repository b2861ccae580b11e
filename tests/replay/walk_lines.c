/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks each walk of a recording once, for a tool that traces memory (tests/bench/bench_lines.py):
 *
 *	yrt-walk-lines FILE
 *
 * Prints where what is: "tables ADDRESS SIZE" of each slab, "frames ADDRESS SIZE", "target ADDRESS SIZE" of each piece
 * of the target's memory, "harness ADDRESS SIZE" of what only this program has. After a line of standard input it
 * writes each walk's number + 1 to the word at "mark ADDRESS", walks, and writes 0.
 */
#include <malloc.h>
#include <stdio.h>

#include "walks.h"

#define FRESH 65536 /* larger pieces come from the kernel, zeroed: else most of the trace is their clearing */

static volatile u32 mark;
static struct walks_result now;

static void say(const char *what, const void *at, size_t size)
{
	printf("%s %#lx %zu\n", what, (unsigned long)at, size);
}

static void say_walk(const struct walk_record *r)
{
	say("harness", r->pieces, r->npieces * sizeof(*r->pieces));
	for (u32 i = 0; i < r->npieces; i++)
		say("target", r->pieces[i].bytes, r->pieces[i].size);
}

int main(int argc, char **argv)
{
	struct walks *w;

	if (argc != 2)
		return 2;
	mallopt(M_MMAP_THRESHOLD, FRESH);
	w = walks_load(argv[1]);
	walks_place(w);
	for (u32 at = 0; at < arena_size(w->arena) / sizeof(struct slab); at++)
		say("tables", arena_at(w->arena, at << ARENA_SLAB_BITS, ARENA_SLAB_SIZE), ARENA_SLAB_SIZE);
	say("frames", now.frames, sizeof(now.frames));
	say("harness", w, sizeof(*w));
	for (u32 i = 0; i < w->nwalks; i++)
		say_walk(&w->walk[i]);
	say("mark", (const void *)&mark, sizeof(mark));
	fflush(stdout);
	getchar();
	for (u32 i = 0; i < w->nwalks; i++) {
		mark = i + 1;
		walks_again(w, i, WALKS_NONE, &now);
		mark = 0;
		if (!walks_same(&w->walk[i], &now))
			return 1;
	}
	walks_free(w);
	return 0;
}
