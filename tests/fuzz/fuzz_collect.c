/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as records and counts. What goes in must come out: each count is in exactly one of the collector's sums,
 * and the profile holds what was counted.
 */
#include <stdlib.h>
#include <string.h>

#include "unwind/profile/collect.h"

static struct process *process;

static struct process *find(void *ctx, u32 number)
{
	return number % 4 ? process : NULL;
}

static struct error *check(struct error *err)
{
	if (err)
		abort();
	return err;
}

static struct collector *start(u8 choice)
{
	struct collect_options options = {.no_kernel = true,
	        .threads = choice & 1,
	        .native_only = choice & 2,
	        .include = choice & 4 ? "gone|map" : NULL,
	        .exclude = choice & 8 ? "unmapped" : NULL};
	static struct modules *modules;
	static struct arena *arena;
	struct collector *c;

	if (!process) {
		check(arena_create(NULL, &arena));
		check(modules_create(arena, NULL, &modules));
		check(process_create_gone(modules, 1, 1, &process));
	}
	check(collector_create(modules, &options, find, NULL, &c));
	return c;
}

/* A record whose head makes sense by its first bytes, at the end of a buffer of exactly its size; returns bytes used.
 */
static size_t send(struct collector *c, const uint8_t *data, size_t size)
{
	size_t n = data[0] | data[1] << 8, head = offsetof(struct stack_record, frame);
	struct stack_record *r;

	size -= 2;
	n = n < size ? n : size;
	r = malloc(n + !n);
	memcpy(r, data + 2, n);
	if (n >= head && data[1] & 128) {
		r->hash &= 7;
		r->first &= 63;
		r->last &= 1;
		r->nframes %= CHUNK_FRAMES + 2;
		r->weight &= 1;
	}
	check(collector_stack(c, r, n));
	free(r);
	return n + 2;
}

/* Whole chunks of zeroes, numbered: what joins them comes to its end. */
static void send_chunks(struct collector *c, const uint8_t *data)
{
	struct stack_record *r = calloc(1, sizeof(*r));

	r->hash = data[0] & 7;
	r->instance = data[0] >> 3;
	for (u32 i = 0; i < data[1] % 40u; i++) {
		r->first = (u16)i;
		r->nframes = i == data[2] % 40u ? data[3] : CHUNK_FRAMES;
		r->last = i == data[3] % 40u;
		check(collector_stack(c, r, sizeof(*r)));
	}
	free(r);
}

static void check_sums(struct collector *c, u64 least)
{
	const struct collect_stats *s = collector_stats(c);
	const struct profile *p = collector_profile(c);
	u64 self = 0;

	for (u32 i = 0; i < p->nnodes; i++)
		self += p->nodes[i].self;
	if (self != s->counted || s->counted + s->filtered + s->unmatched < least || s->unresolved > s->frames)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct collector *c;
	u64 given = 0;

	if (!size)
		return 0;
	c = start(data[0]);
	data++;
	size--;
	while (size >= 5) {
		size_t used = 5;

		if (data[0] % 4 == 0) {
			collector_count(c, data[1], data[2] & 7, data[3], 0);
			given += data[3];
		} else if (data[0] % 16 == 1) {
			collector_forget(c, data[1]);
		} else if (data[0] % 16 == 2) {
			send_chunks(c, data + 1);
		} else {
			used = 1 + send(c, data + 1, size - 1);
		}
		data += used;
		size -= used;
	}
	check_sums(c, given);
	collector_destroy(c);
	return 0;
}
