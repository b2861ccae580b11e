/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap of a runtime that is made for this test, in fake memory of which pages can be missing. An object is its magic
 * number, its size, how many references it has, and these.
 */
#include "unit.h"

#include "unwind/heap/heap.h"
#include "unwind/heap/heap_cache.h"
#include "unwind/heap/heap_draw.h"
#include "unwind/runtime.h"

#define BASE  0x7f0000000000ull
#define SIZE  (8u << 20)
#define PAGE  4096u
#define BLOCK (32ull << 10) /* of the cache */
#define MAGIC 0x4b43554b43554bull
#define GONE  0x454e4f47ull /* it is where its second word leads */

struct fake {
	struct memory mem;
	u8 *bytes;
	u64 missing[16]; /* pages */
	u32 nmissing, reads;
	u64 torn;    /* an object whose magic number is wrong when it is read first */
	u64 always;  /* and one where it always is */
	bool broken; /* torn was read */
	bool pieces; /* it can read some at once */
	u32 next;    /* free */
};

static struct fake fake;

static bool is_missing(u64 addr, u64 size)
{
	for (u32 i = 0; i < fake.nmissing; i++)
		if (fake.missing[i] < addr + size && fake.missing[i] + PAGE > addr)
			return true;
	return addr < BASE || addr + size > BASE + SIZE;
}

static bool fake_read(struct memory *mem, void *dst, size_t size, u64 addr)
{
	if (is_missing(addr, size))
		return false;
	fake.reads++;
	memcpy(dst, fake.bytes + (addr - BASE), size);
	for (u32 i = 0; i < 2; i++) {
		u64 at = i ? fake.always : fake.torn;

		if (at >= addr && at + 8 <= addr + size && (i || !fake.broken)) {
			memset((u8 *)dst + (at - addr), 0, 8);
			fake.broken |= !i;
		}
	}
	return true;
}

static int set_up(void **unused)
{
	fake = (struct fake){.mem = {.read = fake_read}, .bytes = calloc(1, SIZE), .next = 64};
	return !fake.bytes;
}

static int tear_down(void **unused)
{
	free(fake.bytes);
	return 0;
}

static u64 *object_at(u64 addr)
{
	return (u64 *)(fake.bytes + (addr - BASE));
}

static u64 make_at(u64 addr, u64 size, u32 nrefs, ...)
{
	u64 *words = object_at(addr);
	va_list refs;

	words[0] = MAGIC;
	words[1] = size;
	words[2] = nrefs;
	va_start(refs, nrefs);
	for (u32 i = 0; i < nrefs; i++)
		words[3 + i] = va_arg(refs, u64);
	va_end(refs);
	return addr;
}

#define MAKE(size, ...) make_at((fake.next += 256, BASE + fake.next), size, __VA_ARGS__)

/* --- the runtime --- */

static u64 roots[2];

static struct error *toy_open(void *instance, const struct runtime_process *p, struct heap *h, void **ret)
{
	*ret = h;
	return NULL;
}

static void toy_close(void *reader)
{
}

static struct error *toy_roots(void *reader)
{
	struct heap *h = reader;
	u32 stack = heap_root(h, 0, HEAP_STACKS, "stack");

	heap_root_ref(h, heap_root(h, 0, HEAP_LASTING, "globals"), heap_label(h, "all"), roots[0]);
	heap_root_ref(h, heap_root(h, stack, HEAP_LASTING, "main"), heap_label(h, "x"), roots[1]);
	return NULL;
}

static enum heap_seen toy_object(void *reader, u64 addr, u32 label, struct heap_object *ret)
{
	struct heap *h = reader;
	const u64 *words = heap_bytes(h, addr, 256);
	char name[16] = ".a";
	u64 copy[32];

	if (words && words[0] == GONE) {
		ret->moved_to = words[1];
		return HEAP_MOVED;
	}
	if (!words || words[0] != MAGIC)
		return HEAP_TORN;
	ret->size = words[1];
	if (words[2] > 29)
		return HEAP_TORN;
	memcpy(copy, words, sizeof(copy));
	for (u32 i = 0; i < copy[2]; i++) {
		name[1] = (char)('a' + i);
		heap_ref(h, heap_label(h, name), copy[3 + i]);
	}
	snprintf(name, sizeof(name), "T%lu", copy[2]);
	ret->type = heap_type(h, copy[2] + 1, name);
	return HEAP_OBJECT;
}

static const struct runtime_heap_ops toy = {
        .objects = "objects", .open = toy_open, .close = toy_close, .roots = toy_roots, .object = toy_object};

static struct heap *read_toy_as(const struct runtime_heap_ops *ops, struct heap_options o)
{
	struct runtime_process p = {.memory = &fake.mem};
	struct heap *h;
	bool found;

	assert_null(heap_create(&fake.mem, 0, &o, &h));
	assert_null(heap_read(h, ops, NULL, &p, &found));
	assert_true(found);
	return h;
}

static struct heap *read_toy(u64 memory)
{
	return read_toy_as(&toy, (struct heap_options){.memory = memory, .references = true});
}

static u64 count(const struct heap *h, const char *type, u64 *bytes)
{
	struct heap_total *all;
	u64 ret = 0;
	u32 n;

	assert_null(heap_totals(h, &all, &n));
	*bytes = 0;
	for (u32 i = 0; i < n; i++)
		if (!strcmp(all[i].type, type)) {
			ret = all[i].count;
			*bytes = all[i].bytes;
		}
	free(all);
	return ret;
}

static void test_counts(void **unused)
{
	u64 leaf = MAKE(10, 0), huge = MAKE(1ull << 40, 0), pair = MAKE(7, 2, leaf, huge), bytes;
	struct heap *h;

	roots[0] = MAKE(5, 3, pair, leaf, pair);
	roots[1] = 0;
	*(object_at(leaf) + 2) = 1; /* a cycle */
	*(object_at(leaf) + 3) = roots[0];
	h = read_toy(64 << 20);
	assert_int_equal(count(h, "T0", &bytes), 1);
	assert_int_equal(bytes, 1ull << 40);
	assert_int_equal(count(h, "T1", &bytes), 1);
	assert_int_equal(bytes, 10);
	assert_int_equal(count(h, "T3", &bytes), 1);
	assert_int_equal(h->counts.torn, 0);
	heap_destroy(h);
}

static void test_unreadable(void **unused)
{
	u64 good = make_at(BASE + 10 * PAGE, 1, 0), gone = make_at(BASE + 11 * PAGE, 1, 0), bytes;
	u64 wild = 0x123, far = make_at(BASE + (5u << 20) - 128, 3, 0); /* it ends in another block */
	struct heap *h;

	fake.missing[fake.nmissing++] = BASE + 11 * PAGE;
	roots[0] = MAKE(5, 4, good, gone, wild, far);
	roots[1] = 0;
	h = read_toy(64 << 20);
	assert_int_equal(count(h, "T0", &bytes), 2);
	assert_int_equal(bytes, 4);
	assert_int_equal(h->counts.torn, 2);
	heap_destroy(h);
}

/* What is read while it changes is read again; what stays so is counted. */
static void test_torn(void **unused)
{
	u64 a = make_at(BASE + (1u << 20), 1, 0), b = make_at(BASE + (2u << 20), 1, 0),
	    c = make_at(BASE + (3u << 20), 700, 0), bytes;
	struct heap *h;

	fake.torn = a;
	fake.always = b;
	*(object_at(c) + 2) = 1000; /* its size is known, what it refers to is not */
	roots[0] = MAKE(5, 3, a, b, c);
	roots[1] = 0;
	h = read_toy(64 << 20);
	assert_int_equal(count(h, "T0", &bytes), 1);
	assert_int_equal(h->counts.mended, 1);
	assert_int_equal(h->counts.torn, 2);
	assert_int_equal(h->counts.torn_bytes, 700);
	heap_destroy(h);
}

static u32 node_of(const struct heap *h, u64 addr)
{
	for (u32 i = 1; i < h->nodes.n; i++)
		if (heap_addr(h, i) == addr)
			return i;
	return 0;
}

/* What globals keep is not a local variable's; what that alone keeps is. */
static void test_ranks(void **unused)
{
	u64 shared = MAKE(100, 0), own = MAKE(10, 0), *retained;
	struct heap *h;

	roots[0] = MAKE(1, 1, shared);
	roots[1] = MAKE(2, 2, shared, own);
	h = read_toy(64 << 20);
	assert_null(heap_settle(h));
	assert_null(heap_retained(h, &retained));
	assert_int_equal(h->dominators[node_of(h, shared)], node_of(h, roots[0]));
	assert_int_equal(retained[node_of(h, roots[0])], 101);
	assert_int_equal(retained[node_of(h, roots[1])], 12);
	assert_int_equal(retained[0], 113);
	free(retained);
	heap_destroy(h);
}

static u64 moved_to(u64 addr)
{
	u64 from = MAKE(0, 0);

	object_at(from)[0] = GONE;
	object_at(from)[1] = addr;
	return from;
}

/* Who refers to where an object was keeps it alive where it is; it counts once. With little room, too. */
static void test_moved(void **unused)
{
	const u64 room[] = {64 << 20, 1 << 14};
	u64 now = MAKE(100, 0), twice = MAKE(10, 0), was = moved_to(now), before = moved_to(moved_to(twice)), bytes,
	    left = MAKE(1, 2, now, before), right = MAKE(1, 2, was, moved_to(twice));

	roots[0] = MAKE(1, 4, left, right, was, moved_to(BASE + SIZE));
	roots[1] = 0;
	for (u32 i = 0; i < 2; i++) {
		struct heap *h = read_toy(room[i]);
		u64 *retained;

		assert_int_equal(count(h, "T0", &bytes), 2);
		assert_int_equal(bytes, 110);
		assert_int_equal(count(h, "T2", &bytes), 2);
		assert_int_equal(h->counts.torn, 1);
		assert_null(heap_settle(h));
		assert_null(heap_retained(h, &retained));
		assert_int_equal(retained[0], 113);
		if (!h->coarse) {
			assert_int_equal(h->dominators[node_of(h, now)], node_of(h, roots[0]));
			assert_int_equal(h->dominators[node_of(h, twice)], node_of(h, roots[0]));
		}
		free(retained);
		heap_destroy(h);
	}
}

static u64 copied_from;

/* It changes once it is copied; then there is another copy, behind what does not fit. */
static struct error *toy_copied_roots(void *reader)
{
	struct heap_stretch low = {BASE, BASE + PAGE, false},
	                    high = {BASE + (7u << 20), BASE + (7u << 20) + PAGE, false},
	                    all = {BASE, BASE + SIZE, false};
	struct error *err = toy_roots(reader);

	assert_true(heap_copy(reader, &high, 1));
	memset(object_at(copied_from), 0, 8);
	assert_true(heap_copy(reader, &low, 1));
	assert_false(heap_copy(reader, &all, 1));
	heap_uncopy(reader);
	object_at(copied_from)[0] = MAGIC;
	assert_true(heap_copy(reader, &low, 1));
	assert_true(heap_copy(reader, &high, 1));
	memset(object_at(copied_from), 0, 8);
	return err ? err : toy_roots(reader);
}

/* What is copied is read as it was. Where objects need the room, the copy is given up. */
static void test_copied(void **unused)
{
	struct runtime_heap_ops ops = toy;
	u64 leaf = make_at(BASE + (7u << 20), 70, 0), bytes, next = 0;
	struct heap_options o = {.memory = 8 << 20, .references = true};
	struct heap *h;

	ops.roots = toy_copied_roots;
	copied_from = leaf;
	roots[0] = MAKE(1, 1, leaf);
	roots[1] = 0;
	h = read_toy_as(&ops, o);
	assert_int_equal(count(h, "T0", &bytes), 1);
	assert_int_equal(bytes, 70);
	assert_int_equal(h->counts.torn, 0);
	heap_destroy(h);
	object_at(leaf)[0] = MAGIC;
	o.memory = 5 << 17;
	for (u32 i = 0; i < 25000; i++)
		next = MAKE(4, 1, next);
	roots[0] = MAKE(1, 2, next, leaf);
	h = read_toy_as(&ops, o);
	assert_int_equal(count(h, "T1", &bytes), 25000);
	assert_int_equal(count(h, "T0", &bytes), 1);
	assert_int_equal(heap_cache_kept(h->cache), 0);
	assert_int_equal(h->counts.refused, 0);
	heap_destroy(h);
}

static u64 drawn(const struct profile *p, u32 node, const char *name)
{
	for (u32 i = p->nodes[node].child; i; i = p->nodes[i].sibling)
		if (!strcmp(p->functions[p->nodes[i].function].name, name))
			return i;
	return 0;
}

/* A list of 20,000 is folded; what two keep is below who keeps both; all bytes are drawn once. */
static void test_draw(void **unused)
{
	u64 next = 0, both = MAKE(1000, 0), left, right;
	struct profile *p;
	struct heap *h;
	u32 top;

	for (u32 i = 0; i < 20000; i++)
		next = MAKE(4, 1, next);
	left = MAKE(1, 2, both, 0ul);
	right = MAKE(1, 2, both, next);
	roots[0] = MAKE(1, 2, left, right);
	roots[1] = 0;
	h = read_toy(64 << 20);
	assert_null(heap_settle(h));
	assert_null(profile_create(&p));
	assert_null(heap_draw_refs(h, p));
	profile_finish(p);
	assert_int_equal(p->nodes[0].total, 1000 + 80000 + 3);
	top = (u32)drawn(p, (u32)drawn(p, 0, "globals"), "all: T2");
	assert_true(top);
	top = (u32)drawn(p, top, "shared by 2 paths, also .b: T2");
	assert_true(top);
	assert_int_equal(p->nodes[top].total, 1000);
	top = (u32)drawn(p, top, ".a: T2"); /* the way to it */
	assert_true(top);
	assert_int_equal(p->nodes[top].self, 0);
	assert_true(p->nnodes < 20);
	profile_destroy(p);
	heap_destroy(h);
}

/* The n largest, whatever their order in memory; of equal ones the first. */
static void test_largest(void **unused)
{
	u64 a = MAKE(50, 0), b = MAKE(700, 0), c = MAKE(20, 0), d = MAKE(300, 0), e = MAKE(300, 0);
	u32 *nodes, n;
	struct heap *h;

	roots[0] = MAKE(1, 5, a, b, c, d, e);
	roots[1] = 0;
	h = read_toy(64 << 20);
	assert_null(heap_largest(h, 3, &nodes, &n));
	assert_int_equal(n, 3);
	assert_int_equal(heap_addr(h, nodes[0]), b);
	assert_int_equal(heap_addr(h, nodes[1]), d);
	assert_int_equal(heap_addr(h, nodes[2]), e);
	free(nodes);
	assert_null(heap_largest(h, 100, &nodes, &n));
	assert_int_equal(n, 6);
	assert_int_equal(heap_addr(h, nodes[5]), roots[0]);
	free(nodes);
	heap_destroy(h);
}

static u64 candidates[4][2]; /* with their counts */

static struct error *toy_all(void *reader)
{
	heap_candidate(reader, roots[0], 1); /* is reached */
	for (u32 i = 0; i < 4; i++)
		heap_candidate(reader, candidates[i][0], candidates[i][1]);
	return NULL;
}

/* A leaked one, one that nobody refers to, and a cycle: each with what it keeps, and nothing that a root reaches. */
static void test_unreachable(void **unused)
{
	struct runtime_heap_ops ops = toy;
	u64 kept = MAKE(100, 0), live = MAKE(5000, 0), one = MAKE(10, 2, 0ul, live), two = MAKE(20, 1, one);
	u64 leaked = MAKE(1, 1, kept), garbage = MAKE(2, 1, two);
	const struct {
		const char *name;
		u64 bytes;
	} expected[] = {
	        {"(counted as used, though nothing that is known refers to it)", 101}, {"(nothing refers to it)", 2}};
	struct profile *p;
	struct heap *h;

	object_at(one)[3] = two; /* a cycle, to which garbage refers */
	roots[0] = MAKE(1, 1, live);
	roots[1] = 0;
	memcpy(candidates, (u64[4][2]){{leaked, 1}, {two, 2}, {one, 1}, {garbage, 0}}, sizeof(candidates));
	ops.all = toy_all;
	h = read_toy_as(&ops, (struct heap_options){.memory = 64 << 20, .references = true, .unreachable = true});
	assert_null(heap_settle(h));
	assert_null(profile_create(&p));
	assert_null(heap_draw_refs(h, p));
	profile_finish(p);
	assert_int_equal(p->nodes[0].total, 101 + 2 + 30);
	for (u32 i = 0; i < 2; i++)
		assert_int_equal(p->nodes[drawn(p, 0, expected[i].name)].total, expected[i].bytes + (i ? 30 : 0));
	assert_int_equal(p->nodes[drawn(p, 0, "(cycles that only refer to themselves)")].total, 0);
	profile_destroy(p);
	heap_destroy(h);
	candidates[3][0] = 0; /* now nothing refers to the cycle */
	candidates[1][1] = 1;
	h = read_toy_as(&ops, (struct heap_options){.memory = 64 << 20, .references = true, .unreachable = true});
	assert_null(heap_settle(h));
	assert_null(profile_create(&p));
	assert_null(heap_draw_refs(h, p));
	profile_finish(p);
	assert_int_equal(p->nodes[drawn(p, 0, "(cycles that only refer to themselves)")].total, 30);
	profile_destroy(p);
	heap_destroy(h);
}

/* What does not fit is summed up by the ways to it: each object counts once, and large ones are still told. */
static void test_coarse(void **unused)
{
	u64 next = 0, large = MAKE(1 << 20, 0), left, right, bytes, again = MAKE(2, 3, 0ul, large, 0ul);
	struct profile *p;
	struct heap *h;
	u32 *nodes, n, at;

	for (u32 i = 0; i < 30000; i++)
		next = MAKE(4, 1, next);
	left = MAKE(1, 4, 0ul, 0ul, large, next);
	right = MAKE(1, 4, 0ul, 0ul, next, again);
	object_at(again)[3] = left;
	roots[0] = left;
	roots[1] = right;
	h = read_toy(600 << 10);
	assert_non_null(h->coarse);
	assert_int_equal(h->counts.refused, 0);
	assert_int_equal(count(h, "T1", &bytes), 30000);
	assert_int_equal(bytes, 120000);
	assert_int_equal(count(h, "T0", &bytes), 1);
	assert_int_equal(count(h, "T3", &bytes), 1);
	assert_int_equal(count(h, "T4", &bytes), 2);
	assert_true(h->nodes.n < 20);
	assert_null(heap_largest(h, 10, &nodes, &n));
	assert_true(n == 1 && heap_addr(h, nodes[0]) == large);
	free(nodes);
	assert_null(heap_settle(h));
	assert_null(profile_create(&p));
	assert_null(heap_draw_refs(h, p));
	profile_finish(p);
	assert_int_equal(p->nodes[0].total, 120000 + (1 << 20) + 4);
	at = (u32)drawn(p, (u32)drawn(p, 0, "globals"), "all: T4");
	assert_int_equal(p->nodes[at].total, 120000 + (1 << 20) + 1);
	profile_destroy(p);
	heap_destroy(h);
}

/* Word 0 says how many objects of 24 bytes there are: first 1, and once all is forgotten, 5. */
static struct error *toy_blocks(void *reader)
{
	struct heap *h = reader;
	u32 eden = heap_root(h, 0, HEAP_LASTING, "eden"), type = heap_type(h, 7, "Point");

	for (u32 i = 0; i < 2; i++) {
		const u64 *now = heap_bytes(h, BASE, 8), seen = *now;
		u64 direct;

		assert_true(memory_read(heap_memory_now(h), &direct, 8, BASE));
		assert_int_equal(direct, i ? 5 : 1);
		assert_int_equal(seen, direct);
		heap_count(h, i ? eden : 0, type, seen, 24 * seen);
		*object_at(BASE) = 5;
		assert_int_equal(*(const u64 *)heap_bytes(h, BASE, 8), seen);
		heap_forget(h);
	}
	heap_count(h, eden, 0, 3, 72);
	heap_count(h, eden, 1000, 3, 72);
	heap_count(h, 1000, heap_type(h, 8, "Empty"), 1ull << 40, 1ull << 44);
	heap_torn(h);
	return NULL;
}

/* Objects without nodes count in the table and in the picture; those of no type do not. */
static void test_tallies(void **unused)
{
	static const struct runtime_heap_ops ops = {.open = toy_open, .close = toy_close, .blocks = toy_blocks};
	struct heap_options o = {.memory = 16 << 20};
	struct runtime_process p = {.pid = 1, .memory = &fake.mem};
	struct heap_total *all;
	struct profile *profile;
	struct heap *h;
	bool found;
	u64 sum = 0;
	u32 n;

	*object_at(BASE) = 1;
	assert_null(heap_create(&fake.mem, 0, &o, &h));
	assert_null(heap_read(h, &ops, NULL, &p, &found));
	assert_true(found);
	assert_int_equal(h->counts.torn, 1);
	assert_null(heap_totals(h, &all, &n));
	assert_int_equal(n, 2);
	assert_string_equal(all[0].type, "Empty");
	assert_true(all[0].count == 1ull << 40 && all[0].bytes == 1ull << 44);
	assert_string_equal(all[1].type, "Point");
	assert_true(all[1].count == 6 && all[1].bytes == 144);
	free(all);
	assert_null(profile_create(&profile));
	assert_null(heap_draw_types(h, profile));
	profile_finish(profile);
	for (u32 i = 0; i < profile->nnodes; i++)
		sum += profile->nodes[i].self;
	assert_true(sum == (1ull << 44) + 144);
	profile_destroy(profile);
	heap_destroy(h);
}

/* The cache gives what is there, of any size and place, with few reads and with few blocks. */
static void test_cache(void **unused)
{
	struct heap_cache *c;
	u64 at = 1;

	for (u32 i = 0; i < SIZE; i++)
		fake.bytes[i] = (u8)(i * 31 + (i >> 8));
	fake.missing[fake.nmissing++] = BASE + 300 * PAGE;
	assert_null(heap_cache_create(&fake.mem, 0, 0, &c));
	for (u32 i = 0; i < 20000; i++) {
		u32 from, size;
		const u8 *bytes;

		at = at * 6364136223846793005ull + 1442695040888963407ull;
		from = (u32)(at >> 33) % SIZE;
		size = 1 + (u32)(at >> 20) % 9000;
		heap_cache_ahead(c, at >> 63);
		bytes = heap_cache_bytes(c, BASE + from, size);
		assert_int_equal(bytes != NULL, !is_missing(BASE + from, size));
		if (bytes)
			assert_memory_equal(bytes, fake.bytes + from, size);
	}
	assert_null(heap_cache_bytes(c, ~0ull - 4, 16));
	assert_null(heap_cache_bytes(c, BASE, 0));
	assert_null(heap_cache_bytes(c, BASE, HEAP_BYTES_MAX + 1));
	heap_cache_destroy(c);
}

static u32 blocks_read;

static bool zeros_read(struct memory *mem, void *dst, size_t size, u64 addr)
{
	blocks_read++;
	memset(dst, 0, size);
	return true;
}

/* Are n blocks still there when the first one is asked for again? */
static bool are_kept(u64 memory, u32 n)
{
	struct memory zeros = {.read = zeros_read};
	struct heap_options o = {.memory = memory};
	struct heap *h;
	u32 before;

	assert_null(heap_create(&zeros, 0, &o, &h));
	heap_cache_ahead(h->cache, true);
	for (u32 i = 0; i < n; i++)
		assert_non_null(heap_bytes(h, BASE + i * BLOCK, 8));
	before = blocks_read;
	assert_non_null(heap_bytes(h, BASE, 8));
	heap_destroy(h);
	return blocks_read == before;
}

/* An eighth of the memory is for blocks, but not more than 64 MiB. */
static void test_cache_limit(void **unused)
{
	static const u64 limits[][2] = {{80 << 20, 10 << 20}, {512 << 20, 64 << 20}, {4096ull << 20, 64 << 20}};

	for (u32 i = 0; i < 3; i++) {
		assert_true(are_kept(limits[i][0], (u32)(limits[i][1] / BLOCK)));
		assert_false(are_kept(limits[i][0], (u32)(limits[i][1] / BLOCK) + 1));
	}
}

/* References count against the memory, too, of whatever object they are. */
static void test_dense(void **unused)
{
	enum { OBJECTS = 600, EACH = 29 };
	u64 at[OBJECTS];
	u32 n = 0;
	struct heap *h;

	for (u32 i = 0; i < OBJECTS; i++)
		at[i] = MAKE(1, 0);
	for (u32 i = 0; i < OBJECTS; i++)
		for (u32 k = 0; k < EACH; k++) {
			*(object_at(at[i]) + 2) = EACH;
			*(object_at(at[i]) + 3 + k) = at[(i + k * k + 1) % OBJECTS];
		}
	roots[0] = at[0];
	roots[1] = 0;
	h = read_toy(4 << 20);
	assert_int_equal(h->counts.refused, 0);
	assert_int_equal(h->counts.references, 1 + OBJECTS * EACH);
	n = (u32)h->edges.n;
	heap_destroy(h);
	assert_true(n * 4 > 100 << 10 >> 1);
	h = read_toy(100 << 10);
	assert_non_null(h->coarse);
	assert_int_equal(h->counts.refused, 0);
	assert_int_equal(h->counts.references, 1 + OBJECTS * EACH);
	assert_int_equal(h->edges.n, 0);
	heap_destroy(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_counts, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_unreadable, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_torn, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_ranks, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_moved, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_copied, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_draw, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_largest, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_unreachable, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_coarse, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_tallies, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_cache, set_up, tear_down),
	        cmocka_unit_test(test_cache_limit),
	        cmocka_unit_test_setup_teardown(test_dense, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
