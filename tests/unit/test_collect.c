/* SPDX-License-Identifier: Apache-2.0 */
/* How records arrive at the collector, in chunks and out of order, and how counts find them. */
#include "collect_fake.h"

/* Frame i of a deep stack: which function it is in. */
static u32 deep(u32 i)
{
	return (i * 7 + i / 5) % FN_MAX;
}

/* Chunk number i of a stack of n frames. */
static void send_chunk(struct collector *c, u64 hash, u32 i, u32 n)
{
	struct stack_record *r = new_record(hash);

	r->first = (u16)i;
	r->last = (i + 1) * CHUNK_FRAMES >= n;
	r->nframes = r->last ? n - i * CHUNK_FRAMES : CHUNK_FRAMES;
	for (u32 k = 0; k < r->nframes; k++)
		r->frame[k] = frame_in(deep(i * CHUNK_FRAMES + k));
	send_once(c, r);
}

static void check_deep(struct collector *c, u64 hash, u32 n)
{
	const struct profile *p = collector_profile(c);
	u32 node;

	collector_count(c, 0, hash, 5, 0);
	node = counted_node(c, 5);
	for (u32 i = 0; i < n; i++, node = p->nodes[node].parent)
		assert_string_equal(name_of(p, node), names[deep(i)]);
	assert_int_equal(node, 0);
	assert_int_equal(collector_stats(c)->frames, 5 * n);
}

static void test_stack(void **state)
{
	struct collector *c = create((struct collect_options){0});

	send_once(c, whole_record(HASH));
	collector_count(c, 0, HASH, 3, 0);
	check_path(c, 3, names, FN_MAX);
	assert_int_equal(collector_stats(c)->stacks, 1);
	assert_int_equal(collector_stats(c)->frames, 3 * FN_MAX);
	assert_int_equal(collector_stats(c)->unresolved, 0);
	profile_finish(collector_profile(c));
	assert_int_equal(collector_profile(c)->nodes[0].total, 3);
	collector_destroy(c);
}

static void test_chunks(void **state)
{
	static const u32 depths[] = {255, 256, 257, 300, 512, 1000, 8192, 8448};

	for (u32 i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
		struct collector *c = create((struct collect_options){0});

		for (u32 k = 0; k * CHUNK_FRAMES < depths[i]; k++)
			send_chunk(c, HASH, k, depths[i]);
		assert_int_equal(collector_stats(c)->stacks, 1);
		check_deep(c, HASH, depths[i]);
		collector_destroy(c);
	}
}

/* Eight stacks on their way at once; each arrives whole. */
static void test_interleaved(void **state)
{
	struct collector *c = create((struct collect_options){0});

	for (u32 k = 0; k < 4; k++)
		for (u32 i = 0; i < 8; i++)
			send_chunk(c, HASH + i, k, 800 + i);
	assert_int_equal(collector_stats(c)->stacks, 8);
	for (u32 i = 0; i < 8; i++)
		collector_count(c, 0, HASH + i, 1, 0);
	assert_int_equal(collector_stats(c)->counted, 8);
	assert_int_equal(collector_stats(c)->frames, 8 * 800 + 28);
	assert_int_equal(collector_profile(c)->nodes[0].self, 0);
	collector_destroy(c);
}

/* A stack with a chunk that got lost does not become one; sent again whole, it does. */
static void test_missing_chunk(void **state)
{
	for (u32 missing = 0; missing < 3; missing++) {
		struct collector *c = create((struct collect_options){0});

		for (u32 k = 0; k < 3; k++)
			if (k != missing)
				send_chunk(c, HASH, k, 700);
		assert_int_equal(collector_stats(c)->stacks, 0);
		collector_count(c, 0, HASH, 2, 0);
		assert_int_equal(collector_stats(c)->unmatched, 2);
		assert_int_equal(collector_stats(c)->counted, 0);
		for (u32 k = 0; k < 3; k++)
			send_chunk(c, HASH, k, 700);
		assert_int_equal(collector_stats(c)->stacks, 1);
		check_deep(c, HASH, 700);
		collector_destroy(c);
	}
}

/* More frames than a stack may have are dropped, and nothing is written behind the buffer. */
static void test_too_deep(void **state)
{
	struct collector *c = create((struct collect_options){0});

	for (u32 k = 0; k * CHUNK_FRAMES < 9000; k++)
		send_chunk(c, HASH, k, 9000);
	assert_int_equal(collector_stats(c)->stacks, 0);
	send_chunk(c, HASH, 65535, 1 << 30);
	assert_int_equal(collector_stats(c)->stacks, 0);
	collector_destroy(c);
}

/* size is what arrived: a record must fit into it. The memory ends there, for the sanitizer. */
static void test_sizes(void **state)
{
	const size_t whole = offsetof(struct stack_record, frame) + FN_MAX * sizeof(struct frame);
	struct stack_record *sound = whole_record(HASH);
	struct collector *c = create((struct collect_options){0});

	for (size_t size = 0; size <= whole; size++) {
		void *cut = malloc(size + !size);

		memcpy(cut, sound, size);
		assert_null(collector_stack(c, cut, size));
		assert_int_equal(collector_stats(c)->stacks, size == whole);
		free(cut);
	}
	sound->nframes = CHUNK_FRAMES + 1;
	assert_null(collector_stack(c, sound, sizeof(*sound)));
	sound->nframes = UINT32_MAX / sizeof(struct frame) + 2; /* as a u32, its bytes are few */
	assert_null(collector_stack(c, sound, sizeof(*sound)));
	assert_int_equal(collector_stats(c)->stacks, 1);
	free(sound);
	collector_destroy(c);
}

/* A count matches the stacks of its own epoch or of the one before, until they are forgotten. */
static void test_epochs(void **state)
{
	struct collector *c = create((struct collect_options){0});
	struct stack_record *r = whole_record(HASH);
	const struct collect_stats *stats = collector_stats(c);

	send(c, r);
	collector_count(c, 1, HASH, 3, 0); /* it began to wait before the counts were moved out */
	counted_node(c, 3);
	collector_forget(c, 0);
	collector_count(c, 0, HASH, 20, 0);
	collector_count(c, 1, HASH, 10, 0);
	assert_int_equal(stats->unmatched, 30);
	r->epoch = 1;
	send(c, r);
	assert_null(collector_carry(c, 0, HASH)); /* it still waits */
	collector_forget(c, 1);
	collector_count(c, 0, HASH, 4, 0);
	counted_node(c, 7); /* the same path */
	collector_count(c, 1, HASH, 1, 0);
	counted_node(c, 8);
	collector_forget(c, 0);
	r->epoch = 0;
	send_once(c, r);
	collector_count(c, 0, HASH, 1, 0);
	counted_node(c, 9);
	collector_destroy(c);
}

/* What was counted beside (event_ops.more) goes where the value does. */
static void test_more(void **state)
{
	struct collector *c = create((struct collect_options){0});
	struct stack_record *r = whole_record(HASH);
	const struct profile *p = collector_profile(c);
	u64 more = 0;

	send_once(c, r);
	collector_count(c, 0, HASH, 5000000000, 2);
	for (u32 i = 0; i < p->nnodes; i++)
		more += p->nodes[i].more;
	assert_int_equal(more, 2);
	assert_int_equal(collector_stats(c)->counted, 5000000000);
	collector_destroy(c);
}

/* A record with a weight brings its own count; in a filtered stack too. */
static void test_weights(void **state)
{
	struct collector *c = create((struct collect_options){0});
	struct stack_record *r = whole_record(HASH);

	r->weight = 6;
	send(c, r);
	check_path(c, 6, names, FN_MAX);
	send_once(c, r);
	counted_node(c, 12);
	collector_count(c, 0, HASH, UINT32_MAX, 0);
	counted_node(c, 12ull + UINT32_MAX);
	collector_destroy(c);
	c = create((struct collect_options){.exclude = "leaf"});
	r = whole_record(HASH);
	r->weight = 6;
	send_once(c, r);
	assert_int_equal(collector_stats(c)->filtered, 6);
	collector_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_stack),
	        cmocka_unit_test(test_chunks),
	        cmocka_unit_test(test_interleaved),
	        cmocka_unit_test(test_missing_chunk),
	        cmocka_unit_test(test_too_deep),
	        cmocka_unit_test(test_sizes),
	        cmocka_unit_test(test_epochs),
	        cmocka_unit_test(test_weights),
	        cmocka_unit_test(test_more),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
