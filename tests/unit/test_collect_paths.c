/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector makes of a stack: names, marks, filters, and what options leave out or add. */
#include "collect_fake.h"

static void test_unknown_process(void **state)
{
	struct collector *c = create((struct collect_options){0});
	struct stack_record *r = whole_record(HASH);

	r->instance = KNOWN + 1;
	send_once(c, r);
	collector_count(c, 0, HASH, 2, 0);
	check_path(c, 2, (const char *const[]){"[gone]", "[gone]", "[gone]", "[gone]"}, 4);
	assert_int_equal(collector_stats(c)->unresolved, 8);
	collector_destroy(c);
}

/* Frames of an unknown kind, of a runtime or module that does not exist, and outside all mappings. */
static void test_unknown_frames(void **state)
{
	struct collector *c = create((struct collect_options){0});
	struct stack_record *r = new_record(HASH);

	r->nframes = 4;
	r->frame[0] = (struct frame){0};
	r->frame[1].where = frame_where(15, 15, 0xff, 0x1000);
	r->frame[2].where = frame_where(FRAME_SCRIPT, 9, 0, 0x1000);
	r->frame[3] = (struct frame){frame_where(FRAME_NATIVE, 0, 0, 0x1000), 1u << 30};
	send_once(c, r);
	collector_count(c, 0, HASH, 1, 0);
	check_path(c, 1, (const char *const[]){"[gone]", "[gone]", "[gone]", "[unmapped]"}, 4);
	assert_int_equal(collector_stats(c)->unresolved, 4);
	collector_destroy(c);
}

/* Anonymous code is named by the mappings of its own process. */
static void test_anonymous_code(void **state)
{
	struct mapping mapping = {.start = 0x1000, .end = 0x2000, .anonymous = true, .name = "[anon:jit]"};
	struct process other = {.number = KNOWN + 1, .modules = here.modules, .maps.nlines = 1, .mappings = &mapping};
	struct frame f = {.where = frame_where(FRAME_NATIVE, 0, 0, 0x1234)};
	struct names_options options = {0};
	struct profile *profile;
	struct names *named_by;
	struct named in_gone, in_other;

	assert_null(profile_create(&profile));
	assert_null(names_create(profile, here.modules, &options, &named_by));
	assert_null(names_frame(named_by, here.process, &f, 0, 1, &in_gone));
	assert_null(names_frame(named_by, &other, &f, 0, 1, &in_other));
	assert_string_equal(profile->functions[in_gone.function].name, "[unmapped]");
	assert_string_equal(profile->functions[in_other.function].name, "[anon:jit]");
	names_destroy(named_by);
	profile_destroy(profile);
}

static void test_truncated(void **state)
{
	for (u32 stop = 0; stop <= STOP_MAX; stop++) {
		static const char *const words[] = {
#define X(id, word, text) "[truncated: " word "]",
		        STOP_REASONS(X)
#undef X
		                "[truncated: ?]"};
		const char *path[FN_MAX + 1] = {names[0], names[1], names[2], names[3], words[stop]};
		struct collector *c = create((struct collect_options){0});
		struct stack_record *r = whole_record(HASH);

		r->stop = (u16)(stop == STOP_MAX ? 65535 : stop);
		send_once(c, r);
		collector_count(c, 0, HASH, 1, 0);
		check_path(
		        c, 1, path, FN_MAX + (stop != STOP_ROOT && stop != STOP_ROOT_RUNTIME && stop != STOP_RESUMED));
		assert_int_equal(collector_stats(c)->frames, FN_MAX);
		collector_destroy(c);
	}
}

/* What a guess led to is dropped from there on if the walk ends where no code is; other ends do not say that. */
static void test_wrong_guess(void **state)
{
	static const struct {
		u16 stop;
		u32 guess; /* which frame; FN_MAX: none */
		u32 left;
	} cases[] = {{STOP_BAD_RETADDR, 1, 1}, {STOP_BAD_RETADDR, 2, 2}, {STOP_NO_PROGRESS, 3, 3},
	        {STOP_DEPTH, 1, FN_MAX}, {STOP_ROOT, 1, FN_MAX}, {STOP_BAD_RETADDR, FN_MAX, FN_MAX},
	        {STOP_BAD_RETADDR, 0, FN_MAX}};

	for (u32 i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct collector *c = create((struct collect_options){0});
		struct stack_record *r = whole_record(HASH);
		u32 stop = cases[i].stop;
		const char *path[FN_MAX + 1] = {names[0], names[1], names[2], names[3]};

		r->stop = (u16)stop;
		if (cases[i].guess < FN_MAX)
			r->frame[cases[i].guess].where |= (u64)FRAME_GUESS << FRAME_ADDR_BITS;
		if (stop != STOP_ROOT)
			path[cases[i].left] = stop == STOP_DEPTH         ? "[truncated: depth]"
			                      : stop == STOP_NO_PROGRESS ? "[truncated: no_progress]"
			                                                 : "[truncated: bad_retaddr]";
		send_once(c, r);
		collector_count(c, 0, HASH, 1, 0);
		check_path(c, 1, path, cases[i].left + (stop != STOP_ROOT));
		collector_destroy(c);
	}
}

static void test_threads(void **state)
{
	const char *path[] = {
	        names[0], names[1], names[2], names[3], "[truncated: depth]", "sixteen letters! (tid 43)"};
	struct collector *c = create((struct collect_options){.threads = true});
	struct stack_record *r = whole_record(HASH);
	const struct profile *p;
	u32 node;

	r->stop = STOP_DEPTH;
	memcpy(r->comm, "sixteen letters!", COMM_LEN); /* no terminator */
	send_once(c, r);
	collector_count(c, 0, HASH, 1, 0);
	check_path(c, 1, path, 6);
	p = collector_profile(c);
	for (node = counted_node(c, 1); p->nodes[node].parent; node = p->nodes[node].parent)
		;
	assert_int_equal(p->functions[p->nodes[node].function].kind, KIND_THREAD);
	collector_destroy(c);
}

static void check_filter(const char *include, const char *exclude, bool kept)
{
	struct collector *c = create((struct collect_options){.include = include, .exclude = exclude});

	send_once(c, whole_record(HASH));
	collector_count(c, 0, HASH, 4, 0);
	assert_int_equal(collector_stats(c)->counted, kept ? 4 : 0);
	assert_int_equal(collector_stats(c)->filtered, kept ? 0 : 4);
	assert_int_equal(collector_stats(c)->unmatched, 0);
	collector_destroy(c);
}

static void test_filters(void **state)
{
	check_filter("^inner_", NULL, true);
	check_filter("^nner_", NULL, false);
	check_filter("absent|root_f.*n$", NULL, true);
	check_filter(NULL, "leaf", false);
	check_filter(NULL, "absent", true);
	check_filter("outer", "leaf", false);
	check_filter("outer", "absent", true);
	check_filter("absent", "absent", false);
}

static void check_bad_pattern(struct collect_options options)
{
	struct collector *c = NULL;
	struct error *err = collector_create(here.modules, &options, find, NULL, &c);

	assert_non_null(err);
	assert_int_equal(err->kind, ERROR_USAGE);
	assert_non_null(strstr(err->message, "\"a(\""));
	assert_non_null(err->hint);
	assert_null(c);
	error_free(err);
}

static void test_bad_patterns(void **state)
{
	check_bad_pattern((struct collect_options){.include = "a("});
	check_bad_pattern((struct collect_options){.exclude = "a("});
	check_bad_pattern((struct collect_options){.include = "fine", .exclude = "a("});
}

/* Frames that an option leaves out are not in the path. */
static void test_left_out(void **state)
{
	struct collector *c = create((struct collect_options){.no_kernel = true, .native_only = true});
	struct stack_record *r = new_record(HASH);

	r->nframes = 4;
	r->frame[0].where = frame_where(FRAME_KERNEL, 0, 0, 0xffffffff81000000);
	r->frame[1] = frame_in(0);
	r->frame[2].where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, 0x1000);
	r->frame[3] = frame_in(3);
	send_once(c, r);
	collector_count(c, 0, HASH, 1, 0);
	check_path(c, 1, (const char *const[]){names[0], names[3]}, 2);
	assert_int_equal(collector_stats(c)->frames, 2);
	collector_destroy(c);
}

/* The leaf of a stack is its innermost code, not what was allocated there. */
static void test_approximate_leaf(void **state)
{
	struct collector *c = create((struct collect_options){0});
	struct stack_record *r = whole_record(HASH);
	struct frame object = frame_in(0);
	u32 node;

	r->frame[1].where |= (u64)FRAME_APPROX << FRAME_ADDR_BITS;
	assert_null(collector_place(c, r, &r->frame[1], FN_MAX - 1, &object, &node));
	assert_int_equal(collector_stats(c)->approx, 1);
	assert_int_equal(collector_stats(c)->below_approx, 1);
	assert_null(collector_place(c, r, r->frame, FN_MAX, &object, &node));
	assert_int_equal(collector_stats(c)->approx, 1);
	assert_int_equal(collector_stats(c)->below_approx, 2);
	free(r);
	collector_destroy(c);
}

/* However many of its frames were guessed, a stack counts once; those of others do not. */
static void test_guessed(void **state)
{
	struct collector *c = create((struct collect_options){0});
	struct stack_record *r = whole_record(HASH);
	struct frame object = frame_in(0);
	u32 node;

	assert_null(collector_place(c, r, r->frame, FN_MAX, &object, &node));
	assert_int_equal(collector_stats(c)->guessed, 0);
	r->frame[1].where |= (u64)FRAME_GUESS << FRAME_ADDR_BITS;
	r->frame[2].where |= (u64)FRAME_GUESS << FRAME_ADDR_BITS;
	assert_null(collector_place(c, r, r->frame, FN_MAX, &object, &node));
	assert_int_equal(collector_stats(c)->guessed, 1);
	assert_int_equal(collector_stats(c)->approx, 0);
	assert_int_equal(collector_stats(c)->frames, 2 * (FN_MAX + 1));
	free(r);
	collector_destroy(c);
}

/* Only stacks with a frame that says that its thread held a VM's lock; a script's frame does not say so. */
static void test_lock_only(void **state)
{
	struct collector *c = create((struct collect_options){.lock_only = true});
	struct stack_record *r = whole_record(HASH);

	r->frame[0] = (struct frame){.where = frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, FRAME_LOCK, 0x1000)};
	r->weight = 3;
	send(c, r);
	assert_int_equal(collector_stats(c)->filtered, 3);
	r->hash++;
	r->weight = 0;
	r->frame[0] = frame_in(0);
	r->frame[2].where |= (u64)FRAME_LOCK << FRAME_ADDR_BITS;
	send_once(c, r);
	collector_count(c, 0, HASH, 2, 0);
	collector_count(c, 0, HASH + 1, 4, 0);
	assert_int_equal(collector_stats(c)->filtered, 5);
	assert_int_equal(collector_stats(c)->counted, 4);
	check_path(c, 4, names, FN_MAX);
	collector_destroy(c);
}

#define WAKER 77u
#define BOTH  78u

static struct stack_record *waker_record(void)
{
	struct stack_record *r = new_record(WAKER);

	r->role = STACK_OF_WAKER;
	r->nframes = 2;
	r->frame[0] = frame_in(2);
	r->frame[1] = frame_in(3);
	memcpy(r->comm, "who-woke-it-up-!", sizeof(r->comm)); /* no end: hostile */
	return r;
}

/* A waker's stack stands inside the leaf, from its own leaf to its root; alone it is nothing. */
static void test_waker(void **state)
{
	static const char *const path[] = {"root_function", "outer_function", "[woken by who-woke-it-up-]",
	        "leaf_function", "inner_function", "outer_function", "root_function"};
	struct collector *c = create((struct collect_options){0});

	send_once(c, whole_record(HASH));
	send_once(c, waker_record());
	send_once(c, waker_record());
	assert_int_equal(collector_stats(c)->stacks, 1);
	assert_null(collector_join(c, 0, HASH, WAKER, BOTH));
	collector_count(c, 0, BOTH, 9, 1);
	check_path(c, 9, path, sizeof(path) / sizeof(*path));
	collector_destroy(c);
}

/* A waker that never arrived leaves the stack as it is; a stack that never arrived is lost. */
static void test_waker_missing(void **state)
{
	struct collector *c = create((struct collect_options){0});

	send_once(c, whole_record(HASH));
	assert_null(collector_join(c, 0, HASH, WAKER, BOTH));
	collector_count(c, 0, BOTH, 9, 1);
	check_path(c, 9, names, FN_MAX);
	assert_null(collector_join(c, 0, HASH + 1, WAKER, BOTH + 1));
	collector_count(c, 0, BOTH + 1, 2, 1);
	assert_int_equal(collector_stats(c)->unmatched, 2);
	collector_destroy(c);
}

enum { ASLEEP = 1, QUEUED };

static void reason_text(u32 reason, char *text)
{
	strcpy(text, reason == QUEUED ? "queue" : "asleep");
}

static enum profile_kind reason_kind(u32 reason)
{
	return reason == QUEUED ? KIND_RUNNABLE : KIND_WAITING;
}

static enum idle_chance idle_if_asleep(u32 reason)
{
	return reason == ASLEEP ? IDLE_ALWAYS : IDLE_NEVER;
}

static struct stack_record *waiting_record(u64 hash)
{
	struct stack_record *r = whole_record(hash);

	memmove(r->frame + 1, r->frame, FN_MAX * sizeof(*r->frame));
	r->frame[0] = (struct frame){.where = frame_where(FRAME_REASON, RUNTIME_NATIVE, 0, 0x7f00), .detail = ASLEEP};
	r->nframes = FN_MAX + 1;
	return r;
}

/*
 * What a thread waits for a CPU after a wait has that wait's stack, but for the reason: also in the next epoch, and
 * where the wait itself is left out as idle or by a pattern.
 */
static void test_queued(void **state)
{
	static const char *const path[] = {
	        "[queue]", "leaf_function", "inner_function", "outer_function", "root_function"};
	struct collect_options options = {
	        .queued = QUEUED, .names = {.reason = reason_text, .reason_kind = reason_kind}};
	struct collector *c;

	for (u32 i = 0; i < 3; i++) {
		options.exclude = i == 1 ? "asleep" : NULL;
		options.idle = i == 2 ? idle_if_asleep : NULL;
		c = create(options);
		send_once(c, waiting_record(HASH));
		collector_count(c, 0, stack_queued(HASH), 4, 0);
		assert_null(collector_carry(c, 1, HASH));
		collector_forget(c, 0);
		collector_count(c, 1, stack_queued(HASH), 5, 0);
		check_path(c, 9, path, FN_MAX + 1);
		collector_count(c, 1, HASH, 3, 1);
		assert_int_equal(collector_stats(c)->counted, i ? 9 : 12);
		assert_int_equal(collector_stats(c)->filtered, i == 1 ? 3 : 0);
		assert_int_equal(collector_stats(c)->idle, i == 2 ? 3 : 0);
		assert_int_equal(collector_stats(c)->unmatched, 0);
		collector_destroy(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_unknown_process),
	        cmocka_unit_test(test_unknown_frames),
	        cmocka_unit_test(test_anonymous_code),
	        cmocka_unit_test(test_truncated),
	        cmocka_unit_test(test_wrong_guess),
	        cmocka_unit_test(test_threads),
	        cmocka_unit_test(test_filters),
	        cmocka_unit_test(test_bad_patterns),
	        cmocka_unit_test(test_left_out),
	        cmocka_unit_test(test_approximate_leaf),
	        cmocka_unit_test(test_guessed),
	        cmocka_unit_test(test_lock_only),
	        cmocka_unit_test(test_waker),
	        cmocka_unit_test(test_waker_missing),
	        cmocka_unit_test(test_queued),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
