/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that are walked later: this program's own, copied as BPF would, against backtrace(), after they were
 * overwritten. */
#include "deferred_sample.h"

/* A stack that was cut at once. */
static void hold(struct deferred *l)
{
	struct stack_record *r = calloc(1, sizeof(*r));
	bool held;

	*r = (struct stack_record){
	        .type = RECORD_STACK, .hash = 77, .instance = NUMBER, .weight = 1, .stop = STOP_NO_PROCESS, .last = 1};
	assert_null(deferred_hold(l, r, r->frame, 0, &held));
	assert_true(held);
	free(r);
}

/* A stack that was cut at once, its copy, and what the first walk saw behind its guess, if there is one. */
static struct deferred *with_sample(u64 pc, u64 sp)
{
	struct deferred_sink sink = {.find = find, .stack = keep};
	struct stack_record *r = calloc(1, sizeof(*r));
	struct deferred *l = deferred_create(&sink);
	bool held;

	memset(&sample, 0, sizeof(sample));
	memset(&seen, 0, sizeof(seen));
	call(here.by_wide ? DEPTH / 2 : DEPTH); /* a copy has few pages, and a sanitizer's frames are larger */
	overwrite();
	if (here.by_jit) {
		memcpy(&sample.middle_pc, sample.stack + (sample.middle_sp - sample.deferred.reg[REG_SP]), 8);
		sample.middle_sp += 8;
	}
	sample.deferred.type = RECORD_DEFERRED;
	sample.deferred.hash = 77;
	sample.deferred.valid = (1u << ARCH_NREGS) - 1;
	sample.deferred.leaf = 1;
	sample.deferred.stop = STOP_NO_PROCESS;
	sample.deferred.pc = pc ? sample.middle_pc : 0;
	sample.deferred.sp = pc ? sample.middle_sp + sp : 0;
	send_pieces(l, sample.size);
	*r = (struct stack_record){
	        .type = RECORD_STACK, .hash = 77, .instance = NUMBER, .weight = 2, .stop = STOP_ROOT, .last = 1};
	r->nframes = pc ? 1 : 0;
	r->frame[0].where = frame_where(FRAME_NATIVE, RUNTIME_NATIVE, FRAME_RETADDR, MARK);
	assert_null(deferred_hold(l, r, r->frame, r->nframes, &held));
	assert_true(held);
	free(r);
	return l;
}

static void whole_stack(void **state)
{
	struct deferred *l = with_sample(0, 0);

	here.found = here.known;
	assert_null(deferred_settle(l, now_ns(), false));
	assert_int_equal(seen.times, 1);
	assert_int_equal(seen.stop, STOP_ROOT);
	assert_int_equal(seen.was, STOP_NO_PROCESS);
	assert_true(sample.callers > DEPTH);
	expect_callers((u32)sample.callers - 1 - own_frames());
	deferred_destroy(l);
}

/* It was sent behind the moment that is now, as everybody sees it who looked at the clock before. */
static void early_clock(void **state)
{
	u64 before = now_ns();
	struct deferred *l = with_sample(0, 0);

	here.found = here.gone;
	here.gone->generation++;
	assert_null(deferred_settle(l, before, false));
	assert_int_equal(seen.times, 0);
	deferred_destroy(l);
}

/* Pages in the middle of the stack that were not touched yet are not in the copy. */
static void absent_pages(void **state)
{
	struct deferred *l;

	here.by_wide = true;
	l = with_sample(0, 0);
	here.by_wide = false;
	here.found = here.known;
	assert_null(deferred_settle(l, now_ns(), false));
	assert_int_equal(seen.stop, STOP_ROOT);
	expect_callers((u32)sample.callers - 1 - own_frames());
	deferred_destroy(l);
}

/* Nothing is taken from an absent page: what is in memory there now is of another moment. */
static void absent_frame(void **state)
{
	struct deferred *l;

	here.by_wide = true;
	l = with_sample(0, 0);
	deferred_destroy(l);
	l = deferred_create(&(struct deferred_sink){.find = find, .stack = keep});
	sample.room = (sample.middle_sp - 8) & ~(u64)(DEFERRED_PIECE - 1);
	sample.room_end = sample.room + DEFERRED_PIECE;
	here.by_wide = false;
	here.found = here.known;
	send_pieces(l, sample.size);
	hold(l);
	assert_null(deferred_settle(l, now_ns(), true));
	assert_int_equal(seen.stop, STOP_NO_PROCESS);
	expect_callers(1);
	deferred_destroy(l);
}

/* A forked child that was gone before anybody looked has the files of its parent. */
static void forked_and_gone(void **state)
{
	struct deferred *l = with_sample(0, 0);

	here.found = here.child;
	assert_null(deferred_settle(l, now_ns(), false));
	assert_int_equal(seen.stop, STOP_ROOT);
	expect_callers((u32)sample.callers - 1 - own_frames());
	deferred_destroy(l);
}

/* As long as the process is not known the stack waits; then it is handed out as it was. */
static void waits(void **state)
{
	struct deferred *l = with_sample(0, 0);

	here.found = here.gone;
	for (u32 i = 0; i < 3; i++) {
		here.gone->generation++;
		assert_null(deferred_settle(l, now_ns(), false));
		assert_int_equal(seen.times, 0);
	}
	assert_null(deferred_settle(l, now_ns(), true));
	assert_int_equal(seen.times, 1);
	assert_int_equal(seen.stop, STOP_NO_PROCESS);
	assert_null(deferred_settle(l, now_ns(), true));
	assert_int_equal(seen.times, 1);
	deferred_destroy(l);
}

static void waits_until_known(void **state)
{
	struct deferred *l = with_sample(0, 0);

	here.found = here.gone;
	assert_null(deferred_settle(l, now_ns(), false));
	here.found = here.known;
	assert_null(deferred_settle(l, now_ns(), false));
	assert_int_equal(seen.times, 1);
	assert_int_equal(seen.stop, STOP_ROOT);
	deferred_destroy(l);
}

/* What the first walk saw behind a guess counts if the second one comes there. */
static void proved(void **state)
{
	struct deferred *l = with_sample(1, 0);
	u32 before;

	here.found = here.known;
	assert_null(deferred_settle(l, now_ns(), false));
	assert_int_equal(seen.stop, STOP_ROOT);
	assert_true(seen.n > 2);
	before = seen.n - 1;
	assert_int_equal(frame_addr(&seen.frame[before]), MARK);
	assert_int_equal(frame_flags(&seen.frame[before]), FRAME_RETADDR);
	expect_callers(before - 1);
	assert_int_equal((u64)sample.caller[before + own_frames()], sample.middle_pc);
	deferred_destroy(l);
}

/* It comes there by a guess of its own: that proves nothing. */
static void guessed_again(void **state)
{
	struct deferred *l;
	u32 i = 0;

	here.by_jit = true;
	l = with_sample(1, 0);
	here.by_jit = false;
	here.found = here.known;
	assert_null(deferred_settle(l, now_ns(), false));
	assert_int_equal(seen.stop, STOP_ROOT);
	while (i < seen.n && frame_addr(&seen.frame[i]) != MARK)
		i++;
	assert_int_equal(i + 1, seen.n);
	assert_int_equal(frame_flags(&seen.frame[i]), FRAME_RETADDR | FRAME_GUESS);
	deferred_destroy(l);
}

/* Frames before the unknown code were guessed and thrown away: it is no deferred stack any more. */
static void taken_back(void **state)
{
	struct deferred *l = deferred_create(&(struct deferred_sink){.find = find, .stack = keep});
	struct deferred_record *r = calloc(1, sizeof(*r));
	struct stack_record *stack = calloc(1, sizeof(*stack));
	bool held;

	*r = (struct deferred_record){.hash = 5, .size = 8, .addr = 4096, .before = 2};
	assert_null(deferred_piece(l, r, sizeof(*r)));
	stack->hash = 5;
	assert_null(deferred_hold(l, stack, stack->frame, 1, &held));
	assert_false(held);
	assert_false(deferred_add(l, 5, 1, 0));
	free(stack);
	free(r);
	deferred_destroy(l);
}

static void wrong_guess(void **state)
{
	struct deferred *l = with_sample(1, 8);

	here.found = here.known;
	assert_null(deferred_settle(l, now_ns(), false));
	assert_int_equal(seen.stop, STOP_ROOT);
	for (u32 i = 0; i < seen.n; i++)
		assert_int_not_equal(frame_addr(&seen.frame[i]), MARK);
	expect_callers((u32)sample.callers - 1 - own_frames());
	deferred_destroy(l);
}

/* The stack above the copy is another one by now: nothing is taken from there. */
static void short_copy(void **state)
{
	struct deferred *l = with_sample(0, 0),
	                *cut = deferred_create(&(struct deferred_sink){.find = find, .stack = keep});

	deferred_destroy(l);
	here.found = here.known;
	send_pieces(cut, (u32)((sample.middle_sp & ~4095ull) - sample.deferred.reg[REG_SP]));
	hold(cut);
	assert_null(deferred_settle(cut, now_ns(), true));
	assert_int_equal(seen.stop, STOP_NO_PROCESS);
	expect_callers(1);
	deferred_destroy(cut);
}

/* Pieces that do not fit, a stack that never comes, one that belongs to none. */
static void broken(void **state)
{
	struct deferred *l = deferred_create(&(struct deferred_sink){.find = find, .stack = keep});
	struct deferred_record *r = calloc(1, sizeof(*r));
	struct stack_record *stack = calloc(1, sizeof(*stack));
	bool held;

	memset(&seen, 0, sizeof(seen));
	*r = (struct deferred_record){.type = RECORD_DEFERRED, .hash = 5, .size = DEFERRED_PIECE + 1, .addr = 4096};
	assert_null(deferred_piece(l, r, sizeof(*r)));
	r->size = DEFERRED_PIECE;
	assert_null(deferred_piece(l, r, offsetof(struct deferred_record, byte) + 8));
	stack->hash = 5;
	stack->weight = 1;
	assert_null(deferred_hold(l, stack, stack->frame, 0, &held));
	assert_false(held);
	assert_null(deferred_piece(l, r, sizeof(*r)));
	r->addr = 12345;
	assert_null(deferred_piece(l, r, sizeof(*r)));
	stack->hash = 6;
	assert_null(deferred_hold(l, stack, stack->frame, 0, &held));
	assert_false(held);
	assert_null(deferred_settle(l, now_ns(), true));
	assert_int_equal(seen.times, 0);
	free(stack);
	free(r);
	deferred_destroy(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(whole_stack),
	        cmocka_unit_test(early_clock),
	        cmocka_unit_test(absent_pages),
	        cmocka_unit_test(absent_frame),
	        cmocka_unit_test(forked_and_gone),
	        cmocka_unit_test(waits),
	        cmocka_unit_test(waits_until_known),
	        cmocka_unit_test(proved),
	        cmocka_unit_test(guessed_again),
	        cmocka_unit_test(taken_back),
	        cmocka_unit_test(wrong_guess),
	        cmocka_unit_test(short_copy),
	        cmocka_unit_test(broken),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
