/* SPDX-License-Identifier: Apache-2.0 */
/* A collector that is fed by hand with records of stacks through functions of this very program. */
#ifndef YRT_COLLECT_FAKE_H
#define YRT_COLLECT_FAKE_H

#include <unistd.h>

#include "look.h"

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

static inline struct process *find(void *ctx, u32 number)
{
	return number == KNOWN ? here.process : NULL;
}

/* The mapping of this program's code, as a module. */
static inline void load_here(const struct map_line *line)
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

static inline int setup(void **state)
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

static inline int teardown(void **state)
{
	look_end(here.arena, here.modules, here.process);
	return 0;
}

static inline struct collector *create(struct collect_options options)
{
	struct collector *c;

	assert_null(collector_create(here.modules, &options, find, NULL, &c));
	return c;
}

static inline struct frame frame_in(u32 function)
{
	return (struct frame){.where = frame_where(FRAME_NATIVE, RUNTIME_NATIVE, 0, (uintptr_t)functions[function]),
	        .detail = here.module};
}

static inline struct stack_record *new_record(u64 hash)
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
static inline struct stack_record *whole_record(u64 hash)
{
	struct stack_record *r = new_record(hash);

	r->nframes = FN_MAX;
	for (u32 i = 0; i < FN_MAX; i++)
		r->frame[i] = frame_in(i);
	return r;
}

static inline void send(struct collector *c, const struct stack_record *r)
{
	assert_null(collector_stack(c, r, offsetof(struct stack_record, frame) + r->nframes * sizeof(struct frame)));
}

static inline void send_once(struct collector *c, struct stack_record *r)
{
	send(c, r);
	free(r);
}

static const char *name_of(const struct profile *p, u32 node)
{
	return p->functions[p->nodes[node].function].name;
}

/* The one node that has counts; they must be count. */
static inline u32 counted_node(struct collector *c, u64 count)
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
static inline void check_path(struct collector *c, u64 count, const char *const *path, u32 n)
{
	const struct profile *p = collector_profile(c);
	u32 node = counted_node(c, count);

	for (u32 i = 0; i < n; i++, node = p->nodes[node].parent)
		assert_string_equal(name_of(p, node), path[i]);
	assert_int_equal(node, 0);
}

#endif
