/* SPDX-License-Identifier: Apache-2.0 */
/* Expansion of traces that are whole, replaced, flushed or hostile; test_luajit_traces.c compares those of live VMs. */
#include "unit.h"

#include "trace_fake.h"

struct expansion {
	struct trace_fake *fake;
	struct luajit_traces *traces;
	struct frame ret[RUNTIME_EXPAND_MAX];
	u32 n, eaten;
};

static struct expansion *create(bool gc64)
{
	struct expansion *e = calloc(1, sizeof(*e));

	e->fake = trace_fake_create(gc64);
	e->traces = luajit_traces_create(&e->fake->image);
	return e;
}

static void destroy(struct expansion *e)
{
	luajit_traces_destroy(e->traces);
	free(e->fake);
	free(e);
}

static void expand(struct expansion *e, u32 offset, u32 hint, u32 flags)
{
	struct frame frames[3];

	fake_frames(e->fake, e->fake->code + offset, hint, frames);
	e->n = luajit_expand(e->traces, &e->fake->memory, frames, 3, flags, e->ret, RUNTIME_EXPAND_MAX, &e->eaten);
}

/* Frame i is the function, at that position, inlined or not. */
static void assert_frame(const struct expansion *e, u32 i, u32 function, u32 pos)
{
	u32 flags = FRAME_APPROX | (i + 1 < e->n ? FRAME_INLINED : 0), call;

	memcpy(&call, e->fake->bytes + (fake_bytecode(e->fake, 0) + 4 - FAKE_START), sizeof(call));
	assert_int_equal(frame_addr(&e->ret[i]), e->fake->proto[function]);
	assert_int_equal(frame_flags(&e->ret[i]), flags);
	assert_int_equal(
	        e->ret[i].detail, luajit_detail(LUAJIT_LUA, pos, luajit_cookie(LUAJIT_OP_PATCHED, call)) | LUAJIT_JIT);
}

static void check_chain(bool gc64)
{
	struct expansion *e = create(gc64);

	expand(e, 130, 1, 0);
	assert_int_equal(e->eaten, 3);
	assert_int_equal(e->n, 3);
	assert_frame(e, 0, 2, 6);
	assert_frame(e, 1, 1, 2);
	assert_frame(e, 2, 0, 2);
	expand(e, 70, 1, 0);
	assert_int_equal(e->n, 2);
	assert_frame(e, 0, 1, 5);
	assert_frame(e, 1, 0, 2);
	expand(e, 200, 1, 0);
	assert_int_equal(e->n, 1);
	assert_frame(e, 0, 0, 7);
	destroy(e);
}

static void test_chain(void **state)
{
	check_chain(true);
	check_chain(false);
}

/* Nearer to the next snapshot: what is right before it. */
static void test_ahead(void **state)
{
	struct expansion *e = create(true);

	expand(e, 120, 1, 0);
	assert_int_equal(e->n, 3);
	assert_frame(e, 0, 2, 5);
	destroy(e);
}

static void test_merge(void **state)
{
	struct expansion *e = create(true);

	expand(e, 130, 1, EXPAND_MERGE);
	assert_int_equal(e->n, 1);
	assert_frame(e, 0, 0, 2);
	destroy(e);
}

static void test_numbers(void **state)
{
	struct expansion *e = create(true);

	expand(e, 130, 0, EXPAND_TRACES);
	assert_int_equal(e->n, 4);
	assert_int_equal(luajit_function(&e->ret[0]), LUAJIT_MCODE);
	assert_int_equal(luajit_pos(&e->ret[0]), 1);
	assert_int_equal(e->ret[0].detail >> LUAJIT_COOKIE_BITS, 1);
	assert_int_equal(frame_addr(&e->ret[0]), e->fake->proto[0]);
	assert_frame(e, 1, 2, 6);
	destroy(e);
}

/* The hint may be wrong, or none. */
static void test_hint(void **state)
{
	const u32 hints[] = {0, 1, 2, 3, 4, 60000};

	for (u32 i = 0; i < sizeof(hints) / sizeof(*hints); i++) {
		struct expansion *e = create(false);

		expand(e, 130, hints[i], 0);
		assert_int_equal(e->n, 3);
		destroy(e);
	}
}

/* A copy is enough for a trace that was flushed since; a trace that was not seen leaves the base alone. */
static void test_flushed(void **state)
{
	struct expansion *e = create(true);

	expand(e, 130, 1, 0);
	fake_put(e->fake, e->fake->array + 8, 0, 8);
	fake_put(e->fake, e->fake->trace, 0, 64);
	expand(e, 134, 1, 0);
	assert_int_equal(e->n, 3);
	destroy(e);
	e = create(true);
	fake_put(e->fake, e->fake->array + 8, 0, 8);
	expand(e, 130, 1, 0);
	assert_int_equal(e->eaten, 3);
	assert_int_equal(e->n, 1);
	assert_int_equal(luajit_pos(&e->ret[0]), LUAJIT_NO_POS);
	destroy(e);
}

/* Another trace in the same place has other code. */
static void test_replaced(void **state)
{
	struct expansion *e = create(true);
	struct trace_fake *f = e->fake;

	expand(e, 130, 1, 0);
	memset(f->bytes + (f->code - FAKE_START), 0xcc, FAKE_CODE);
	f->nsnaps = 0;
	fake_snapshot(f, 0, 1, 9);
	fake_trace(f);
	expand(e, 134, 1, 0);
	assert_int_equal(e->n, 3); /* its frames are of the old one */
	memset(f->bytes + (f->code - FAKE_START), 0x90, FAKE_CODE);
	luajit_traces_destroy(e->traces);
	e->traces = luajit_traces_create(&f->image);
	expand(e, 134, 1, 0);
	assert_int_equal(e->n, 2);
	assert_frame(e, 0, 1, 9);
	destroy(e);
}

/* Found by the copy: not one read for the trace, only for the functions. */
static void test_reads(void **state)
{
	struct expansion *e = create(true);
	u32 first, second;

	e->fake->reads = 0;
	expand(e, 130, 1, 0);
	first = e->fake->reads;
	e->fake->reads = 0;
	expand(e, 134, 1, 0);
	second = e->fake->reads;
	assert_true(second <= 8);
	assert_true(second < first);
	destroy(e);
}

/* Functions that are no constants are found by their bytecode: the prototype stands before it. */
static void check_unmentioned(bool gc64)
{
	struct expansion *e = create(gc64);

	for (u32 i = 0; i < 3; i++)
		fake_put(e->fake, e->fake->function[i] + 9, 0, 1);
	expand(e, 130, 1, 0);
	assert_int_equal(e->n, 3);
	assert_frame(e, 0, 2, 6);
	assert_frame(e, 1, 1, 2);
	assert_frame(e, 2, 0, 2);
	destroy(e);
}

static void test_unmentioned(void **state)
{
	check_unmentioned(true);
	check_unmentioned(false);
}

/* Heads that lie: nothing is read behind what is there, and the base stays. */
static void test_lies(void **state)
{
	const struct {
		u32 at, size;
		u64 value;
	} lies[] = {
	        {10, 2, 0},
	        {10, 2, 0xffff},
	        {24, 4, 0},
	        {24, 4, 0xffffffff},
	        {24, 4, LUAJIT_REF_BIAS + 1},
	        {24, 4, 1},
	        {28, 4, 0},
	        {28, 4, 0xffffffff},
	        {28, 4, 1u << 20},
	        {64, 4, 0},
	        {64, 4, 0xffffffff},
	        {16, 8, 0},
	        {32, 8, ~0ull},
	        {40, 8, 1},
	        {72, 8, ~0ull - 8},
	        {80, 2, 0},
	        {9, 1, 4},
	};

	for (u32 i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct expansion *e = create(true);

		fake_put(e->fake, e->fake->trace + lies[i].at, lies[i].value, lies[i].size);
		expand(e, 130, 1, 0);
		assert_int_equal(e->eaten, 3);
		assert_int_equal(e->n, 1);
		assert_int_equal(frame_addr(&e->ret[0]), e->fake->proto[0]);
		destroy(e);
	}
}

/* Any word of a snapshot's entries, position and links, or of its head: outside of the map, references that are no
 * constants. */
static void check_damage(bool gc64, u32 at, u32 word)
{
	struct expansion *e = create(gc64);
	struct trace_fake *f = e->fake;
	u64 addr = at < f->nmap ? f->map + 4ull * at : f->snaps + 4ull * (at - f->nmap);

	fake_put(f, addr, word, 4);
	expand(e, 130, 1, 0);
	assert_int_equal(e->eaten, 3);
	assert_in_range(e->n, 1, 32);
	assert_false(frame_flags(&e->ret[e->n - 1]) & FRAME_INLINED);
	destroy(e);
}

static void test_bad_snapshots(void **state)
{
	const u32 words[] = {0, 0xffffffff, 0x7fffffff, 0x00010000, 0x06018000, 0x0b01ffff};

	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++) {
		for (u32 at = 0; at < 32; at++) {
			check_damage(false, at, words[i]);
			check_damage(true, at, words[i]);
		}
	}
}

/* Links that lead nowhere, to themselves, upwards, below the base, or outside of memory. */
static void test_bad_links(void **state)
{
	const u64 links[] = {
	        0, 2, 3, 6, 7, 1, 5, 8, 4, ~0ull, 0xfff8 | 3, 0xfff8 | 2, 0x7fffffff0000ull, 1 << 3 | 3, 11 << 3 | 6};

	for (u32 i = 0; i < sizeof(links) / sizeof(*links); i++) {
		struct expansion *e = create(true);

		/* links are every other constant of snapshot 2, which made the last but none */
		for (u32 ref = e->fake->nk; ref < LUAJIT_REF_BIAS; ref += 2) {
			u64 head;

			memcpy(&head, e->fake->bytes + (e->fake->ir + 8ull * ref - FAKE_START), 8);
			if (head >> 40 == 2)
				fake_put(e->fake, e->fake->ir + 8ull * ref + 8, links[i], 8);
		}
		expand(e, 130, 1, 0);
		assert_int_equal(e->eaten, 3);
		assert_in_range(e->n, 1, 3);
		assert_int_equal(frame_addr(&e->ret[e->n - 1]), e->fake->proto[0]);
		assert_int_equal(luajit_pos(&e->ret[e->n - 1]), LUAJIT_NO_POS);
		destroy(e);
	}
}

/* Frames of another VM's, or that no walker pushes, stay as they are. */
static void test_foreign(void **state)
{
	struct expansion *e = create(true);
	struct frame frames[3];

	fake_frames(e->fake, e->fake->code, 1, frames);
	frames[0].where += 8;
	assert_int_equal(
	        luajit_expand(e->traces, &e->fake->memory, frames, 3, 0, e->ret, RUNTIME_EXPAND_MAX, &e->eaten), 0);
	assert_int_equal(e->eaten, 0);
	fake_frames(e->fake, e->fake->code, 1, frames);
	assert_int_equal(
	        luajit_expand(e->traces, &e->fake->memory, frames + 1, 2, 0, e->ret, RUNTIME_EXPAND_MAX, &e->eaten), 0);
	assert_int_equal(e->eaten, 0);
	assert_int_equal(
	        luajit_expand(e->traces, &e->fake->memory, frames, 2, 0, e->ret, RUNTIME_EXPAND_MAX, &e->eaten), 0);
	assert_int_equal(e->eaten, 2);
	destroy(e);
}

/* A build that does not keep places: guards give them, by the stubs of their exits. */
static void test_places(void **state)
{
	struct expansion *e = create(true);
	struct trace_fake *f = e->fake;
	u64 stubs = fake_alloc(f, 32);

	f->layout.snap_mcofs.size = 0;
	for (u32 i = 0; i < 4; i++)
		fake_put(f, stubs + 4ull * i, 0x00eb006a | i << 8, 4);
	for (u32 i = 0; i < 4; i++) { /* jne to stub i at 60, 120, 180, 240 */
		u64 at = f->code + 60 * (i + 1);

		fake_put(f, at, 0x850f, 2);
		fake_put(f, at + 2, stubs + 4ull * i - (at + 6), 4);
	}
	expand(e, 170, 1, 0);
	assert_int_equal(e->n, 3);
	assert_frame(e, 0, 2, 6);
	expand(e, 20, 1, 0);
	assert_int_equal(e->n, 1);
	assert_frame(e, 0, 0, 4);
	destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_chain),
	        cmocka_unit_test(test_ahead),
	        cmocka_unit_test(test_merge),
	        cmocka_unit_test(test_numbers),
	        cmocka_unit_test(test_hint),
	        cmocka_unit_test(test_flushed),
	        cmocka_unit_test(test_replaced),
	        cmocka_unit_test(test_reads),
	        cmocka_unit_test(test_unmentioned),
	        cmocka_unit_test(test_lies),
	        cmocka_unit_test(test_bad_snapshots),
	        cmocka_unit_test(test_bad_links),
	        cmocka_unit_test(test_foreign),
	        cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
