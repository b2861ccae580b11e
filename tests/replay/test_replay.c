/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded walks give the frames that they gave, and no false ones when any of their reads fails. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

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
	fail_msg("walk %u: %s: stop %u, was %u; %u frames, were %u; the first %u are the same", i, what, now.stop,
	        r->stop, now.nframes, r->nframes, at);
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

/* A walk that says that it is complete has all frames. What is marked as a guess claims nothing. */
static bool is_false(const struct walk_record *r)
{
	if (now.stop != STOP_ROOT || walks_same(r, &now))
		return false;
	for (u32 i = 0; i < now.nframes; i++)
		if (frame_flags(&now.frames[i]) & FRAME_GUESS)
			return false;
	return true;
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
