/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/grow.h"

#define SLOT_NS 100000000ull

void leak_stacks_begin(struct leak_stacks *s, u64 now)
{
	s->began_ns = now;
	s->slot_ns = SLOT_NS;
}

void leak_stacks_free(struct leak_stacks *s)
{
	free(s->of);
	table_free(&s->by_hash);
}

struct leak_site *leak_stacks_find(const struct leak_stacks *s, u64 hash)
{
	u64 *place = hash ? table_get(&s->by_hash, hash) : NULL;

	return place ? &s->of[*place - 1] : NULL;
}

struct error *leak_stacks_add(struct leak_stacks *s, u64 hash, u32 node)
{
	struct error *err = leak_stacks_find(s, hash) || !hash ? NULL : grow(&s->of, s->n, sizeof(*s->of));

	if (err || !hash || leak_stacks_find(s, hash))
		return err;
	err = table_put(&s->by_hash, hash, s->n + 1);
	if (err)
		return err;
	s->of[s->n++] = (struct leak_site){.hash = hash, .node = node};
	return NULL;
}

struct error *leak_stacks_place(struct leak_stacks *s, struct collector *c, const struct stack_record *record,
        const struct frame *frames, u32 n)
{
	u32 node;
	struct error *err = collector_place(c, record, frames, n, NULL, &node);

	if (err || node == COLLECTOR_FILTERED)
		return err;
	return leak_stacks_add(s, record->hash, node);
}

static void merge(u64 *slots)
{
	for (u32 i = 0; i < LEAK_SLOTS / 2; i++)
		slots[i] = slots[2 * i] + slots[2 * i + 1];
	memset(slots + LEAK_SLOTS / 2, 0, LEAK_SLOTS / 2 * sizeof(*slots));
}

/* Two become one. */
static void widen(struct leak_stacks *s)
{
	for (u32 i = 0; i < s->n; i++) {
		merge(s->of[i].seen);
		merge(s->of[i].blocks);
		merge(s->of[i].bytes);
	}
	s->slot_ns *= 2;
}

void leak_stacks_left(struct leak_stacks *s, const struct leak_block *block)
{
	struct leak_site *site = leak_stacks_find(s, block->hash);
	u64 ns = block->ns > s->began_ns ? block->ns - s->began_ns : 0;

	if (!site)
		return;
	while (ns / s->slot_ns >= LEAK_SLOTS)
		widen(s);
	site->seen[ns / s->slot_ns]++;
	site->blocks[ns / s->slot_ns] += block->blocks;
	site->bytes[ns / s->slot_ns] += block->bytes;
	s->seen++;
	s->bytes += block->bytes;
}

void leak_stacks_thirds(const struct leak_stacks *s, const struct leak_site *site, u64 now, struct leak_left *ret)
{
	*ret = (struct leak_left){0};
	for (u32 i = 0; i < LEAK_SLOTS; i++) {
		u64 middle = (2 * i + 1) * s->slot_ns / 2, run = now - s->began_ns;
		u32 third = run ? (u32)(middle * 3 / run) : 0;

		third = third > 2 ? 2 : third;
		ret->seen[third] += site->seen[i];
		ret->bytes[third] += (double)site->bytes[i];
	}
}
