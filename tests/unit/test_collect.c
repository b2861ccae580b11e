/* SPDX-License-Identifier: Apache-2.0 */
/* The collector, fed by hand with records of stacks through functions of this very program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind/profile/collect.h"

#define HASH   0x1234567890ull
#define KNOWN  7u /* the number of the one process that is known */
#define FN_MAX 4u

static void __attribute__((noinline)) leaf_function(void)
{
	__asm__ volatile("nop; nop" ::: "memory");
}

static void __attribute__((noinline)) inner_function(void)
{
	__asm__ volatile("nop; nop; nop" ::: "memory");
}

static void __attribute__((noinline)) outer_function(void)
{
	__asm__ volatile("nop; nop; nop; nop" ::: "memory");
}

static void __attribute__((noinline)) root_function(void)
{
	__asm__ volatile("nop; nop; nop; nop; nop" ::: "memory");
}

static void (*const functions[FN_MAX])(void) = {leaf_function, inner_function, outer_function, root_function};
static const char *const names[FN_MAX] = {"leaf_function", "inner_function", "outer_function", "root_function"};

static struct {
	struct arena *arena;
	struct modules *modules;
	struct process *process;
	u32 module; /* this program */
} here;

static struct process *find(void *ctx, u32 number)
{
	return number == KNOWN ? here.process : NULL;
}

/* The mapping of this program's code, as a module. */
static void load_here(const struct map_line *line)
{
	struct loaded *loaded;
	struct image *img;
	u64 bias = 0;

	assert_null(modules_load(here.modules, getpid(), line, &loaded));
	img = loaded->image;
	assert_non_null(img);
	for (u32 i = 0; i < img->nsegments; i++)
		if (img->segments[i].flags & PF_X)
			bias = line->start - (img->segments[i].vaddr - (img->segments[i].offset - line->offset));
	assert_null(modules_number(here.modules, loaded, bias, getpid(), &here.module));
}

static int setup(void **state)
{
	struct maps maps;

	assert_null(arena_create(NULL, &here.arena));
	assert_null(modules_create(here.arena, NULL, &here.modules));
	assert_null(process_create_gone(here.modules, getpid(), KNOWN, &here.process));
	assert_null(maps_read(getpid(), &maps));
	for (u32 i = 0; i < maps.nlines; i++)
		if ((u64)(uintptr_t)leaf_function - maps.lines[i].start < maps.lines[i].end - maps.lines[i].start)
			load_here(&maps.lines[i]);
	assert_int_not_equal(here.module, 0);
	maps_free(&maps);
	return 0;
}

static int teardown(void **state)
{
	process_destroy(here.process);
	modules_destroy(here.modules);
	arena_destroy(here.arena);
	return 0;
}

static struct collector *create(struct collect_options options)
{
	struct collector *c;

	assert_null(collector_create(here.modules, &options, find, NULL, &c));
	return c;
}

static struct frame frame_in(u32 function)
{
	return (struct frame){.where = frame_where(FRAME_NATIVE, RUNTIME_NATIVE, 0, (uintptr_t)functions[function]),
	        .detail = here.module};
}

/* Frame i of a deep stack: which function it is in. */
static u32 deep(u32 i)
{
	return (i * 7 + i / 5) % FN_MAX;
}

static struct stack_record *new_record(u64 hash)
{
	struct stack_record *r = calloc(1, sizeof(*r));

	*r = (struct stack_record){.type = RECORD_STACK,
	        .hash = hash,
	        .instance = KNOWN,
	        .tgid = 42,
	        .tid = 43,
	        .stop = STOP_ROOT,
	        .last = 1};
	return r;
}

/* A record of one chunk: leaf, inner, outer, root. */
static struct stack_record *whole_record(u64 hash)
{
	struct stack_record *r = new_record(hash);

	r->nframes = FN_MAX;
	for (u32 i = 0; i < FN_MAX; i++)
		r->frame[i] = frame_in(i);
	return r;
}

static void send(struct collector *c, const struct stack_record *r)
{
	assert_null(collector_stack(c, r, offsetof(struct stack_record, frame) + r->nframes * sizeof(struct frame)));
}

static void send_once(struct collector *c, struct stack_record *r)
{
	send(c, r);
	free(r);
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

static const char *name_of(const struct profile *p, u32 node)
{
	return p->functions[p->nodes[node].function].name;
}

/* The one node that has counts; they must be count. */
static u32 counted_node(struct collector *c, u64 count)
{
	const struct profile *p = collector_profile(c);
	u32 found = 0;

	for (u32 i = 0; i < p->nnodes; i++)
		if (p->nodes[i].self) {
			assert_int_equal(found, 0);
			found = i;
		}
	assert_int_not_equal(found, 0);
	assert_int_equal(p->nodes[found].self, count);
	assert_int_equal(collector_stats(c)->counted, count);
	return found;
}

/* The path from the counted node to the root is this one, leaf first. */
static void check_path(struct collector *c, u64 count, const char *const *path, u32 n)
{
	const struct profile *p = collector_profile(c);
	u32 node = counted_node(c, count);

	for (u32 i = 0; i < n; i++, node = p->nodes[node].parent)
		assert_string_equal(name_of(p, node), path[i]);
	assert_int_equal(node, 0);
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

/* --- tests --- */

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

/* Frames of no kind, of a runtime or module that there is none of, outside all mappings. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_stack),
	        cmocka_unit_test(test_chunks),
	        cmocka_unit_test(test_interleaved),
	        cmocka_unit_test(test_missing_chunk),
	        cmocka_unit_test(test_too_deep),
	        cmocka_unit_test(test_sizes),
	        cmocka_unit_test(test_unknown_process),
	        cmocka_unit_test(test_unknown_frames),
	        cmocka_unit_test(test_anonymous_code),
	        cmocka_unit_test(test_truncated),
	        cmocka_unit_test(test_threads),
	        cmocka_unit_test(test_filters),
	        cmocka_unit_test(test_bad_patterns),
	        cmocka_unit_test(test_epochs),
	        cmocka_unit_test(test_weights),
	        cmocka_unit_test(test_more),
	        cmocka_unit_test(test_left_out),
	        cmocka_unit_test(test_approximate_leaf),
	        cmocka_unit_test(test_lock_only),
	        cmocka_unit_test(test_waker),
	        cmocka_unit_test(test_waker_missing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
