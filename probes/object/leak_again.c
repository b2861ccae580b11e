/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_again.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <xxhash.h>

#include "unwind/now.h"
#include "unwind/table.h"

#define BLOCKS     2048
#define EACH       32 /* of a stack */
#define TRIES      8  /* to find a stack that has more than another */
#define TURN       7919
#define OWNERS     65536
#define SEVERAL    1
#define AT_ONCE    64 /* that one call reads */
#define LATER_PART 8  /* a block is looked at again after that part (1/LATER_PART) of the time that it was watched, */
#define SOON_NS    5000000ull
#define LATE_NS    200000000ull /* but no later than that */

struct leak_again {
	struct leak_again_options options;
	struct leak_again_block *of;
	u32 n, turn;
	struct table owner;  /* stack by what its blocks held; SEVERAL: of more than one */
	struct table by_key; /* places in of, + 1, at the begin of a look at the ledger */
};

struct error *leak_again_create(const struct leak_again_options *options, struct leak_again **ret)
{
	struct leak_again *a = *ret = calloc(1, sizeof(*a));

	if (!a)
		return &error_no_memory;
	a->options = *options;
	a->of = calloc(BLOCKS, sizeof(*a->of));
	return a->of ? NULL : &error_no_memory;
}

void leak_again_destroy(struct leak_again *a)
{
	if (!a)
		return;
	table_free(&a->owner);
	table_free(&a->by_key);
	free(a->of);
	free(a);
}

static struct iovec where(const struct leak_again_block *b)
{
	return (struct iovec){(void *)(b->key.addr - sizeof(u64)), LEAK_AGAIN_WORDS * sizeof(u64)};
}

/* How many of n blocks of a process could be read, in order; -1: the process has ended. */
static int read_blocks(const struct leak_again_block *const *b, u32 n, u64 (*ret)[LEAK_AGAIN_WORDS])
{
	struct iovec local = {ret, n * sizeof(*ret)}, remote[AT_ONCE];
	ssize_t got;

	for (u32 i = 0; i < n; i++)
		remote[i] = where(b[i]);
	got = process_vm_readv((pid_t)b[0]->key.tgid, &local, 1, remote, n, 0);
	if (got < 0)
		return errno == ESRCH ? -1 : 0;
	return (int)((size_t)got / sizeof(*ret));
}

static void forget(struct leak_again *a, u32 i)
{
	a->of[i] = a->of[--a->n];
}

static void end(struct leak_again *a, u32 i, enum leak_again_end how)
{
	struct leak_again_block b = a->of[i];

	forget(a, i);
	a->options.end(a->options.ctx, &b, how);
}

static u32 count_of(const struct leak_again *a, u64 hash)
{
	u32 n = 0;

	for (u32 i = 0; i < a->n; i++)
		n += a->of[i].block.hash == hash;
	return n;
}

/* There is room, or one of a stack that has more than that gives way. */
static bool make_room(struct leak_again *a, u32 own)
{
	for (u32 i = 0; i < TRIES && a->n == BLOCKS; i++) {
		u32 at = (a->turn += TURN) % BLOCKS;

		if (count_of(a, a->of[at].block.hash) > own + 1)
			end(a, at, LEAK_AGAIN_OUT);
	}
	return a->n < BLOCKS;
}

static u64 content_hash(const struct leak_again_block *b)
{
	return XXH3_64bits_withSeed(
	               b->holds + 1, (b->words - 1) * sizeof(*b->holds), b->key.tgid ^ b->block.size << 32) |
	       1;
}

/* Blocks of another stack hold the same: nobody could tell one from the other, once it has got its address. */
static bool is_of_several(struct leak_again *a, const struct leak_again_block *b)
{
	u64 hash = content_hash(b), *known = table_get(&a->owner, hash);

	if (known && *known == b->block.hash)
		return false;
	if (!known) {
		if (a->owner.used >= OWNERS)
			table_clear(&a->owner);
		error_free(table_put(&a->owner, hash, b->block.hash));
		return false;
	}
	if (*known != SEVERAL)
		for (u32 i = a->n; i-- > 0;)
			if (content_hash(&a->of[i]) == hash)
				end(a, i, LEAK_AGAIN_OUT);
	*known = SEVERAL;
	return true;
}

bool leak_again_add(struct leak_again *a, const struct leak_key *key, const struct leak_block *block, bool header)
{
	struct leak_again_block b = {.key = *key, .block = *block, .since_ns = now_ns(), .there = true};
	const struct leak_again_block *one = &b;
	u64 words = block->size / sizeof(u64);
	u32 own = count_of(a, block->hash);

	/* Past its end a block has what is its neighbour's. In glibc's chunks there is room for three words. */
	b.words = header || words >= LEAK_AGAIN_WORDS - 1 ? LEAK_AGAIN_WORDS : (u32)words + 1;
	if (b.words < 2 || key->addr < sizeof(u64) || read_blocks(&one, 1, &b.holds) != 1)
		return false;
	if (!header)
		b.holds[0] = 0;
	if (is_of_several(a, &b) || own >= EACH || !make_room(a, own))
		return false;
	b.due_ns = b.since_ns + SOON_NS;
	a->of[a->n++] = b;
	return true;
}

/* What differs: 0: nothing. */
static u32 differing(const struct leak_again_block *b, const u64 now[LEAK_AGAIN_WORDS])
{
	u32 n = b->holds[0] && (b->holds[0] ^ now[0]) & ~7ull; /* flags of glibc's header are the neighbour's */

	for (u32 i = 1; i < b->words; i++)
		n += b->holds[i] != now[i];
	return n;
}

bool leak_again_holds(const struct leak_again_block *b)
{
	u64 now[1][LEAK_AGAIN_WORDS];

	return read_blocks(&b, 1, now) == 1 && !differing(b, now[0]);
}

/* free() writes two words in glibc (a link and a key), one in others; another size in the header is another block. */
static bool is_freed(const struct leak_again_block *b, const u64 now[LEAK_AGAIN_WORDS])
{
	bool first = b->holds[1] != now[1], second = b->words > 2 && b->holds[2] != now[2];

	if (!b->holds[0])
		return first && (second || b->words <= 2);
	return (b->holds[0] ^ now[0]) & ~7ull || (first && second);
}

/* Those at these places, which fall: what ends gives its place to the last one of all. */
static void look_at(struct leak_again *a, const u32 *at, u32 n, u64 now)
{
	const struct leak_again_block *b[AT_ONCE];
	u64 holds[AT_ONCE][LEAK_AGAIN_WORDS];
	enum leak_again_end how[AT_ONCE];
	bool ends[AT_ONCE] = {false};
	int got;

	for (u32 i = 0; i < n; i++)
		b[i] = &a->of[at[i]];
	for (u32 i = 0; i < n; i += (u32)got + 1) {
		got = read_blocks(b + i, n - i, holds + i);
		for (u32 k = i; k < n && (got < 0 || k <= i + (u32)got); k++) {
			bool gone = got < 0 || k == i + (u32)got;

			ends[k] = gone || differing(b[k], holds[k]);
			how[k] = got < 0                            ? LEAK_AGAIN_OUT
			         : gone || is_freed(b[k], holds[k]) ? LEAK_AGAIN_FREED
			                                            : LEAK_AGAIN_CHANGED;
		}
		if (got < 0)
			break;
	}
	for (u32 i = 0; i < n; i++) {
		struct leak_again_block *one = &a->of[at[i]];
		u64 later = (now - one->since_ns) / LATER_PART;

		one->due_ns = now + (later < SOON_NS ? SOON_NS : later > LATE_NS ? LATE_NS : later);
		if (ends[i])
			end(a, at[i], how[i]);
	}
}

void leak_again_look(struct leak_again *a, u64 now)
{
	u32 at[AT_ONCE], n = 0;

	for (u32 i = a->n; i-- > 0;) {
		if (a->of[i].due_ns > now)
			continue;
		if (n && (n == AT_ONCE || a->of[i].key.tgid != a->of[at[0]].key.tgid)) {
			look_at(a, at, n, now);
			n = 0;
		}
		at[n++] = i;
	}
	if (n)
		look_at(a, at, n, now);
}

static u64 key_hash(const struct leak_key *key)
{
	return XXH3_64bits(key, sizeof(*key)) | 1;
}

void leak_again_begin_ledger(struct leak_again *a)
{
	table_clear(&a->by_key);
	for (u32 i = 0; i < a->n; i++) {
		a->of[i].there = false;
		error_free(table_put(&a->by_key, key_hash(&a->of[i].key), i + 1));
	}
}

struct leak_again_block *leak_again_in_ledger(struct leak_again *a, const struct leak_key *key)
{
	u64 *place = table_get(&a->by_key, key_hash(key));
	struct leak_again_block *b = place && *place <= a->n ? &a->of[*place - 1] : NULL;

	return b && b->key.addr == key->addr && b->key.tgid == key->tgid ? b : NULL;
}

void leak_again_end_ledger(struct leak_again *a)
{
	for (u32 i = a->n; i-- > 0;)
		if (!a->of[i].there)
			forget(a, i);
}

struct leak_again_block *leak_again_all(struct leak_again *a, u32 *n)
{
	*n = a->n;
	return a->of;
}

void leak_again_remove(struct leak_again *a, const struct leak_again_block *b)
{
	forget(a, (u32)(b - a->of));
}

void leak_again_end_all(struct leak_again *a)
{
	while (a->n)
		end(a, a->n - 1, LEAK_AGAIN_OUT);
}
