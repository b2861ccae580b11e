/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "frame_code.h"
#include "lua.h"
#include "lua_calls.h"
#include "lua_heap.h"
#include "lua_image.h"
#include "lua_names.h"
#include "lua_states.h"
#include "lua_values.h"
#include "report.h"
#include "runtime.h"
#include "runtime_allocator.h"
#include "runtime_tasks.h"
#include "cfi/cfi.h"

/*
 * What is placed between native frames: "(gc)", and functions in C. The walker meets all functions of a lua_State where
 * luaV_execute() ran. So C functions that have called each other since (pcall(string.gsub)) all come before its native
 * frame. Each belongs right outside of its own code.
 */

#define C_FUNCTIONS 64 /* that called each other without Lua between them; more stay where they are */

/* A run of native frames, and the functions in C behind it. Leaf first, as all. */
struct run {
	const struct frame *frames;
	u32 start, end;    /* native */
	u32 functions, nc; /* in C: from where, how many */
	u32 idle;          /* of these, the innermost that do not run: the VM is about to call them, or they returned */
	u32 at[C_FUNCTIONS]; /* the index in frames that each goes in front of */
	bool leaf;           /* no function of Lua is inside of it */
};

static bool is_lua(const struct frame *f, u64 what)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_LUA && f->detail & what;
}

static bool begins_at(const struct runtime_process *p, const struct frame *f, u64 addr)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, frame_code(f));
	const struct cfi_fde *fde = m && m->image ? cfi_fde_at(m->image->cfi, frame_code(f) - m->bias) : NULL;

	return fde && fde->start + m->bias == addr;
}

/* Were the functions behind the run met in a luaV_execute() of this image? */
static bool is_own(const struct lua_image *image, u64 bias, const struct frame *frames, u32 i, u32 n)
{
	while (i < n && frame_kind(&frames[i]) == FRAME_SCRIPT)
		i++;
	for (u32 k = 0; i < n && k < image->nranges; k++)
		if (frame_code(&frames[i]) - bias - image->ranges[k].start <
		        image->ranges[k].end - image->ranges[k].start)
			return true;
	return false;
}

/* A function whose own code is not there is about to run, has just returned, or ended in a jump: right inside of the
 * VM's code that called it, which is the first in frames[inner] to frames[outer - 1]. */
static u32 inside_vm(const struct run *r, u32 inner, u32 outer)
{
	u32 i = outer;

	while (i > inner && !(frame_flags(&r->frames[i - 1]) & FRAME_VM))
		i--;
	if (i == inner)
		return outer;
	while (i > inner && frame_flags(&r->frames[i - 1]) & FRAME_VM)
		i--;
	return i;
}

/* From outside inwards: each function's code is further inside than that of its caller. */
static void find_places(const struct runtime_process *p, struct run *r)
{
	u32 outer = r->end, waiting = 0; /* functions without code of their own so far */

	for (u32 c = r->nc; c-- > r->idle;) {
		u32 x = outer;

		while (x > r->start && !begins_at(p, &r->frames[x - 1], frame_addr(&r->frames[r->functions + c])))
			x--;
		if (x == r->start) {
			waiting++;
			continue;
		}
		r->at[c] = x;
		for (; waiting; waiting--)
			r->at[c + waiting] = outer = inside_vm(r, x, outer);
		outer = x - 1;
	}
	if (r->leaf && frame_flags(&r->frames[r->start]) & FRAME_VM)
		r->idle += waiting;
	else
		for (; waiting; waiting--)
			r->at[r->idle + waiting - 1] = outer = inside_vm(r, r->start, outer);
}

/* What a slot of the Lua stack holds for a moment need not be a function. */
static bool is_executable(const struct runtime_process *p, u64 addr)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, addr);

	return m && m->prot & PROT_EXEC;
}

static u32 put_all(const struct run *r, u32 gc, struct frame *ret)
{
	u32 put = 0, c = r->idle;

	for (u32 i = r->start;; i++) {
		if (i == gc && gc > r->start)
			ret[put++] = (struct frame){.where = frame_where(FRAME_SCRIPT, RUNTIME_LUA, 0, 0),
			        .detail = LUA_COLLECTS | LUA_NO_POS};
		while (c < r->nc && r->at[c] == i)
			ret[put++] = r->frames[r->functions + c++];
		if (i == r->end)
			return put;
		ret[put++] = r->frames[i];
	}
}

/*
 * struct runtime_ops.expand for native frames: takes a whole run of them, frames[i] and on, and the C functions behind.
 * bias: of the image.
 */
static u32 lua_expand_native(const struct lua_image *image, u64 bias, const struct runtime_process *p,
        const struct frame *frames, u32 i, u32 n, struct frame *ret, u32 max, u32 *eaten)
{
	struct run r = {
	        .frames = frames, .start = i, .end = i, .leaf = !i || frame_kind(&frames[i - 1]) != FRAME_SCRIPT};
	u32 gc;

	*eaten = 0;
	if (frame_kind(&frames[i]) != FRAME_NATIVE ||
	        (i && frame_kind(&frames[i - 1]) == FRAME_NATIVE)) /* its run was looked at already */
		return 0;
	while (r.end < n && frame_kind(&frames[r.end]) == FRAME_NATIVE)
		r.end++;
	r.functions = r.end + (r.end < n && is_lua(&frames[r.end], LUA_STATE));
	while (r.functions + r.nc < n && r.nc < C_FUNCTIONS && is_lua(&frames[r.functions + r.nc], LUA_C_FUNCTION))
		r.nc++;
	if (!is_own(image, bias, frames, r.functions, n))
		r.nc = 0;
	while (r.idle < r.nc && !is_executable(p, frame_addr(&frames[r.functions + r.idle])))
		r.idle++;
	gc = frame_behind(image->gc.start, image->gc.end, image->gc.n, bias, frames, r.start, r.end);
	if ((!r.nc && gc == r.start) || r.end - r.start + r.nc >= max)
		return 0;
	find_places(p, &r);
	*eaten = (r.nc ? r.functions : r.end) + r.nc - r.start;
	return put_all(&r, gc, ret);
}

int lua_step(struct walk *w);

struct lua_instance {
	const struct lua_image *image;
	u64 bias;
	u32 config; /* struct lua_vm in the arena */
	struct lua_names *names;
};

static struct error *image_probe(struct image *img, void **ret)
{
	struct lua_image *image;
	struct error *err = lua_image_read(img, &image);

	*ret = image;
	return err;
}

static void image_destroy(void *image)
{
	lua_image_destroy(image);
}

static struct error *attach(const struct runtime_process *p, void *data, u64 bias, void **ret)
{
	struct lua_image *image = data;
	struct lua_instance *instance = calloc(1, sizeof(*instance));
	struct error *err;

	if (!instance)
		return &error_no_memory;
	*instance = (struct lua_instance){.image = image, .bias = bias, .names = lua_names_create(image)};
	err = instance->names ? arena_alloc(p->arena, sizeof(image->vm), &instance->config) : &error_no_memory;
	if (err) {
		lua_names_destroy(instance->names);
		free(instance);
		return err;
	}
	memcpy(arena_at(p->arena, instance->config, sizeof(image->vm)), &image->vm, sizeof(image->vm));
	*ret = instance;
	return NULL;
}

static void detach(void *data, const struct runtime_process *p)
{
	struct lua_instance *instance = data;

	arena_free(p->arena, instance->config, sizeof(instance->image->vm));
	lua_names_destroy(instance->names);
	free(instance);
}

static struct error *regions(void *data, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx)
{
	const struct lua_instance *instance = data;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < instance->image->nranges; i++) {
		const struct lua_range *range = &instance->image->ranges[i];
		struct runtime_region r = {.part = range->part,
		        .vm = instance->config,
		        .start = range->start + instance->bias,
		        .end = range->end + instance->bias};

		err = add(ctx, &r);
	}
	return err;
}

static bool name_frame(
        void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, struct frame_name *ret)
{
	struct lua_instance *instance = data;

	return lua_name_frame(instance->names, p, frames, i, n, ret);
}

static bool is_state(const struct lua_instance *instance, const struct frame *f)
{
	return frame_kind(f) == FRAME_SCRIPT && f->detail & LUA_STATE &&
	       f->detail >> LUA_COOKIE_BITS == instance->config;
}

static u32 expand(void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, u32 flags,
        struct frame *ret, u32 max, u32 *eaten)
{
	struct lua_instance *instance = data;

	u32 put;

	*eaten = 0;
	if (is_state(instance, &frames[i])) {
		lua_names_see(instance->names, frame_addr(&frames[i]));
		*eaten = 1;
		return 0;
	}
	put = lua_expand_native(instance->image, instance->bias, p, frames, i, n, ret, max, eaten);
	for (u32 k = i; k < i + *eaten; k++)
		if (is_state(instance, &frames[k]))
			lua_names_see(instance->names, frame_addr(&frames[k]));
	return put;
}

/* How C enters Lua and Lua enters C: the frames of Lua next to them say the same. */
static bool is_runtime_internal(void *data, const char *symbol)
{
	static const char *const glue[] = {"lua_call", "lua_callk", "lua_pcall", "lua_pcallk", "lua_cpcall",
	        "lua_resume", "precallC", "ccall", "f_call", "resume", "unroll", "dothecall", "GCTM", "callTMres",
	        "callTM", "f_Ccall"};

	for (u32 i = 0; i < sizeof(glue) / sizeof(*glue); i++)
		if (!strcmp(symbol, glue[i]))
			return true;
	return !strncmp(symbol, "luaD_", 5) || !strncmp(symbol, "luaV_execute", 12) || !strncmp(symbol, "luaT_call", 9);
}

static struct error *heap_open(void *data, const struct runtime_process *p, struct heap *h, void **ret)
{
	const struct lua_instance *instance = data;

	return lua_heap_open(instance->image, instance->names, p, h, ret);
}

static const struct runtime_heap_ops heap = {
        .objects = "objects",
        .text = "Of PUC-Lua 5.1 to 5.4 all that the collector marks is read: tables, functions by where they are "
                "defined, upvalues by name, userdata, threads.",
        .open = heap_open,
        .close = lua_heap_close,
        .roots = lua_heap_roots,
        .blocks = lua_heap_own,
        .all = lua_heap_all,
        .object = lua_heap_object,
        .copied = true,
};

static struct error *list_calls(void *data, const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	const struct lua_instance *instance = data;

	return lua_calls(instance->image, instance->bias, instance->names, p, pattern, add, ctx);
}

static void write_value(void *data, const struct runtime_process *p, const struct runtime_value *v, FILE *out)
{
	struct lua_instance *instance = data;

	lua_value(instance->image, v, out);
}

static const struct runtime_calls_ops calls = {
        .form = "lua:FILE:FUNCTION or lua:FILE:LINE", .list = list_calls, .value = write_value};

static struct error *inspect(void *data, const struct runtime_process *p, struct report *out)
{
	const struct lua_instance *instance = data;
	const struct lua_image *image = instance->image;

	report_section(out, "module", NULL);
	report_text(out, "version", NULL, "%s", image->release);
	report_text(out, "luaV_execute", image->found_by, "0x%lx-0x%lx", image->ranges[0].start + instance->bias,
	        image->ranges[0].end + instance->bias);
	report_number(out, image->vm.l_in_slot ? "lua_State's slot from register" : "lua_State in register",
	        image->vm.l_reg, lua_state_extent(&image->vm));
	if (image->vm.l_in_slot)
		report_text(out, "lua_State's slot", NULL, "%d bytes from there", image->vm.l_slot);
	for (u32 i = 0; i < image->vm.nspills; i++)
		report_text(out, image->vm.l_in_slot ? "while a constant is pushed" : "lua_State spilled", NULL,
		        "%d bytes from register %u", image->vm.spill[i], image->vm.spill_reg);
	layout_report(image->origins, out);
	return NULL;
}

static struct error *list_tasks(void *data, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	return error_new(ERROR_UNSUPPORTED, "process %d: coroutines of PUC-Lua are not listed", p->pid);
}

/* lmem.c; that of 5.4 makes new objects by luaM_malloc_(). */
static bool is_code(const struct runtime_process *p, u64 addr)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, addr);

	return m && m->image && m->prot & PROT_EXEC;
}

struct allocators {
	const struct runtime_process *p;
	struct runtime_allocator *ret;
	u32 n;
};

/* The lua_Alloc of a state is global_State's first member, or, in 5.1, comes behind the table of strings. */
static void add_allocator(void *ctx, u64 thread, u64 g)
{
	struct allocators *a = ctx;
	u64 words[3];

	if (!memory_read(a->p->memory, words, sizeof(words), g))
		return;
	for (u32 i = 0; i < 3; i += 2) {
		bool known = !is_code(a->p, words[i]) || a->n == RUNTIME_ALLOCATORS_MAX;

		for (u32 k = 0; k < a->n; k++)
			known |= a->ret[k].addr == words[i];
		if (!known)
			a->ret[a->n++] = (struct runtime_allocator){"lua_Alloc", words[i], ALLOC_RESIZE_OF, 0};
	}
}

static u32 find_allocators(
        void *data, const struct runtime_process *p, struct runtime_allocator ret[RUNTIME_ALLOCATORS_MAX], u32 *unknown)
{
	struct allocators a = {.p = p, .ret = ret};

	error_free(lua_states(((const struct lua_instance *)data)->image, p, add_allocator, &a));
	return a.n;
}

static const struct runtime_allocator allocators[] = {
        {"luaM_realloc_", 0, ALLOC_RESIZE_OF, 0}, {"luaM_malloc_", 0, ALLOC_SIZE_2, 0}, {NULL, 0, 0, 0}};

static const struct runtime_allocator_ops allocator = {.find = find_allocators,
        .named = allocators,
        .missing = "no state of Lua is there yet, and luaM_realloc_() has no name; `yrt alloc` shows what Lua asks "
                   "libc for"};

static const struct runtime_tasks_ops tasks = {.kind = "coroutine", .kinds = "coroutines", .list = list_tasks};

const struct runtime_ops lua_runtime = {
        .name = "lua",
        .view = "lua",
        .yield = "lua_yield",
        .language = "Lua",
        .id = RUNTIME_LUA,
        .supported = "PUC-Lua 5.1 to 5.5 (x86-64), the plain interpreter, liblua, or linked into a host",
        .layout = &lua_layout_schema,
        .files = (const char *const[]){"/lua5", "/liblua5", "/lua-5", "bin/lua\n", NULL},
        .image_probe = image_probe,
        .image_destroy = image_destroy,
        .attach = attach,
        .detach = detach,
        .regions = regions,
        .name_frame = name_frame,
        .expands_native = true,
        .expand = expand,
        .c_names = lua_c_names,
        .is_runtime_internal = is_runtime_internal,
        .inspect = inspect,
        .heap = &heap,
        .tasks = &tasks,
        .calls = &calls,
        .allocator = &allocator,
};
