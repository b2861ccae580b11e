/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "luajit_bytecode.h"
#include "luajit_calls.h"
#include "luajit_check.h"
#include "luajit_heap.h"
#include "luajit_image.h"
#include "luajit_inspect.h"
#include "luajit_layout.h"
#include "luajit_tasks.h"
#include "luajit_trace.h"
#include "luajit_values.h"
#include "luajit_vms.h"
#include "runtime.h"
#include "runtime_allocator.h"
#include "runtime_types.h"
#include "binary/image_scan.h"
#include "layout/layout_types.h"

/*
 * LuaJIT's structures for `yrt y` (runtime_types.h): lj_obj.h of all of 2.1, of which only the size of
 * references, global_State and what the layout has (luajit_layout.h) differ between builds.
 */

#define HEADER    "GCRef nextgc; u8 marked; u8 gct; "
#define FUNCTION  HEADER "u8 ffid; u8 nupvalues; GCRef env; GCRef gclist; MRef pc; "
#define GC_OFFSET 16 /* of global_State.gc, where the table of strings is a structure of its own; before 2020 32 */

static const struct layout_type luajit_types[] = {
        {LAYOUT_STRUCT, "MRef", "@gc64 u64 ptr64; @gc32 u32 ptr32", NULL},
        {LAYOUT_STRUCT, "GCRef", "@gc64 u64 gcptr64; @gc32 u32 gcptr32", NULL},
        {LAYOUT_UNION, "TValue", "u64 u64; s64 it64; double n; GCRef gcr; s32 i; @4 u32 it", NULL},
        {LAYOUT_STRUCT, "Node", "TValue val; TValue key; MRef next; @freetop MRef freetop", NULL},
        {LAYOUT_STRUCT, "GChead", HEADER "u8 unused1; u8 unused2; GCRef env; GCRef gclist; GCRef metatable", NULL},
        {LAYOUT_STRUCT, "GCstr", HEADER "u8 reserved; u32 len", NULL},
        {LAYOUT_STRUCT, "GCudata", HEADER "u8 udtype; u8 unused2; GCRef env; u32 len; GCRef metatable; u32 align1",
                NULL},
        {LAYOUT_STRUCT, "GCcdata", HEADER "u16 ctypeid", NULL},
        {LAYOUT_STRUCT, "GCproto",
                HEADER "u8 numparams; u8 framesize; u32 sizebc; MRef k; MRef uv; u32 sizekgc; u32 sizekn; u32 sizept; "
                       "u8 sizeuv; u8 flags; u16 trace; GCRef chunkname; s32 firstline; s32 numline; MRef lineinfo; "
                       "MRef uvinfo; MRef varinfo",
                NULL},
        {LAYOUT_STRUCT, "GCupval", HEADER "u8 closed; u8 immutable; TValue tv; @upvalue_v MRef v; u32 dhash", NULL},
        {LAYOUT_STRUCT, "GCfuncC", FUNCTION "void *f; TValue upvalue[1]", NULL},
        {LAYOUT_STRUCT, "GCfuncL", FUNCTION "GCRef uvptr[1]", NULL},
        {LAYOUT_UNION, "GCfunc", "GCfuncC c; GCfuncL l", NULL},
        {LAYOUT_STRUCT, "GCtab",
                HEADER "u8 nomm; s8 colo; MRef array; GCRef gclist; GCRef metatable; MRef node; u32 asize; u32 hmask; "
                       "@table_freetop MRef freetop",
                NULL},
        {LAYOUT_STRUCT, "lua_State",
                HEADER "u8 dummy_ffid; u8 status; MRef glref; GCRef gclist; TValue *base; TValue *top; MRef maxstack; "
                       "MRef stack; GCRef openupval; GCRef env; void *cframe; u32 stacksize",
                "thread_size"},
        {LAYOUT_UNION, "GCobj",
                "GChead gch; GCstr str; GCupval uv; lua_State th; GCproto pt; GCfunc fn; GCcdata cd; GCtab tab; "
                "GCudata ud",
                NULL},
        {LAYOUT_STRUCT, "GCState",
                "@gc64 u64 total; @gc32 u32 total; @threshold64 u64 threshold; @threshold32 u32 threshold; "
                "u8 currentwhite; u8 state; u8 nocdatafin; u8 lightudnum; u32 sweepstr; GCRef root",
                LAYOUT_PART},
        {LAYOUT_STRUCT, "StrInternState", "GCRef *tab; u32 mask; u32 num", LAYOUT_PART},
        {LAYOUT_STRUCT, "CType", "u32 info; u32 size; u16 sib; u16 next; GCRef name", NULL},
        {LAYOUT_STRUCT, "CTState", "CType *tab; u32 top; u32 sizetab; lua_State *L; void *g", LAYOUT_PART},
        {LAYOUT_STRUCT, "global_State",
                "@old GCRef *strhash; @old_mask u32 strmask; @old_number u32 strnum; @allocf void *allocf; "
                "@allocd void *allocd; @gc GCState gc; @strings StrInternState str; s32 vmstate; u8 hookmask; "
                "GCRef mainthref; GCRef cur_L; MRef jit_base; MRef ctype_state",
                "state_size"},
        {LAYOUT_END, NULL, NULL, NULL},
};

/* global_State begins with what allocates, and has the table of strings behind its flags, right before vmstate. */
static s64 place_of_strings(const struct luajit_layout *l)
{
	s64 at = (l->g_hookmask.at + 3 + 7) / 8 * 8;

	return l->g_gc_total.at == GC_OFFSET && at + 32 == l->g_vmstate.at ? at : -1;
}

static s64 luajit_types_place(const void *values, const char *name)
{
	const struct luajit_layout *l = values;
	bool gc64 = luajit_gc64(l), old = l->g_gc_total.at == 2 * GC_OFFSET;
	const struct {
		const char *name;
		s64 at;
	} places[] = {{"gc64", gc64 ? 0 : -1}, {"gc32", gc64 ? -1 : 0}, {"freetop", gc64 ? -1 : 20},
	        {"table_freetop", gc64 ? 56 : -1}, {"threshold64", gc64 ? 8 : -1}, {"threshold32", gc64 ? -1 : 4},
	        {"upvalue_v", gc64 ? 32 : 16}, {"thread_size", l->gg_g.at}, {"state_size", l->gg_g.size},
	        {"gc", l->g_gc_total.at}, {"old", old ? 0 : -1}, {"old_mask", old ? 8 : -1},
	        {"old_number", old ? 12 : -1}, {"allocf", l->g_gc_total.at - 16}, {"allocd", l->g_gc_total.at - 8},
	        {"strings", place_of_strings(l)}};

	for (u32 i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (!strcmp(places[i].name, name))
			return places[i].at;
	return -1;
}

#define NEAR_BYTES     (1ull << 31)
#define CHECK_MEMORY   (64ull << 20) /* bytes to look for a VM in: 15 ms */
#define CHECK_ATTEMPTS 5

int luajit_step(struct walk *w);

struct luajit_instance {
	const struct luajit_image *image;
	u64 bias;
	u32 config; /* struct luajit_vm in the arena */
	struct luajit_names *names;
	struct luajit_traces *traces;
};

/* "LuaJIT 2.1.0-beta3", as luaJIT's own version strings begin. */
static bool find_version(struct image *img, char *ret, size_t size)
{
	static const char head[] = "LuaJIT 2.";
	struct image_scan scan;
	const char *p = NULL, *end;
	size_t n = 0;

	if (!image_scan_start(&scan, img, ".rodata", size))
		return false;
	while (!p && image_scan_next(&scan))
		p = memmem(
		        scan.bytes, scan.own + (scan.size > scan.own ? sizeof(head) - 2 : 0), head, sizeof(head) - 1);
	end = (const char *)scan.bytes + scan.size;
	while (p && p<end && * p> ' ' && n + 1 < size) {
		ret[n++] = *p++;
		if (n == 6 && p < end && *p == ' ') /* behind "LuaJIT" */
			ret[n++] = *p++;
	}
	ret[n] = '\0';
	image_scan_end(&scan);
	return n;
}

struct luajit_vm luajit_vm_of(const struct luajit_layout *l)
{
	bool gc64 = luajit_gc64(l);

	return (struct luajit_vm){
	        .l_glref = l->l_glref.at,
	        .l_base = l->l_base.at,
	        .l_maxstack = l->l_maxstack.at,
	        .l_stack = l->l_stack.at,
	        .l_cframe = l->l_cframe.at,
	        .l_gct = l->l_gct.at,
	        .l_status = l->l_status.at,
	        .l_exdata2 = l->l_exdata2.at,
	        .g_cur_l = l->g_cur_l.at,
	        .g_vmstate = l->g_vmstate.at,
	        .g2disp = l->gg_dispatch.at - l->gg_g.at,
	        .fn_ffid = l->fn_ffid.at,
	        .fn_pc = l->fn_pc.at,
	        .fn_f = l->fn_f.at,
	        .proto_size = l->proto_size.at,
	        .proto_sizebc = l->proto_sizebc.at,
	        .cf_nres = gc64 ? 8 : 16,
	        .cf_l = gc64 ? 16 : 24,
	        .cf_pc = gc64 ? 24 : 28,
	        .cf_prev = 32,
	        .cf_r13 = gc64 ? -8 : 8,
	        .bc_patched = LUAJIT_OP_PATCHED,
	        .gc64 = gc64,
	};
}

static void image_destroy(void *data)
{
	struct luajit_image *image = data;

	luajit_blob_free(&image->blob);
	luajit_builtins_free(&image->builtins);
	layout_destroy(image->origins);
	free(image);
}

static struct error *image_probe(struct image *img, void **ret)
{
	char version[LUAJIT_VERSION_MAX] = "";
	struct luajit_image *image;
	struct error *err;
	u64 start, end;

	*ret = NULL;
	if (img->machine != EM_X86_64)
		return NULL;
	err = luajit_blob_find(img, &start, &end);
	if (err || !end)
		return err;
	if (!find_version(img, version, sizeof(version)))
		strcpy(version, "LuaJIT of no version");
	image = calloc(1, sizeof(*image));
	if (!image)
		return &error_no_memory;
	strcpy(image->version, version);
	err = luajit_layout_find(img, version, start, end, &image->origins);
	if (!err) {
		image->layout = image->origins->values;
		err = luajit_blob_analyse(img, start, end, image->layout, &image->blob);
	}
	if (!err)
		err = luajit_builtins_read(img, &image->builtins);
	if (err) {
		image_destroy(image);
		return err;
	}
	image->vm = luajit_vm_of(image->layout);
	luajit_gc_find(img, image->layout, start, &image->gc);
	*ret = image;
	return NULL;
}

/*
 * Does the layout hold here? It is tried on one VM, if one is found soon: a process that has none yet, or is large, is
 * left to the checks of the walker. *only: the one VM, if there is no other. What fails by chance, because the process
 * goes on, does not fail again and again.
 */
static struct error *check_layout(const struct luajit_instance *instance, const struct runtime_process *p, u64 *only)
{
	const struct luajit_image *image = instance->image;
	const struct runtime_check *failed = NULL;
	struct luajit_vms vms;
	struct error *err = luajit_vms_find(image, instance->bias, p, CHECK_MEMORY, &vms);

	if (err)
		return err;
	for (u32 i = 0; vms.n && (!i || failed) && i < CHECK_ATTEMPTS; i++) {
		struct luajit_checked vm = {.l = image->layout, .p = p, .g = vms.g[0]};

		failed = runtime_check_failed(&luajit_checks, &vm);
		if (!luajit_vms_is_vm(image, instance->bias, p->memory, vms.g[0]))
			failed = NULL;
	}
	if (failed)
		err = error_hint(error_new(ERROR_UNSUPPORTED,
		                         "process %d: LuaJIT's structures differ from the layout: \"%s\" (%s)", p->pid,
		                         failed->name, failed->what),
		        "its Lua frames are left out; is this a fork of LuaJIT, or a build that YRT_LAYOUTS describes "
		        "wrongly?");
	*only = vms.n == 1 ? vms.g[0] : 0;
	free(vms.g);
	return err;
}

static struct error *attach(const struct runtime_process *p, void *data, u64 bias, void **ret)
{
	const struct luajit_image *image = data;
	struct luajit_instance *instance = calloc(1, sizeof(*instance));
	struct luajit_vm vm = image->vm;
	struct error *err;

	if (!instance)
		return &error_no_memory;
	instance->image = image;
	instance->bias = bias;
	instance->names = luajit_names_create(image);
	instance->traces = luajit_traces_create(image);
	err = instance->names && instance->traces ? check_layout(instance, p, &vm.only) : &error_no_memory;
	if (!err)
		err = arena_alloc(p->arena, sizeof(struct luajit_vm), &instance->config);
	if (err) {
		luajit_names_destroy(instance->names);
		luajit_traces_destroy(instance->traces);
		free(instance);
		return err;
	}
	vm.resume_interp = image->blob.behind_call ? bias + image->blob.behind_call : 0;
	vm.resume_exit = image->blob.behind_exit ? bias + image->blob.behind_exit : 0;
	memcpy(arena_at(p->arena, instance->config, sizeof(vm)), &vm, sizeof(vm));
	*ret = instance;
	return NULL;
}

static void detach(void *data, const struct runtime_process *p)
{
	struct luajit_instance *instance = data;

	arena_free(p->arena, instance->config, sizeof(struct luajit_vm));
	luajit_names_destroy(instance->names);
	luajit_traces_destroy(instance->traces);
	free(instance);
}

/* Machine code of traces lies where a call can reach the VM. */
static bool in_reach(const struct luajit_instance *instance, u64 addr)
{
	u64 vm = instance->bias + instance->image->blob.start;

	return (addr > vm ? addr - vm : vm - addr) < NEAR_BYTES;
}

/* Other code than the VM's may lie there, too. */
static bool is_trace_area(const struct mapping *m)
{
	return m->anonymous && (m->prot & PROT_EXEC) && m->name[0] != '[';
}

typedef struct error *add_region(void *ctx, const struct runtime_region *r);

/* All of it first: the rows of the whole make one table, which the stretches then share. */
static struct error *add_blob(const struct luajit_instance *instance, add_region *add, void *ctx)
{
	const struct luajit_blob *blob = &instance->image->blob;
	struct runtime_region r = {.part = LUAJIT_INTERP,
	        .start = blob->start + instance->bias,
	        .end = blob->end + instance->bias,
	        .vm = instance->config,
	        .entries = blob->entries,
	        .nentries = blob->nentries};
	struct error *err = add(ctx, &r);

	for (u32 i = 0; !err && i < blob->nstretches; i++) {
		r.part = blob->stretches[i].part;
		r.start = blob->stretches[i].start + instance->bias;
		r.end = blob->stretches[i].end + instance->bias;
		err = add(ctx, &r);
	}
	return err;
}

/*
 * All that a call can reach: areas come and go faster than one can look (jit.flush), and are not executable while a
 * trace is written.
 */
static struct error *add_reach(const struct luajit_instance *instance, add_region *add, void *ctx)
{
	u64 vm = instance->bias + instance->image->blob.start;
	struct runtime_region r = {.part = LUAJIT_GAP,
	        .unmapped = true,
	        .vm = instance->config,
	        .start = vm > NEAR_BYTES ? vm - NEAR_BYTES : 0,
	        .end = vm + NEAR_BYTES};

	return add(ctx, &r);
}

static struct error *regions(void *data, const struct runtime_process *p, add_region *add, void *ctx)
{
	const struct luajit_instance *instance = data;
	struct error *err = add_blob(instance, add, ctx);

	for (u32 i = 0; !err && i < p->nmappings; i++) {
		const struct mapping *m = &p->mappings[i];
		struct runtime_region r = {
		        .part = LUAJIT_TRACE, .vm = instance->config, .start = m->start, .end = m->end};

		if (is_trace_area(m) && in_reach(instance, m->start))
			err = add(ctx, &r);
	}
	return err ? err : add_reach(instance, add, ctx);
}

static u32 resume(void *data, bool *exact)
{
	return ((const struct luajit_instance *)data)->config;
}

static bool name_frame(
        void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, struct frame_name *ret)
{
	struct luajit_instance *instance = data;

	return luajit_name_frame(instance->names, p, frames, i, n, ret);
}

static struct error *inspect(void *data, const struct runtime_process *p, struct report *out)
{
	struct luajit_instance *instance = data;

	return luajit_inspect(instance->image, instance->bias, p, out);
}

static bool is_script(const struct frame *f)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_LUAJIT && !(f->detail & LUAJIT_JIT);
}

/*
 * The compiler records an instruction before it is run: a builtin, or a function in C, whose call it works on has not
 * begun. Leaves that frame out: the first one below frames[i] that is not native.
 */
static u32 without_recorded(const struct frame *frames, u32 i, u32 n, struct frame *ret, u32 max, u32 *eaten)
{
	u64 work = frame_addr(&frames[i]) - LUAJIT_WORK;
	u32 called = i + 1;

	*eaten = 0;
	if (luajit_function(&frames[i]) != LUAJIT_FAST || work < LUAJIT_VMST_RECORD || work > LUAJIT_VMST_ASM)
		return 0;
	while (called < n && called - i < max && frame_kind(&frames[called]) == FRAME_NATIVE)
		called++;
	if (called == n || called - i >= max || !is_script(&frames[called]) ||
	        luajit_function(&frames[called]) == LUAJIT_LUA ||
	        frame_addr(&frames[called]) - LUAJIT_WORK < LUAJIT_VMST_MAX)
		return 0;
	memcpy(ret, frames + i, (called - i) * sizeof(*frames));
	*eaten = called - i + 1;
	return called - i;
}

static u32 expand(void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, u32 flags,
        struct frame *ret, u32 max, u32 *eaten)
{
	struct luajit_instance *instance = data;

	if (frame_kind(&frames[i]) == FRAME_NATIVE)
		return luajit_gc_order(&instance->image->gc, instance->bias, frames, i, n, ret, max, eaten);
	if (is_script(&frames[i]))
		return without_recorded(frames, i, n, ret, max, eaten);
	return luajit_expand(instance->traces, p->memory, frames + i, n - i, flags, ret, max, eaten);
}

/* How C enters the VM and the VM enters C: the Lua frames next to them show the same. */
static bool is_runtime_internal(void *data, const char *symbol)
{
	static const char *const glue[] = {
	        "lua_call", "lua_pcall", "lua_cpcall", "lua_resume", "lua_yield", "luaL_callmeta"};

	for (u32 i = 0; i < sizeof(glue) / sizeof(*glue); i++)
		if (!strcmp(symbol, glue[i]))
			return true;
	return !strncmp(symbol, "lj_vm_", 6) || !strncmp(symbol, "lj_BC_", 6) || !strncmp(symbol, "lj_ff_", 6);
}

static struct error *list_tasks(void *data, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	const struct luajit_instance *instance = data;

	return luajit_tasks(instance->image, instance->bias, instance->config, p, add, ctx);
}

static struct error *heap_open(void *data, const struct runtime_process *p, struct heap *h, void **ret)
{
	const struct luajit_instance *instance = data;

	return luajit_heap_open(instance->image, instance->bias, instance->names, p, h, ret);
}

static const struct runtime_heap_ops heap = {
        .objects = "objects",
        .text = "Of LuaJIT 2.1 all that the collector marks is read: tables, functions by where they are defined, "
                "upvalues by name, threads by the functions on their stacks, traces. Of strings only lengths.",
        .open = heap_open,
        .close = luajit_heap_close,
        .roots = luajit_heap_roots,
        .all = luajit_heap_all,
        .object = luajit_heap_object,
        .copied = true,
        .blocks = luajit_heap_own,
};
static struct error *list_calls(void *data, const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	const struct luajit_instance *instance = data;

	return luajit_calls(instance->image, instance->bias, instance->names, p, pattern, add, ctx);
}

static void inlined_calls(void *data, const struct runtime_process *p, const struct runtime_callee *of,
        void (*add)(void *ctx, const char *into), void *ctx)
{
	const struct luajit_instance *instance = data;

	luajit_calls_inlined(instance->image, instance->bias, instance->names, p, of, add, ctx);
}

static void write_value(void *data, const struct runtime_process *p, const struct runtime_value *v, FILE *out)
{
	struct luajit_instance *instance = data;

	luajit_value(instance->image, v, out);
}

static const struct runtime_calls_ops calls = {.form = "lua:FILE:FUNCTION or lua:FILE:LINE",
        .list = list_calls,
        .inlined = inlined_calls,
        .value = write_value};

/*
 * Its lua_Alloc, through which all objects are made: by lua_newstate(), also LuaJIT's own. It is the first member of
 * global_State, or comes behind the table of strings (before 2020): whichever is code.
 */
static u64 allocator_of(const struct runtime_process *p, u64 g)
{
	u64 words[3];

	if (!memory_read(p->memory, words, sizeof(words), g))
		return 0;
	for (u32 i = 0; i < 3; i += 2) {
		const struct mapping *m = mapping_find(p->mappings, p->nmappings, words[i]);

		if (m && m->image && m->prot & PROT_EXEC)
			return words[i];
	}
	return 0;
}

static u32 find_allocators(
        void *data, const struct runtime_process *p, struct runtime_allocator ret[RUNTIME_ALLOCATORS_MAX], u32 *unknown)
{
	const struct luajit_instance *instance = data;
	struct luajit_vms vms = {0};
	u32 n = 0;

	error_free(luajit_vms_find(instance->image, instance->bias, p, LUAJIT_VMS_MEMORY, &vms));
	for (u32 i = 0; i < vms.n && n < RUNTIME_ALLOCATORS_MAX; i++) {
		u64 addr = allocator_of(p, vms.g[i]);

		if (addr && (!n || ret[n - 1].addr != addr))
			ret[n++] = (struct runtime_allocator){"lua_Alloc", addr, ALLOC_RESIZE_OF, 0};
	}
	free(vms.g);
	return n;
}

static const struct runtime_allocator_ops allocator = {
        .find = find_allocators, .missing = "no VM is there yet, or its memory is not read: `yrt inspect` shows VMs"};

static const struct runtime_tasks_ops tasks = {.kind = "coroutine", .kinds = "coroutines", .list = list_tasks};

static const struct layout *layout_of(const void *data)
{
	const struct luajit_instance *instance = data;

	return instance->image->origins;
}

/* The main thread of each VM, which begins its GG_State. */
static u32 find_roots(const void *data, const struct runtime_process *p, u64 ret[RUNTIME_ROOTS_MAX])
{
	const struct luajit_instance *instance = data;
	struct luajit_vms vms = {0};
	u32 n = 0;

	error_free(luajit_vms_find(instance->image, instance->bias, p, LUAJIT_VMS_MEMORY, &vms));
	for (; n < vms.n && n < RUNTIME_ROOTS_MAX; n++)
		ret[n] = vms.g[n] - instance->image->layout->gg_g.at;
	free(vms.g);
	return n;
}

static const struct runtime_types_ops types = {.types = luajit_types,
        .place = luajit_types_place,
        .layout = layout_of,
        .root = "_luajit",
        .root_type = "lua_State",
        .roots = find_roots};

const struct runtime_ops luajit_runtime = {
        .name = "luajit",
        .view = "lua",
        .yield = "lua_yield",
        .language = "Lua",
        .words = {.interpreted = "Lua interpreted", .jit = "Lua compiled"},
        .id = RUNTIME_LUAJIT,
        .supported = "LuaJIT 2.1, beta3 of 2017 to 2026 (x86-64, GC64 or not, stripped or linked into a host), "
                     "interpreter and traces",
        .layout = &luajit_layout_schema,
        .files = (const char *const[]){"luajit", NULL},
        .resume = resume,
        .image_probe = image_probe,
        .image_destroy = image_destroy,
        .attach = attach,
        .detach = detach,
        .regions = regions,
        .name_frame = name_frame,
        .expands_native = true,
        .expand = expand,
        .is_runtime_internal = is_runtime_internal,
        .inspect = inspect,
        .tasks = &tasks,
        .heap = &heap,
        .calls = &calls,
        .allocator = &allocator,
        .types = &types,
};
