/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "luajit_vms.h"
#include "unwind.h"
#include "walk.h"

#include "luajit_frames.h" /* needs walk.h */

#define DEPTH_MAX    1024
#define OBJECTS_MAX  (1u << 23)
#define TRIES        16
#define READS        4 /* of one stack */
#define PAGE         4096u
#define PAGES        8192 /* power of two */
#define HEAD         16   /* of an object: next, marks, type */
#define TYPE_FIRST   4    /* ~LJ_TSTR */
#define TYPE_LAST    12   /* ~LJ_TUDATA */
#define ROOT_64      24   /* from gc.total: threshold, four bytes, sweepstr (lj_obj.h: GCState) */
#define ROOT_32      16
#define WHITES       3 /* LJ_GC_WHITES, in marked and gc.currentwhite, which follows gc.threshold */
#define LJ_YIELD     1 /* lua_State.status */
#define LJ_STACK_MIN 16

/* Memory by the page, for the length of one pass over all objects. */
struct pages {
	struct memory *memory;
	u64 number[PAGES]; /* + 1; 0: none */
	u8 (*bytes)[PAGE];
};

struct listing {
	const struct luajit_image *image;
	const struct runtime_process *p;
	struct pages *pages;
	u32 config;
	u64 g;
	u8 type; /* of the objects that are looked for */
	u64 *found;
	u32 nfound;
	struct frame frames[2][DEPTH_MAX];
};

/* A coroutine that does not run, as it is at one moment. */
struct parked {
	u64 base, top, stack, maxstack, cframe, status, type;
};

static const u8 *page_at(struct pages *c, u64 addr)
{
	u64 page = addr / PAGE, slot = page * 0x9e3779b97f4a7c15ull >> 51;

	if (c->number[slot] == page + 1)
		return c->bytes[slot];
	c->number[slot] = 0;
	if (!memory_read(c->memory, c->bytes[slot], PAGE, page * PAGE))
		return NULL;
	c->number[slot] = page + 1;
	return c->bytes[slot];
}

/* Objects are aligned to 8 bytes, so a head may be on two pages. */
static bool read_head(struct pages *c, u64 addr, u8 head[HEAD])
{
	const u8 *bytes = addr % PAGE <= PAGE - HEAD ? page_at(c, addr) : NULL;

	if (!bytes)
		return memory_read(c->memory, head, HEAD, addr);
	memcpy(head, bytes + addr % PAGE, HEAD);
	return true;
}

static u64 next_of(const struct listing *l, const u8 *head)
{
	u64 next = 0;

	memcpy(&next, head, l->image->vm.gc64 ? 8 : 4);
	return next;
}

static struct error *add_found(struct listing *l, u64 object)
{
	struct error *err = grow(&l->found, l->nfound, sizeof(*l->found));

	if (!err)
		l->found[l->nfound++] = object;
	return err;
}

/*
 * One pass over all objects. *all: it came to the main thread, which is the first that was made, and last but for
 * userdata: then all was seen. A chain that is torn ends at what is no object.
 */
static struct error *pass(struct listing *l, u64 root, u64 main_thread, bool *all)
{
	const struct luajit_layout *layout = l->image->layout;
	u8 head[HEAD], white;
	u64 at = 0, seen = 0;
	struct error *err = NULL;

	*all = false;
	if (!memory_read(l->p->memory, &at, l->image->vm.gc64 ? 8 : 4, root) ||
	        !memory_read(l->p->memory, &white, 1, l->g + layout->g_gc_total.at + 2 * (l->image->vm.gc64 ? 8 : 4)))
		return NULL;
	for (u32 i = 0; !err && i < OBJECTS_MAX && at && !(at & 7) && read_head(l->pages, at, head); i++) {
		u8 type = head[layout->l_gct.at], marked = head[layout->l_gct.at - 1];

		if (type < TYPE_FIRST || type > TYPE_LAST || at == seen)
			break; /* torn: it leads elsewhere, or round */
		if (!(i & (i - 1)))
			seen = at;
		if (at == main_thread) {
			*all = true;
			break;
		}
		if (type == l->type && !(marked & ~white & WHITES))
			err = add_found(l, at);
		at = next_of(l, head);
	}
	return err;
}

static int by_address(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static void sort(struct listing *l)
{
	u32 n = 0;

	if (l->nfound)
		qsort(l->found, l->nfound, sizeof(*l->found), by_address);
	for (u32 i = 0; i < l->nfound; i++)
		if (!n || l->found[n - 1] != l->found[i])
			l->found[n++] = l->found[i];
	l->nfound = n;
}

/* A chain that changes is followed again. */
static struct error *find(struct listing *l, bool *all)
{
	const struct luajit_layout *layout = l->image->layout;
	u64 root = l->g + layout->g_gc_total.at + (l->image->vm.gc64 ? ROOT_64 : ROOT_32);
	u64 main_thread = luajit_vms_read(l->p->memory, l->g, layout->g_mainthref);
	struct error *err = NULL;

	l->nfound = 0;
	*all = false;
	for (u32 i = 0; !err && !*all && i < TRIES; i++) {
		memset(l->pages->number, 0, sizeof(l->pages->number));
		memory_forget(l->p->memory);
		err = pass(l, root, main_thread, all);
		sort(l);
	}
	return err;
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
	bool found;
	struct error *err = find(l, &found);

	for (u32 i = 0; !err && i < l->nfound; i++)
		err = add_coroutine(l, bias, l->found[i], add, ctx);
	*all = *all && found;
	return err;
}

struct error *luajit_tasks(const struct luajit_image *image, u64 bias, u32 config, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	struct listing *l = calloc(1, sizeof(*l));
	struct pages *pages = calloc(1, sizeof(*pages));
	u8(*bytes)[PAGE] = calloc(PAGES, PAGE);
	struct luajit_vms vms = {0};
	bool all = true;
	struct error *err =
	        l && pages && bytes ? luajit_vms_find(image, bias, p, LUAJIT_VMS_MEMORY, &vms) : &error_no_memory;

	if (!err) {
		*pages = (struct pages){.memory = p->memory, .bytes = bytes};
		*l = (struct listing){.image = image, .p = p, .pages = pages, .config = config, .type = LJ_GCT_THREAD};
	}
	for (u32 i = 0; !err && i < vms.n; i++) {
		l->g = vms.g[i];
		err = list(l, bias, &all, add, ctx);
	}
	if (!err && !all)
		err = error_new(ERROR_UNSUPPORTED,
		        "process %d: objects changed while coroutines were searched: some may be missing", p->pid);
	free(vms.g);
	free(l ? l->found : NULL);
	free(l);
	free(pages);
	free(bytes);
	return err;
}

struct error *luajit_objects(const struct luajit_image *image, u64 bias, const struct runtime_process *p, u8 type,
        struct error *(*add)(void *ctx, u64 object), void *ctx)
{
	struct listing *l = calloc(1, sizeof(*l));
	struct pages *pages = calloc(1, sizeof(*pages));
	u8(*bytes)[PAGE] = calloc(PAGES, PAGE);
	struct luajit_vms vms = {0};
	bool all;
	struct error *err =
	        l && pages && bytes ? luajit_vms_find(image, bias, p, LUAJIT_VMS_MEMORY, &vms) : &error_no_memory;

	if (!err) {
		*pages = (struct pages){.memory = p->memory, .bytes = bytes};
		*l = (struct listing){.image = image, .p = p, .pages = pages, .type = type};
	}
	for (u32 i = 0; !err && i < vms.n; i++) {
		l->g = vms.g[i];
		err = find(l, &all);
		for (u32 k = 0; !err && k < l->nfound; k++)
			err = add(ctx, l->found[k]);
		if (!err && !all && !l->nfound)
			err = error_new(ERROR_UNSUPPORTED,
			        "process %d: Lua's objects changed whenever they were searched: try again", p->pid);
	}
	free(vms.g);
	free(l ? l->found : NULL);
	free(l);
	free(pages);
	free(bytes);
	return err;
}
