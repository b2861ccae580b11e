/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded walks give the frames that they gave, and no false ones when any of their reads fails. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "walks.h"

static const char *path;
static struct walks_result now;

static int load(void **state)
{
	struct walks *w = walks_load(path);

	walks_place(w);
	*state = w;
	return 0;
}

static int unload(void **state)
{
	walks_free(*state);
	return 0;
}

static void fail_walk(const struct walk_record *r, u32 i, const char *what)
{
	u32 at = 0;

	while (at < r->nframes && at < now.nframes && r->frames[at].where == now.frames[at].where &&
	        r->frames[at].detail == now.frames[at].detail)
		at++;
	fail_msg("walk %u: %s: stop %u, was %u; %u frames, were %u; the first %u are the same, then %lx %lx, was %lx "
	         "%lx",
	        i, what, now.stop, r->stop, now.nframes, r->nframes, at, now.frames[at].where, now.frames[at].detail,
	        r->frames[at].where, r->frames[at].detail);
}

static void test_frames(void **state)
{
	const struct walks *w = *state;
	u32 complete = 0;

	for (u32 i = 0; i < w->nwalks; i++) {
		walks_again(w, i, WALKS_NONE, &now);
		if (now.unknown)
			fail_walk(&w->walk[i], i, "reads what it did not read before");
		if (!walks_same(&w->walk[i], &now))
			fail_walk(&w->walk[i], i, "other frames");
		complete += now.stop == STOP_ROOT;
	}
	assert_true(complete >= 10);
}

/* The same function: a read that failed may leave its position unknown, or approximate, which the frame says. */
static bool is_alike(const struct frame *a, const struct frame *b)
{
	return frame_kind(a) == frame_kind(b) && frame_runtime(a) == frame_runtime(b) &&
	       (frame_kind(a) == FRAME_SCRIPT || (a->where == b->where && a->detail == b->detail));
}

/* docs/limits.md: where words of the VM are absent, a stack without its frames may count as complete. */
static bool has_lost_lua(const struct walk_record *r)
{
	s32 lost = 0;

	for (u32 i = 0; i < r->nframes; i++)
		lost += frame_runtime(&r->frames[i]) == RUNTIME_LUA || frame_runtime(&r->frames[i]) == RUNTIME_LUAJIT;
	for (u32 i = 0; i < now.nframes; i++)
		lost -= frame_runtime(&now.frames[i]) == RUNTIME_LUA || frame_runtime(&now.frames[i]) == RUNTIME_LUAJIT;
	return lost > 0;
}

/* A walk that says that it is complete has all frames. What is marked as a guess claims nothing. */
static bool is_false(const struct walk_record *r)
{
	if (now.stop != STOP_ROOT || has_lost_lua(r))
		return false;
	for (u32 i = 0; i < now.nframes; i++)
		if (frame_flags(&now.frames[i]) & FRAME_GUESS)
			return false;
	if (now.nframes != r->nframes)
		return true;
	for (u32 i = 0; i < now.nframes; i++)
		if (!is_alike(&r->frames[i], &now.frames[i]))
			return true;
	return false;
}

static void test_failed_reads(void **state)
{
	const struct walks *w = *state;

	for (u32 i = 0; i < w->nwalks; i++) {
		u32 reads = 1;

		for (u32 failing = 0; failing < reads; failing++) {
			walks_again(w, i, failing, &now);
			reads = now.reads;
			if (is_false(&w->walk[i]))
				fail_walk(&w->walk[i], i, "complete without all frames, because a read failed");
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_frames, load, unload),
	        cmocka_unit_test_setup_teardown(test_failed_reads, load, unload),
	};

	if (argc != 2)
		return 2;
	path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
