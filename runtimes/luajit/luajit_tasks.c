/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "luajit_vms.h"
#include "unwind.h"
#include "walk.h"
#include "runtimes/lua_common/lua_list.h"

#include "luajit_frames.h" /* needs walk.h */

#define DEPTH_MAX    1024
#define READS        4  /* of one stack */
#define TYPE_FIRST   4  /* ~LJ_TSTR */
#define TYPE_LAST    12 /* ~LJ_TUDATA */
#define ROOT_64      24 /* from gc.total: threshold, four bytes, sweepstr (lj_obj.h: GCState) */
#define ROOT_32      16
#define WHITES       3 /* LJ_GC_WHITES, in marked and gc.currentwhite, which follows gc.threshold */
#define LJ_YIELD     1 /* lua_State.status */
#define LJ_STACK_MIN 16

struct listing {
	const struct luajit_image *image;
	const struct runtime_process *p;
	u32 config;
	u64 g;
	struct frame frames[2][DEPTH_MAX];
};

/* A coroutine that does not run, as it is at one moment. */
struct parked {
	u64 base, top, stack, maxstack, cframe, status, type;
};

static struct error *find(
        const struct luajit_image *image, const struct runtime_process *p, u64 g, u8 type, u64 **ret, u32 *n, bool *all)
{
	const struct luajit_layout *layout = image->layout;
	u32 word = image->vm.gc64 ? 8 : 4;
	u64 gc = g + layout->g_gc_total.at;
	/* the main thread is the first that was made, and last but for userdata */
	const struct lua_list list = {.root = gc + (word == 8 ? ROOT_64 : ROOT_32),
	        .end = luajit_vms_read(p->memory, g, layout->g_mainthref),
	        .word = word,
	        .type_at = layout->l_gct.at,
	        .type = type,
	        .first = TYPE_FIRST,
	        .last = TYPE_LAST,
	        .dead = WHITES,
	        .current = gc + 2 * word};

	return lua_list_read(&list, p->memory, ret, n, all);
}

static bool read_parked(const struct listing *l, u64 thread, struct parked *ret)
{
	const struct luajit_layout *layout = l->image->layout;
	struct memory *m = l->p->memory;

	*ret = (struct parked){.base = luajit_vms_read(m, thread, layout->l_base),
	        .top = luajit_vms_read(m, thread, layout->l_top),
	        .stack = luajit_vms_read(m, thread, layout->l_stack),
	        .maxstack = luajit_vms_read(m, thread, layout->l_maxstack),
	        .cframe = luajit_vms_read(m, thread, layout->l_cframe),
	        .status = luajit_vms_read(m, thread, layout->l_status),
	        .type = luajit_vms_read(m, thread, layout->l_gct)};
	return ret->type == LJ_GCT_THREAD && luajit_vms_read(m, thread, layout->l_glref) == l->g &&
	       ret->base > ret->stack && ret->base <= ret->top && ret->top <= ret->maxstack + LJ_STACK_MIN * 8ull &&
	       !(ret->base & 7);
}

struct start {
	u64 thread, base, region;
	u32 config;
};

/* In a cframe at 0, which owns all frames of a coroutine that nobody has resumed. */
static void start(const void *ctx, struct walk *w)
{
	const struct start *s = ctx;

	w->region = (struct region){.start = s->region,
	        .end = s->region + 1,
	        .runtime = RUNTIME_LUAJIT,
	        .part = LUAJIT_INTERP,
	        .vm = s->config};
	w->reg[REG_PC] = s->region;
	w->leaf = 1;
	w->valid = 1u << REG_PC | 1u << REG_SP;
	w->vm_state = 1;
	w->ncursors = 1;
	w->cursor[0] = (struct walk_cursor){.key = s->thread, .at = s->base - 8, .more = {0, LUAJIT_PENDING}};
}

/* Its frames are of one moment if it is the same, and has the same frames, twice. */
static bool read_stack(struct listing *l, u64 bias, u64 thread, const struct parked *parked, u32 *n, u32 *stop)
{
	const struct start s = {thread, parked->base, bias + l->image->blob.start, l->config};
	struct parked after;
	u32 again;

	*stop = unwind_task(l->p, l->p->memory, start, &s, l->frames[0], DEPTH_MAX, n);
	return *stop == unwind_task(l->p, l->p->memory, start, &s, l->frames[1], DEPTH_MAX, &again) && *n == again &&
	       !memcmp(l->frames[0], l->frames[1], *n * sizeof(l->frames[0][0])) && read_parked(l, thread, &after) &&
	       !memcmp(parked, &after, sizeof(after));
}

static struct error *add_coroutine(struct listing *l, u64 bias, u64 thread,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	struct runtime_task t = {.id = thread, .frames = l->frames[0], .stop = STOP_VM_BROKEN};
	struct parked parked, after;
	bool stands = false;

	snprintf(t.name, sizeof(t.name), "0x%lx", thread);
	for (u32 i = 0; i < READS && !stands; i++) {
		if (!read_parked(l, thread, &parked) || parked.cframe ||
		        (parked.status != LJ_YIELD && (parked.status || parked.top == parked.base)))
			return NULL; /* it runs, has resumed another, or has ended */
		stands = parked.status == LJ_YIELD
		                 ? read_stack(l, bias, thread, &parked, &t.nframes, &t.stop)
		                 : read_parked(l, thread, &after) && !memcmp(&parked, &after, sizeof(after));
	}
	if (stands && parked.status != LJ_YIELD)
		t.stop = STOP_ROOT_RUNTIME;
	snprintf(t.state, sizeof(t.state), "%s",
	        !stands                     ? "moved whenever it was read"
	        : parked.status == LJ_YIELD ? "yielded"
	                                    : "not started");
	t.nframes = stands ? t.nframes : 0;
	return add(ctx, &t);
}

/* *all stays true if all of this VM's were found. */
static struct error *list(struct listing *l, u64 bias, bool *all,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	cleanup(free) u64 *found = NULL;
	u32 n;
	bool whole;
	struct error *err = find(l->image, l->p, l->g, LJ_GCT_THREAD, &found, &n, &whole);

	for (u32 i = 0; !err && i < n; i++)
		err = add_coroutine(l, bias, found[i], add, ctx);
	*all = *all && whole;
	return err;
}

struct error *luajit_tasks(const struct luajit_image *image, u64 bias, u32 config, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	cleanup(free) struct listing *l = calloc(1, sizeof(*l));
	struct luajit_vms vms = {0};
	bool all = true;
	struct error *err = l ? luajit_vms_find(image, bias, p, LUAJIT_VMS_MEMORY, &vms) : &error_no_memory;

	if (l)
		*l = (struct listing){.image = image, .p = p, .config = config};
	for (u32 i = 0; !err && i < vms.n; i++) {
		l->g = vms.g[i];
		err = list(l, bias, &all, add, ctx);
	}
	if (!err && !all)
		err = error_new(ERROR_UNSUPPORTED,
		        "process %d: objects changed while coroutines were searched: some may be missing", p->pid);
	free(vms.g);
	return err;
}

struct error *luajit_objects(const struct luajit_image *image, u64 bias, const struct runtime_process *p, u8 type,
        struct error *(*add)(void *ctx, u64 object), void *ctx)
{
	struct luajit_vms vms = {0};
	struct error *err = luajit_vms_find(image, bias, p, LUAJIT_VMS_MEMORY, &vms);

	for (u32 i = 0; !err && i < vms.n; i++) {
		cleanup(free) u64 *found = NULL;
		u32 n;
		bool all;

		err = find(image, p, vms.g[i], type, &found, &n, &all);
		for (u32 k = 0; !err && k < n; k++)
			err = add(ctx, found[k]);
		if (!err && !all && !n)
			err = error_new(ERROR_UNSUPPORTED,
			        "process %d: Lua's objects changed whenever they were searched: try again", p->pid);
	}
	free(vms.g);
	return err;
}
