/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that are walked later, whose first walk went on where a runtime said. */
#include "deferred_sample.h"

/* Makes libc's code a runtime's that no deferred walk goes through, or libc's again. */
static void claim_libc(u8 runtime)
{
	const struct process_entry *entry = &here.known->entry;
	const struct mapping *libc = process_mapping(here.known, (u64)lfind);
	struct region *r = arena_at(here.arena, entry->regions, entry->nregions * sizeof(*r));

	for (u32 i = 0; i < entry->nregions; i++)
		if (r[i].start >= libc->start && r[i].end <= libc->end)
			r[i].runtime = runtime;
}

/* A sample below lfind(), where the first walk resumed, with the stack pointer off by this. */
static void settle_resumed(u32 stop, u64 off, bool second_gap)
{
	struct deferred *l = deferred_create(&(struct deferred_sink){.find = find, .stack = keep});
	struct stack_record *r = calloc(1, sizeof(*r));
	bool held;

	memset(&sample, 0, sizeof(sample));
	memset(&seen, 0, sizeof(seen));
	here.by_lfind = true;
	call(DEPTH);
	here.by_lfind = false;
	overwrite();
	sample.deferred.type = RECORD_DEFERRED;
	sample.deferred.hash = 77;
	sample.deferred.valid = (1u << ARCH_NREGS) - 1;
	sample.deferred.leaf = sample.deferred.resume = 1;
	sample.deferred.stop = STOP_NO_REGION;
	sample.deferred.pc = (u64)lfind + 1;
	sample.deferred.sp = sample.middle_sp + off;
	send_pieces(l, sample.size);
	*r = (struct stack_record){
	        .type = RECORD_STACK, .hash = 77, .instance = NUMBER, .weight = 1, .stop = (u16)stop, .last = 1};
	r->frame[0] = (struct frame){frame_where(FRAME_GAP, RUNTIME_NATIVE, 0, 0), STOP_NO_REGION};
	r->frame[1] = (struct frame){frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0, MARK), 0};
	r->frame[2] = (struct frame){frame_where(FRAME_NATIVE, RUNTIME_PYTHON, FRAME_RETADDR | FRAME_VM, MARK), 0};
	r->frame[3] = r->frame[0];
	r->nframes = second_gap ? 4 : 3;
	assert_null(deferred_hold(l, r, r->frame, r->nframes, &held));
	assert_true(held);
	here.found = here.known;
	claim_libc(RUNTIME_PYTHON);
	assert_null(deferred_settle(l, now_ns(), true));
	claim_libc(RUNTIME_NATIVE);
	assert_int_equal(seen.times, 1);
	deferred_destroy(l);
	free(r);
}

/* Where a runtime said that the first walk goes on nothing is missing if the second one comes there. */
static void resumed(void **state)
{
	u32 script = 0;

	settle_resumed(STOP_RESUMED, 0, false);
	assert_int_equal(seen.stop, STOP_ROOT);
	while (script < seen.n && frame_kind(&seen.frame[script]) == FRAME_NATIVE)
		script++;
	assert_int_equal(seen.n, script + 2);
	expect_callers(script - 1);
	assert_int_equal(frame_kind(&seen.frame[script]), FRAME_SCRIPT);
	/* at the call, not anywhere in that code */
	assert_int_equal(frame_addr(&seen.frame[script + 1]), (u64)sample.caller[script + own_frames()]);
	assert_int_equal(frame_flags(&seen.frame[script + 1]), FRAME_RETADDR | FRAME_VM);
}

/* What is missing further out, or for another reason, still is. */
static void resumed_in_part(void **state)
{
	settle_resumed(STOP_RESUMED, 0, true);
	assert_int_equal(seen.stop, STOP_RESUMED);
	assert_int_equal(frame_kind(&seen.frame[seen.n - 1]), FRAME_GAP);
	assert_int_equal(frame_kind(&seen.frame[0]), FRAME_NATIVE);
	settle_resumed(STOP_VM_BROKEN, 0, false);
	assert_int_equal(seen.stop, STOP_VM_BROKEN);
}

/* The second walk comes to another frame of that code: what is between is not known. */
static void resumed_elsewhere(void **state)
{
	settle_resumed(STOP_RESUMED, 16, false);
	assert_int_equal(seen.stop, STOP_RESUMED);
	assert_int_equal(seen.n, 3);
	assert_int_equal(frame_kind(&seen.frame[0]), FRAME_GAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(resumed),
	        cmocka_unit_test(resumed_in_part),
	        cmocka_unit_test(resumed_elsewhere),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
