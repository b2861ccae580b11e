/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lua_calls.h"
#include "lua_values.h"
#include "lua_expand.h"
#include "lua_heap.h"
#include "lua_image.h"
#include "lua_names.h"
#include "lua_states.h"
#include "report.h"
#include "runtime.h"
#include "runtime_allocator.h"
#include "runtime_tasks.h"

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

	(void)p;
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

	(void)flags;
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

	(void)data;
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

	(void)p;
	lua_value(instance->image, v, out);
}

static const struct runtime_calls_ops calls = {
        .form = "lua:FILE:FUNCTION or lua:FILE:LINE", .list = list_calls, .value = write_value};

static struct error *inspect(void *data, const struct runtime_process *p, struct report *out)
{
	const struct lua_instance *instance = data;
	const struct lua_image *image = instance->image;

	(void)p;
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

	(void)thread;
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

	(void)unknown;
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
