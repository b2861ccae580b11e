/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cython_generator.h"
#include "cython_name.h"
#include "mypyc_name.h"
#include "now.h"
#include "python_alloc.h"
#include "python_async.h"
#include "python_calls.h"
#include "python_check.h"
#include "python_fatal.h"
#include "python_fold.h"
#include "python_gc.h"
#include "python_glue.h"
#include "python_heap.h"
#include "python_image.h"
#include "python_layout.h"
#include "python_methods.h"
#include "python_names.h"
#include "python_tasks.h"
#include "python_thread_names.h"
#include "python_threads.h"
#include "python_values.h"
#include "python_waits.h"
#include "report.h"
#include "runtime.h"
#include "runtime_types.h"
#include "binary/image_calls.h"
#include "layout/layout_types.h"
#include "process/own_tid.h"
#include "symbols/c_names.h"
#include "symbols/symbols.h"
#include "symbols/translated.h"
#include "symbols/tsd.h"

/* What `yrt inspect` reports about a Python. */

#define THREADS_MAX 512

static void report_module(
        const struct python_image *image, u64 bias, const struct runtime_process *p, struct report *out)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, image->eval.ranges[0].start + bias);
	u32 v = image->version;

	image_report(m ? m->image : NULL, out);
	report_text(out, "version", NULL, "%u.%u.%u", v >> 24, v >> 16 & 0xff, v >> 8 & 0xff);
	report_text(out, "load bias", NULL, "0x%lx", bias);
	report_text(out, "_PyRuntime", NULL, "0x%lx", image->runtime + bias);
}

static void report_code(const struct python_image *image, u64 bias, struct report *out)
{
	const struct python_eval *eval = &image->eval;

	report_section(out, "code", NULL);
	for (u32 i = 0; i < eval->n; i++)
		report_text(out, i ? "cold part" : "eval loop", NULL, "0x%lx-0x%lx", eval->ranges[i].start + bias,
		        eval->ranges[i].end + bias);
	for (u32 i = 0; i < eval->noutside; i++)
		report_text(out, "not linked", "before its first store to the thread state, or behind the last",
		        "0x%lx-0x%lx", eval->outside[i].start + bias, eval->outside[i].end + bias);
	if (image->vm.linkage == PYTHON_FRAME_OBJECT)
		return;
	if (!eval->dispatches)
		report_text(out, "bytecodes", "built with --with-tail-call-interp", "functions of their own");
	if (eval->ncopies)
		report_number(out, "copies of the loop", eval->ncopies, "in other functions");
	if (eval->nbare)
		report_number(out, "without a frame", eval->nbare, "stretches that are described wrongly");
	report_text(out, "linked from", "the beginning's stores were followed", "0x%lx", eval->link_end + bias);
	if (image->vm.linkage != PYTHON_NO_CFRAME)
		report_number(out, "_PyCFrame below the CFA", eval->cframe_below, "bytes");
	if (image->vm.linkage != PYTHON_ENTRY_FLAG)
		report_number(out, "entry frame below the CFA", eval->entry_below, "bytes");
}

/* The offsets of the loads from the thread pointer, the last one's is that of the state's address. */
static void report_way(const struct python_vm *vm, bool variable, struct report *out)
{
	const char *how =
	        variable ? "a thread-local variable, by the code that reads it" : "a key's value, seen in the process";

	if (vm->nvia == 2)
		report_text(out, "found by", how, "%d, %d, %d bytes", vm->via[0], vm->via[1], vm->slot);
	else if (vm->nvia)
		report_text(out, "found by", how, "%d, %d bytes", vm->via[0], vm->slot);
	else
		report_text(out, "found by", how, "%d bytes", vm->slot);
}

/* How its threads find their thread state; 3.11 and 3.12 need it not. */
static void report_threads(const struct python_image *image, u64 bias, const struct python_vm *vm,
        const struct runtime_process *p, struct report *out)
{
	struct python_thread threads[THREADS_MAX];
	u32 n = python_threads(p->memory, image->layout, image->runtime + bias, threads, THREADS_MAX), agree = 0;

	report_section(out, "threads", NULL);
	report_number(out, "thread states", n, NULL);
	if (!python_needs_thread(vm)) {
		report_text(out, "found by", NULL, "nothing: each native frame leads to its Python frames");
		return;
	}
	for (u32 i = 0; (vm->slot || vm->nvia) && i < n; i++) {
		u64 state;

		agree += python_threads_state(p->memory, vm, threads[i].pointer, &state) && state == threads[i].state;
	}
	if (vm->slot || vm->nvia)
		report_way(vm, image->tls.model, out);
	else
		report_text(out, "found by", NULL, vm->key ? "the TSS key at 0x%lx" : "not known yet", vm->key);
	report_text(out, "states found so", agree == n ? "ok" : "differs: threads begin or end, or have several",
	        "%u of %u", agree, n);
}

static struct error *python_inspect(const struct python_image *image, u64 bias, const struct python_vm *vm,
        const struct runtime_process *p, struct report *out)
{
	struct python_checked subject = {.image = image, .l = image->layout, .mem = p->memory, .bias = bias};

	report_module(image, bias, p, out);
	report_code(image, bias, out);
	report_threads(image, bias, vm, p, out);
	runtime_check_inspect(&python_checks, &subject, out);
	layout_report(image->origins, out);
	return NULL;
}

/* What compilers made of Python: Cython (cython_name.h) and mypyc (mypyc_name.h). */

static bool is_symbol(const char *symbol)
{
	return cython_is_symbol(symbol) || mypyc_is_symbol(symbol);
}

static bool demangle(const char *name, char *ret, size_t size)
{
	return cython_demangle(name, ret, size) || mypyc_demangle(name, ret, size);
}

static bool resolve(struct image *img, const char *symbol, char *ret, size_t size)
{
	return cython_resolve(img, symbol, ret, size) || mypyc_resolve(img, symbol, ret, size);
}

static enum translated_layer layer(const char *symbol)
{
	enum translated_layer found = cython_layer(symbol);

	return found ? found : mypyc_layer(symbol);
}

static const struct translated_ops python_translated = {
        .is_symbol = is_symbol,
        .demangle = demangle,
        .resolve = resolve,
        .layer = layer,
        .is_glue = cython_is_glue,
};

/*
 * CPython's structures for `yrt y` (runtime_types.h): what the layout (python_layout.h) has, the heads of objects and
 * types (Include/object.h, the same from 3.6 on), and the collector's lists of 3.10 to 3.12 (pycore_interp.h: gc; where
 * it is in each minor version was read from debug information of 3.10.13, 3.11.2, 3.11.7 and 3.12.1).
 */

#define PART LAYOUT_PART

static const struct layout_type python_types[] = {
        {LAYOUT_STRUCT, "PyObject", "s64 ob_refcnt; PyTypeObject *ob_type", NULL},
        {LAYOUT_STRUCT, "PyVarObject", "PyObject ob_base; s64 ob_size", NULL},
        {LAYOUT_STRUCT, "PyTypeObject",
                "PyVarObject ob_base; char *tp_name; s64 tp_basicsize; s64 tp_itemsize; @168 u64 tp_flags", PART},
        {LAYOUT_STRUCT, "PyGC_Head", "u64 _gc_next; u64 _gc_prev", NULL},
        {LAYOUT_STRUCT, "gc_generation", "PyGC_Head head; s32 threshold; s32 count", NULL},
        {LAYOUT_STRUCT, "_gc_runtime_state", "@24 gc_generation generations[3]", PART},
        {LAYOUT_STRUCT, "PyCodeObject",
                "@layout PyObject *co_filename; @layout PyObject *co_name; @layout PyObject *co_qualname; "
                "@layout PyObject *co_consts; @layout PyObject *co_names; @layout s32 co_firstlineno",
                PART},
        {LAYOUT_STRUCT, "_PyInterpreterFrame",
                "@layout PyCodeObject *f_code; @layout _PyInterpreterFrame *previous; @layout u16 *prev_instr; "
                "@layout u8 owner",
                PART},
        {LAYOUT_STRUCT, "_PyCFrame", "@layout _PyInterpreterFrame *current_frame", PART},
        {LAYOUT_STRUCT, "PyThreadState",
                "@layout PyThreadState *next; @layout PyInterpreterState *interp; @layout u64 thread_id; "
                "@layout _PyCFrame *cframe; @layout _PyInterpreterFrame *current_frame",
                PART},
        {LAYOUT_STRUCT, "PyInterpreterState",
                "@layout PyInterpreterState *next; @layout PyThreadState *tstate_head; @gc _gc_runtime_state gc", PART},
        {LAYOUT_END, NULL, NULL, NULL},
};

/* PyInterpreterState.gc, of the version that has these members; negative: another one. */
static s64 place_of_gc(const struct python_layout *l)
{
	if (l->fo_code.size)
		return l->ts_cframe.size ? 616 : -1; /* 3.10 */
	if (l->f_is_entry.size)
		return 648;                                    /* 3.11 */
	return l->f_code.size && l->ts_cframe.size ? 112 : -1; /* 3.12 */
}

static s64 python_types_place(const void *values, const char *name)
{
	return !strcmp(name, "gc") ? place_of_gc(values) : -1;
}

/*
 * A name for the static function in which threads wait for the GIL, where the interpreter has no symbols for it
 * (Debian's): take_gil() of Python/ceval_gil.c (ceval_gil.h up to 3.11), from 3.13 on _PyThreadState_Attach() of
 * Python/pystate.c. The loop of the interpreter calls it, too, and by nothing else could its waits be recognised.
 */

#define WAIT          "pthread_cond_timedwait@plt"
#define FUNCTION_MAX  2048
#define FUNCTION_SIZE 1024 /* of one without a symbol: what follows it may count, too */
#define CALLEES_MAX   16
#define DEPTH         3 /* _PyThreadState_Attach(), _PyEval_AcquireLock(), take_gil() */

struct callees {
	u64 at[CALLEES_MAX];
	u32 n;
};

static bool add(void *ctx, u64 target)
{
	struct callees *c = ctx;

	c->at[c->n++] = target;
	return c->n < CALLEES_MAX;
}

static struct callees callees_of(struct image *img, u64 start, u64 end)
{
	struct callees ret = {.n = 0};

	image_calls(img, start, end < start + FUNCTION_MAX ? end : start + FUNCTION_MAX, add, &ret);
	return ret;
}

static struct callees callees_by_name(struct image *img, const char *name)
{
	struct symbol symbol;

	return symbols_lookup(img, name, &symbol) ? callees_of(img, symbol.start, symbol.end)
	                                          : (struct callees){.n = 0};
}

static bool has_name(struct image *img, u64 addr)
{
	struct symbol symbol;

	return symbols_find(img, addr, &symbol) && symbol.start == addr;
}

static bool is_wait(struct image *img, u64 addr)
{
	struct symbol symbol;

	return symbols_find(img, addr, &symbol) && symbol.start == addr && !strcmp(symbol.name, WAIT);
}

static bool leads_to_wait(struct image *img, u64 addr, u32 depth)
{
	struct callees callees;

	if (is_wait(img, addr))
		return true;
	if (!depth)
		return false;
	callees = callees_of(img, addr, addr + FUNCTION_SIZE);
	for (u32 i = 0; i < callees.n; i++)
		if (leads_to_wait(img, callees.at[i], depth - 1))
			return true;
	return false;
}

static bool has(const struct callees *c, u64 addr)
{
	for (u32 i = 0; i < c->n; i++)
		if (c->at[i] == addr)
			return true;
	return false;
}

/*
 * It is the one function without a name that PyEval_RestoreThread() and PyEval_AcquireThread() both call and that leads
 * to pthread_cond_timedwait(). Adds nothing if there is none, or more. The symbols of img must be there.
 */
static struct error *python_take_gil(struct image *img, struct c_names *ret)
{
	struct callees restore = callees_by_name(img, "PyEval_RestoreThread"), acquire;
	u64 found = 0;

	if (!restore.n) /* most files are not the interpreter */
		return NULL;
	acquire = callees_by_name(img, "PyEval_AcquireThread");
	for (u32 i = 0; i < restore.n; i++) {
		u64 addr = restore.at[i];

		if (addr == found || !has(&acquire, addr) || has_name(img, addr) || !leads_to_wait(img, addr, DEPTH))
			continue;
		if (found)
			return NULL;
		found = addr;
	}
	return found ? c_names_add(ret, found, "take_gil") : NULL;
}

/*
 * The GIL, for --gil. While it is locked, the thread state that took it last shows the thread that holds it (struct
 * _gil_runtime_state of Include/internal/pycore_gil.h, the same from 3.7 to 3.14). Up to 3.11 there is one for all
 * interpreters, from 3.12 on an interpreter may have its own.
 */

#define HEAD_WITH_GIL 8 /* PyObject.ob_type: a free-threaded build has more before it */

/* NULL if the layout of image says where it is; free-threaded builds have none. */
static struct error *python_gil_known(const struct python_image *image, pid_t pid)
{
	const struct python_layout *l = image->layout;
	struct error *err;

	if (l->ob_type.at != HEAD_WITH_GIL)
		err = error_new(
		        ERROR_UNSUPPORTED, "process %d runs a free-threaded Python: there is no GIL to hold", pid);
	else if (!l->interp_gil.size && !l->runtime_gil.size)
		err = error_new(ERROR_UNSUPPORTED, "process %d: it is not known where Python %u.%u has its GIL", pid,
		        image->version >> 24, image->version >> 16 & 0xff);
	else
		return NULL;
	return error_hint(err, "leave out --gil");
}

/* Has the walker report who holds it. runtime: address of _PyRuntime. */
static void python_gil_ask(const struct python_layout *l, u64 runtime, struct python_vm *vm)
{
	vm->wants_lock = 1;
	vm->gil = l->interp_gil.size ? 0 : runtime + l->runtime_gil.at;
	vm->interp_gil = l->interp_gil.at;
}

#define THREADS_LOOKED_AT 64

int python_step(struct walk *w);

struct python_instance {
	const struct python_image *image;
	struct python_image *copied; /* it is this one: python_image_copied() */
	u64 bias;
	u32 config; /* struct python_vm in the arena */
	struct python_names *names;
	struct python_thread_names threads;
	struct python_uvloop uvloop[PYTHON_UVLOOP_MODULES];
	struct python_gc gc;
	u64 rlock_type; /* python_waits.h */
	struct runtime_belief belief;
	bool threadless; /* it has no thread state yet that shows where threads find theirs */
	bool makes_code; /* it was started so that it will */
};

/* The TSS key's address; 0 if its place is not known (3.13 does not say where it is). */
static u64 key_address(const struct python_instance *instance)
{
	const struct python_layout *l = instance->image->layout;
	struct layout_member key = l->runtime_key.size ? l->runtime_key : l->runtime_key_311;

	return key.size == 8 ? instance->bias + instance->image->runtime + key.at : 0;
}

static u16 values(const struct runtime_process *p)
{
	u16 ret = 0;

	for (u32 i = 0; !ret && i < p->nmappings; i++)
		if (p->mappings[i].image && p->mappings[i].prot & PROT_EXEC)
			ret = tsd_values(p->mappings[i].image);
	return ret;
}

/* Is it one? A flag and the number (Py_tss_t); in a forked child another one than before. */
static bool is_key(const struct runtime_process *p, u64 address)
{
	u32 key[2];

	return memory_read(p->memory, key, sizeof(key), address) && key[0] <= 1 && key[1] < PYTHON_TSS_VALUES;
}

/* By the key itself, where that is known, and until thread states are there that show whether it is right. */
static void follow_key(const struct python_instance *instance, u16 block, struct python_vm *vm)
{
	u64 key = vm->key ? vm->key : instance->image->key + instance->bias;

	if (!block || (!vm->key && !instance->image->key))
		return;
	vm->key = key;
	vm->by_key = true;
	vm->via[0] = block;
	vm->nvia = 1;
}

/* A process that has just been started has no thread state yet: looked for again. False: not found. */
static bool find_slot(const struct python_instance *instance, const struct runtime_process *p)
{
	struct python_vm *vm = arena_at(p->arena, instance->config, sizeof(*vm));
	struct python_thread threads[THREADS_LOOKED_AT];
	struct python_vm found = *vm;
	u16 block;
	u32 n;

	if (vm->slot || (vm->nvia && !vm->by_key))
		return true;
	block = values(p);
	follow_key(instance, block, vm);
	n = python_threads(p->memory, instance->image->layout, instance->bias + instance->image->runtime, threads,
	        THREADS_LOOKED_AT);
	if (!python_threads_find(p->memory, &instance->image->tls, instance->bias, block, threads, n, &found))
		return vm->nvia;
	vm->by_key = vm->by_key && is_key(p, vm->key);
	memcpy(vm->via, found.via, sizeof(vm->via));
	vm->nvia = found.nvia;
	vm->slot = found.slot;
	return true;
}

static void detach(void *data, const struct runtime_process *p)
{
	struct python_instance *instance = data;

	arena_free(p->arena, instance->config, sizeof(struct python_vm));
	python_names_destroy(instance->names);
	python_thread_names_free(&instance->threads);
	free(instance->copied);
	free(instance);
}

static struct error *attach(const struct runtime_process *p, void *data, u64 bias, void **ret)
{
	const struct python_image *image = data;
	struct python_instance *instance = calloc(1, sizeof(*instance));
	struct python_vm vm = image->vm;
	struct error *err = p->features & FEATURE_LOCK ? python_gil_known(image, p->pid) : NULL;

	if (!err)
		err = instance ? python_image_copied(image, bias, p, &instance->copied) : &error_no_memory;
	if (err) {
		free(instance);
		return err;
	}
	image = instance->copied ? instance->copied : image;
	instance->image = image;
	instance->bias = bias;
	instance->makes_code = python_jit_expected(image, p->pid);
	instance->names = python_names_create(image->layout, bias + image->code_type);
	err = instance->names ? arena_alloc(p->arena, sizeof(vm), &instance->config) : &error_no_memory;
	if (err) {
		python_names_destroy(instance->names);
		free(instance->copied);
		free(instance);
		return err;
	}
	vm.code_type = bias + image->code_type;
	vm.frame_type = bias + image->frame_type;
	vm.jit_return = image->jit.ret ? bias + image->jit.ret : 0;
	vm.jit_locals = image->jit.locals;
	if (p->features & FEATURE_LOCK)
		python_gil_ask(image->layout, bias + image->runtime, &vm);
	vm.interpreters = bias + image->runtime + image->layout->runtime_interpreters.at;
	vm.current = image->current ? bias + image->current : 0;
	vm.key = key_address(instance);
	vm.resume_pc = image->vm.resume_pc ? bias + image->vm.resume_pc : 0;
	memcpy(arena_at(p->arena, instance->config, sizeof(vm)), &vm, sizeof(vm));
	instance->belief.since_ns = now_ns();
	*ret = instance;
	return NULL;
}

static struct python_checked checked(const struct python_instance *instance, const struct runtime_process *p)
{
	const struct python_image *image = instance->image;

	return (struct python_checked){.image = image, .l = image->layout, .mem = p->memory, .bias = instance->bias};
}

static bool is_believed(const struct python_instance *instance)
{
	return instance->belief.state == BELIEVED;
}

static bool starting(void *data)
{
	const struct python_instance *instance = data;

	return runtime_is_starting(&instance->belief, instance->threadless);
}

typedef struct error *add_region(void *ctx, const struct runtime_region *r);

static struct error *claim(
        const struct python_instance *instance, enum python_part part, u64 start, u64 end, add_region *add, void *ctx)
{
	struct runtime_region r = {
	        .part = part, .vm = instance->config, .start = start + instance->bias, .end = end + instance->bias};

	return add(ctx, &r);
}

static bool is_greenlet(const struct mapping *m)
{
	const char *slash = m->image ? strrchr(m->image->path, '/') : NULL;

	return slash && (m->prot & PROT_EXEC) && !strncmp(slash + 1, "_greenlet.", 10);
}

/* The module of greenlet, on which gevent and eventlet stand, by its file's name: it is often stripped. */
static struct error *greenlets(
        const struct python_instance *instance, const struct runtime_process *p, add_region *add, void *ctx)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < p->nmappings; i++) {
		const struct mapping *m = &p->mappings[i];
		struct runtime_region r = {
		        .part = PYTHON_GREENLET, .vm = instance->config, .start = m->start, .end = m->end};

		if (!is_greenlet(m))
			continue;
		(void)find_slot(instance, p); /* of 3.11 and 3.12 only greenlets need thread states */
		err = add(ctx, &r);
	}
	return err;
}

static struct error *regions(void *data, const struct runtime_process *p, add_region *add, void *ctx)
{
	struct python_instance *instance = data;
	const struct python_eval *eval = &instance->image->eval;
	struct python_checked subject = checked(instance, p);
	struct error *err = runtime_believe(&instance->belief, &python_checks, &subject, p, "Python");

	if (err || !is_believed(instance))
		return err;
	instance->threadless = python_needs_thread(arena_at(p->arena, instance->config, sizeof(struct python_vm))) &&
	                       !find_slot(instance, p);
	if (instance->image->vm.resume_pc)
		(void)find_slot(instance, p);
	if (p->features & FEATURE_AWAITERS)
		python_async_find(instance->image, instance->bias, p,
		        arena_at(p->arena, instance->config, sizeof(struct python_vm)));
	err = python_jit_regions(instance->image, p, instance->config, instance->makes_code, add, ctx);
	err = err ? err : greenlets(instance, p, add, ctx);
	for (u32 i = 0; !err && i < eval->n; i++)
		err = claim(instance, PYTHON_EVAL, eval->ranges[i].start, eval->ranges[i].end, add, ctx);
	for (u32 i = 0; !err && i < eval->ntorn; i++)
		err = claim(
		        instance, PYTHON_TORN + eval->torn[i].reg, eval->torn[i].start, eval->torn[i].end, add, ctx);
	for (u32 i = 0; !err && i < eval->ninlined; i++)
		err = claim(instance, PYTHON_INLINED + eval->inlined[i].place, eval->inlined[i].start,
		        eval->inlined[i].end, add, ctx);
	for (u32 i = 0; !err && i < eval->nbare; i++)
		err = claim(
		        instance, PYTHON_BARE + eval->bare[i].depth, eval->bare[i].start, eval->bare[i].end, add, ctx);
	for (u32 i = 0; !err && i < eval->noutside; i++)
		err = claim(instance, PYTHON_ENTER, eval->outside[i].start, eval->outside[i].end, add, ctx);
	if (err || eval->noutside)
		return err;
	err = claim(instance, PYTHON_ENTER, eval->ranges[0].start, eval->enter_end, add, ctx);
	return err ? err : claim(instance, PYTHON_LINK, eval->enter_end, eval->link_end, add, ctx);
}

static bool name_frame(
        void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, struct frame_name *ret)
{
	struct python_instance *instance = data;

	if (python_fold_name(&frames[i])) {
		snprintf(ret->name, sizeof(ret->name), "%s", python_fold_name(&frames[i]));
		ret->identity = frame_addr(&frames[i]);
		return true;
	}
	return python_name_frame(instance->names, p->memory, &frames[i], ret);
}

static u32 expand(void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, u32 flags,
        struct frame *ret, u32 max, u32 *eaten)
{
	struct python_instance *instance = data;
	const struct mapping *m =
	        mapping_find(p->mappings, p->nmappings, instance->bias + instance->image->eval.ranges[0].start);
	u32 put = m && m->image ? python_gc_put(&instance->gc, m->image, instance->bias, frames, i, n, ret, max, eaten)
	                        : 0;

	return put ? put : python_fold(instance->names, instance->uvloop, p, frames, i, n, flags, ret, eaten);
}

static bool thread_name(void *data, const struct runtime_process *p, pid_t tid, char *ret, size_t size)
{
	struct python_instance *instance = data;
	const struct python_image *image = instance->image;
	u32 left = PYTHON_READS_MAX;
	struct python_reader r = {.mem = p->memory, .l = image->layout, .version = image->version, .left = &left};

	return is_believed(instance) && python_thread_name(&instance->threads, &r, instance->bias + image->runtime,
	                                        (u64)own_tid(p->pid, tid), tid == p->first, ret, size);
}

static bool waits_for(
        void *data, const struct runtime_process *p, const struct runtime_thread *t, struct runtime_wait *ret)
{
	struct python_instance *instance = data;

	return is_believed(instance) &&
	       python_waits_for(instance->image, instance->bias, &instance->rlock_type, p, t, ret);
}

static struct error *list_tasks(void *data, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	struct python_instance *instance = data;

	return is_believed(instance)
	               ? python_tasks(instance->image, instance->bias, instance->names, PYTHON_TASK_READS, p, add, ctx)
	               : NULL;
}

static struct error *list_calls(void *data, const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	struct python_instance *instance = data;
	bool greenlets = false;

	for (u32 i = 0; i < p->nmappings; i++)
		greenlets |= is_greenlet(&p->mappings[i]);
	return is_believed(instance)
	               ? python_calls(instance->image, instance->bias, instance->names, greenlets, p, pattern, add, ctx)
	               : NULL;
}

static void write_value(void *data, const struct runtime_process *p, const struct runtime_value *v, FILE *out)
{
	struct python_instance *instance = data;
	const struct python_image *image = instance->image;
	u32 left = PYTHON_VALUE_READS;
	struct python_reader r = {.mem = p->memory, .l = image->layout, .version = image->version, .left = &left};

	python_value(&r, image, instance->bias, v, out);
}

static u32 suspended(void *data, const struct runtime_process *p, u64 frame, struct frame *ret, u32 max)
{
	struct python_instance *instance = data;
	u32 left = PYTHON_CALL_READS;
	struct python_reader r = {
	        .mem = p->memory, .l = instance->image->layout, .version = instance->image->version, .left = &left};

	return is_believed(instance) ? python_suspended(&r, instance->names, frame, ret, max) : 0;
}

static bool field(void *data, const struct runtime_process *p, const struct runtime_callee *of, u32 i,
        const char *fields, struct value_places *v, u32 slot)
{
	struct python_instance *instance = data;
	const struct python_image *image = instance->image;
	u32 left = PYTHON_READS_MAX;
	struct python_reader r = {.mem = p->memory, .l = image->layout, .version = image->version, .left = &left};

	(void)of;
	(void)i;
	return python_field(&r, instance->bias + image->runtime, fields, v, slot);
}

static const char *const files[] = {"python", "libpython", "uwsgi", NULL};

static const struct runtime_calls_ops calls = {.form = "python:MODULE.FUNCTION",
        .list = list_calls,
        .field = field,
        .value = write_value,
        .suspended = suspended,
        .servers = python_servers,
        .files = files};

static const struct runtime_tasks_ops tasks = {.kind = "asyncio task", .kinds = "asyncio tasks", .list = list_tasks};

static struct error *open_heap(void *data, const struct runtime_process *p, struct heap *h, void **ret)
{
	struct python_instance *instance = data;

	*ret = NULL;
	return is_believed(instance) ? python_heap_open(instance->image, instance->bias, p, h, ret) : NULL;
}

static const struct runtime_heap_ops heap = {
        .objects = "objects",
        .text = "CPython 3.8 to 3.15 is read, free-threaded from 3.13 on. Sizes are those of sys.getsizeof(), with the "
                "attributes of an instance. Objects of extension types are searched for references, which are marked "
                "\"?\"; memory "
                "that they keep elsewhere is not counted.",
        .open = open_heap,
        .close = python_heap_close,
        .roots = python_heap_roots,
        .object = python_heap_object,
        .all = python_heap_all,
        .copied = true,
};

static struct error *inspect(void *data, const struct runtime_process *p, struct report *out)
{
	const struct python_instance *instance = data;
	struct python_checked subject = checked(instance, p);
	struct error *err = is_believed(instance) ? NULL : runtime_check_error(&python_checks, &subject, p, "Python");

	return err ? err
	           : python_inspect(instance->image, instance->bias,
	                     arena_at(p->arena, instance->config, sizeof(struct python_vm)), p, out);
}

/* A thread without a thread state that is known can not be gone on with: the walker sees to that. */
static u32 resume(void *data, bool *exact)
{
	struct python_instance *instance = data;
	const struct python_vm *vm = &instance->image->vm;

	*exact = vm->resume_pc;
	return is_believed(instance) && (vm->resume_pc || python_needs_thread(vm)) ? instance->config : 0;
}

static bool is_runtime_internal(void *data, const char *symbol)
{
	return python_is_glue(symbol);
}

static struct error *c_names(struct image *img, struct c_names *ret)
{
	struct error *err = python_methods(img, ret);

	return err ? err : python_take_gil(img, ret);
}

static u32 find_allocators(
        void *data, const struct runtime_process *p, struct runtime_allocator ret[RUNTIME_ALLOCATORS_MAX], u32 *unknown)
{
	return python_allocators(((const struct python_instance *)data)->bias, p, ret, unknown);
}

static const struct runtime_allocator_ops allocator = {.find = find_allocators,
        .missing = "PyObject_Malloc() is not as in any known build; `yrt alloc` shows what Python asks libc for"};

static const struct layout *layout_of(const void *data)
{
	return ((const struct python_instance *)data)->image->origins;
}

static u32 find_roots(const void *data, const struct runtime_process *p, u64 ret[RUNTIME_ROOTS_MAX])
{
	const struct python_instance *instance = data;
	const struct python_image *image = instance->image;
	u32 left = PYTHON_READS_MAX;
	struct python_reader r = {.mem = p->memory, .l = image->layout, .version = image->version, .left = &left};

	return python_interpreters(&r, instance->bias + image->runtime, ret);
}

static const struct runtime_types_ops types = {.types = python_types,
        .place = python_types_place,
        .layout = layout_of,
        .root = "_python",
        .root_type = "PyInterpreterState",
        .roots = find_roots};

const struct runtime_ops python_runtime = {
        .name = "python",
        .view = "python",
        .language = "Python",
        .id = RUNTIME_PYTHON,
        .frame_type = "cpython",
        .supported = "CPython 3.6 to 3.15 (x86-64)",
        .layout = &python_layout_schema,
        .files = (const char *const[]){"/python", "/libpython", NULL},
        .image_probe = python_image_probe,
        .image_destroy = python_image_destroy,
        .attach = attach,
        .detach = detach,
        .regions = regions,
        .starting = starting,
        .resume = resume,
        .name_frame = name_frame,
        .expand = expand,
        .expands_native = true,
        .fold_group = python_fold_group,
        .fold_group_name = python_fold_group_name,
        .thread_name = thread_name,
        .c_names = c_names,
        .translated = &python_translated,
        .is_runtime_internal = is_runtime_internal,
        .last_words = python_last_words,
        .inspect = inspect,
        .tasks = &tasks,
        .calls = &calls,
        .heap = &heap,
        .allocator = &allocator,
        .types = &types,
        .rules = python_rules,
        .waits_for = waits_for,
};
