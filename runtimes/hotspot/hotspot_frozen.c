/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_frozen.h"

#include <string.h>

#include "runtimes/hotspot/memory/hotspot_blocks.h"
#include "runtimes/hotspot/code/hotspot_frozen_code.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "now.h"
#include "symbols/symbols.h"

#define VM_CLASSES_MAX 256 /* 21 has 120 */
#define FIELD_MAX      124 /* the walker reads 128 bytes of a chunk */
#define VERSION        21  /* the first with virtual threads that is no preview */
#define METHODS_MAX    512
#define METHODS_AT     8            /* in an Array<Method*>, behind its length */
#define LOOK_EVERY_NS  100000000ull /* at first */

_Static_assert((int)HOTSPOT_OOP_PLAIN == OOP_PLAIN && (int)HOTSPOT_OOP_NARROW == OOP_NARROW &&
                       (int)HOTSPOT_OOP_COLOURED == OOP_COLOURED,
        "the walker's numbers are those of the heap view");

static bool find_static(
        const struct hotspot_instance *instance, const char *type, const char *field, const char *symbol, u64 *ret)
{
	struct symbol s;

	if (vmstructs_static(instance->v, type, field, ret))
		return true;
	if (!symbols_lookup(instance->image->file, symbol, &s))
		return false;
	*ret = instance->bias + s.start;
	return true;
}

void hotspot_frozen_find(struct hotspot_instance *instance, struct memory *m)
{
	u32 version;
	u64 at;

	instance->freezes = vmstructs_static(instance->v, "Abstract_VM_Version", "_vm_major_version", &at) &&
	                    memory_read(m, &version, sizeof(version), at) && version >= VERSION;
	if (instance->freezes)
		find_static(instance, "StubRoutines", "_cont_returnBarrier", "_ZN12StubRoutines19_cont_returnBarrierE",
		        &instance->return_barrier);
}

/* 0: it is not made yet, or not known. */
static u64 read_barrier(const struct hotspot_instance *instance, struct memory *m)
{
	u64 barrier;

	if (!instance->return_barrier)
		return hotspot_stubs_barrier(instance->stubs);
	return memory_read(m, &barrier, sizeof(barrier), instance->return_barrier) ? barrier : 0;
}

u64 hotspot_vm_class(struct hotspot_instance *instance, struct memory *m, const char *name)
{
	u64 at, klasses[VM_CLASSES_MAX], symbol;
	char text[64];

	if (!find_static(instance, "vmClasses", "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]",
	            "_ZN9vmClasses8_klassesE", &at) ||
	        !memory_read(m, klasses, sizeof(klasses), at))
		return 0;
	for (u32 i = 0; i < VM_CLASSES_MAX; i++)
		if (klasses[i] && !(klasses[i] & 7) &&
		        memory_read(m, &symbol, 8, klasses[i] + instance->layout->klass_name.at) &&
		        hotspot_symbol(instance->heap, m, symbol, text, sizeof(text)) && !strcmp(text, name))
			return klasses[i];
	return 0;
}

static bool field(
        struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name, const char *type, u16 *ret)
{
	u32 at;

	if (!klass || !hotspot_java_field(h, m, klass, name, type, &at) || at > UINT16_MAX)
		return false;
	*ret = at;
	return true;
}

static bool chunk_field(
        struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name, const char *type, u16 *ret)
{
	return field(h, m, klass, name, type, ret) && *ret <= FIELD_MAX;
}

/* A field that the VM has added. 0: it is not known. */
static u16 injected(struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name, const char *type)
{
	u16 at;

	return chunk_field(h, m, klass, name, type, &at) ? at : 0;
}

static bool read_classes(struct hotspot_instance *instance, struct memory *m, struct hotspot_frozen *f)
{
	static const char type[] = "Ljdk/internal/vm/StackChunk;";
	struct hotspot_heap_view *h = instance->heap;
	u64 chunk = hotspot_vm_class(instance, m, "jdk/internal/vm/StackChunk");
	const struct hotspot_class *c = hotspot_class_of(h, m, chunk);

	if (!c || c->kind != SIZE_STACK_CHUNK || c->size > UINT16_MAX)
		return false;
	f->stack = c->size;
	f->bottom_is_args = !chunk_field(h, m, chunk, "bottom", "I", &f->bottom);
	f->klass = h->narrow_klass ? (chunk - h->klass_base) >> h->klass_shift : chunk;
	f->klass_shift = h->mark_klass_shift ? h->mark_klass_shift : h->narrow_klass;
	f->max_thawing = injected(h, m, chunk, "maxThawingSize", "I");
	f->cont = injected(h, m, chunk, "cont", "Ljdk/internal/vm/Continuation;");
	f->flags = injected(h, m, chunk, "flags", "B");
	return chunk_field(h, m, chunk, "size", "I", &f->size) && chunk_field(h, m, chunk, "sp", "I", &f->sp) &&
	       chunk_field(h, m, chunk, "parent", type, &f->parent) &&
	       (!f->bottom_is_args || chunk_field(h, m, chunk, "argsize", "I", &f->bottom)) &&
	       field(h, m, hotspot_vm_class(instance, m, "jdk/internal/vm/Continuation"), "tail", type, &f->tail);
}

/* Coloured references lead to where objects were: the tables of where they are now have to be known. */
static bool read_coloured(struct hotspot_instance *instance, struct memory *m, struct hotspot_frozen *f)
{
	static const char type[] = "Ljdk/internal/vm/Continuation;";
	struct hotspot_heap_view *h = instance->heap;

	f->thread_handle = instance->layout->thread_obj.at;
	f->z = h->z;
	return h->at.thread_handle &&
	       field(h, m, hotspot_vm_class(instance, m, "java/lang/Thread"), "cont", type, &f->thread_cont) &&
	       field(h, m, hotspot_vm_class(instance, m, "jdk/internal/vm/Continuation"), "parent", type,
	               &f->cont_parent) &&
	       f->z.granules;
}

static bool is_method(struct hotspot_instance *instance, struct memory *m, u64 method, const char *name)
{
	const struct hotspot_layout *l = instance->layout;
	u64 constants, pool, symbol;
	char text[64];
	u16 index;

	return memory_read(m, &constants, 8, method + l->method_const.at) &&
	       memory_read(m, &index, 2, constants + l->const_name.at) &&
	       memory_read(m, &pool, 8, constants + l->const_pool.at) &&
	       memory_read(m, &symbol, 8, pool + l->pool_size.at + index * 8ull) &&
	       hotspot_symbol(instance->heap, m, symbol, text, sizeof(text)) && !strcmp(text, name);
}

/* A method that this class declares; 0: none. */
static u64 method_named(struct hotspot_instance *instance, struct memory *m, u64 klass, const char *name)
{
	u64 at, array, methods[METHODS_MAX];
	u32 n;

	if (!klass || !vmstructs_field(instance->v, "InstanceKlass", "_methods", &at, NULL) ||
	        !memory_read(m, &array, 8, klass + at) || !memory_read(m, &n, sizeof(n), array) || n > METHODS_MAX ||
	        !memory_read(m, methods, n * 8ull, array + METHODS_AT))
		return 0;
	for (u32 i = 0; i < n; i++)
		if (is_method(instance, m, methods[i], name))
			return methods[i];
	return 0;
}

/* The nmethod of enterSpecial; continuation: the class. False: it is not made yet. */
static bool find_enter_special(
        struct hotspot_instance *instance, struct memory *m, u64 continuation, struct hotspot_blob *ret)
{
	u64 method = method_named(instance, m, continuation, "enterSpecial"), nmethod;

	return method && memory_read(m, &nmethod, 8, method + instance->layout->method_code.at) && nmethod &&
	       hotspot_blob_at(instance->code, m, nmethod, ret) && ret->at == nmethod && ret->kind == BLOB_NMETHOD;
}

/* The stub that thaws, and where enterSpecial stands when it has called it: by symbol, or by enterSpecial's code. */
static bool read_entry(struct hotspot_instance *instance, struct memory *m, struct hotspot_vm *vm)
{
	struct hotspot_frozen *f = &vm->frozen;
	u64 at, thaw = 0, thaw_called, return_pc;
	struct hotspot_blob special;

	find_static(
	        instance, "ContinuationEntry", "_return_pc", "_ZN17ContinuationEntry10_return_pcE", &f->entry_pc_at);
	if (find_static(instance, "StubRoutines", "_cont_thaw", "_ZN12StubRoutines10_cont_thawE", &at) &&
	        !memory_read(m, &thaw, sizeof(thaw), at))
		return false;
	if (!thaw || !f->entry_pc_at) {
		if (!find_enter_special(
		            instance, m, hotspot_vm_class(instance, m, "jdk/internal/vm/Continuation"), &special))
			return false;
		if (hotspot_enter_special_call(m, &special, vm->return_barrier, &thaw_called, &return_pc)) {
			thaw = thaw_called;
			f->entry_pc = return_pc;
		}
	}
	if (f->max_thawing && thaw)
		hotspot_thaw_code(m, thaw, vm);
	hotspot_preempt_code(m, vm);
	return f->entry_pc || f->entry_pc_at;
}

static bool read_vm(struct hotspot_instance *instance, struct memory *m, struct hotspot_vm *vm)
{
	struct hotspot_frozen *f = &vm->frozen;
	u64 sp;

	if (!hotspot_heap_ready(instance->heap, m) || !hotspot_barrier_entry(m, vm->return_barrier, &f->cont_entry) ||
	        !vmstructs_field(instance->v, "JavaFrameAnchor", "_last_Java_sp", &sp, NULL))
		return false;
	f->last_java_sp = instance->layout->thread_anchor.at + sp;
	f->oops = instance->heap->oops;
	f->oop_base = instance->heap->oop_base;
	f->oop_shift = instance->heap->oop_shift;
	if (!read_classes(instance, m, f))
		return false;
	if (f->oops == HOTSPOT_OOP_COLOURED && !read_coloured(instance, m, f))
		return false;
	return read_entry(instance, m, vm);
}

static void look(struct hotspot_instance *instance, struct memory *m)
{
	struct hotspot_vm known = {.return_barrier = read_barrier(instance, m)};

	instance->freezing.return_barrier = known.return_barrier;
	if (known.return_barrier && read_vm(instance, m, &known))
		instance->freezing = known;
}

const char *hotspot_frozen_missing(struct hotspot_instance *instance, struct memory *m)
{
	u64 continuation = hotspot_vm_class(instance, m, "jdk/internal/vm/Continuation"),
	    method = method_named(instance, m, continuation, "enterSpecial"), nmethod;

	if (!continuation)
		return "where its classes are";
	if (!method || !memory_read(m, &nmethod, 8, method + instance->layout->method_code.at))
		return "where the methods of jdk.internal.vm.Continuation are";
	if (!nmethod)
		return NULL;
	if (!read_barrier(instance, m))
		return "what frozen frames return to";
	if (instance->heap->oops == OOP_COLOURED && !instance->heap->z.granules)
		return "where ZGC has moved objects";
	return "how frozen frames are kept";
}

/* Names of hundreds of classes lie side by side: a page is read once for all of them. */
struct error *hotspot_frozen_look(struct hotspot_instance *instance, struct memory *m)
{
	struct hotspot_blocks *blocks;

	if (!instance->freezes || instance->freezing.frozen.stack)
		return NULL;
	blocks = hotspot_blocks_create();
	if (!blocks)
		return &error_no_memory;
	look(instance, hotspot_blocks_renew(blocks, m));
	hotspot_blocks_destroy(blocks);
	instance->frozen_looked_ns = now_ns();
	if (!instance->frozen_first_ns)
		instance->frozen_first_ns = instance->frozen_looked_ns;
	return NULL;
}

void hotspot_frozen_tell(const struct hotspot_instance *instance, struct hotspot_vm *vm)
{
	const struct hotspot_vm *known = &instance->freezing;

	if (vm->frozen.stack)
		return;
	vm->return_barrier = known->return_barrier;
	vm->thaw = known->thaw;
	vm->thaw_size = known->thaw_size;
	vm->thaws_size = known->thaws_size;
	vm->thaw_landing = known->thaw_landing;
	vm->barrier_landing = known->barrier_landing;
	vm->preempt = known->preempt;
	vm->preempt_size = known->preempt_size;
	vm->preempt_moved = known->preempt_moved;
	vm->preempt_left = known->preempt_left;
	vm->frozen = known->frozen;
}

void hotspot_frozen_objects(struct hotspot_instance *instance, struct memory *m, struct hotspot_vm *vm)
{
	struct hotspot_frozen *f = &vm->frozen;

	if (f->stack || !hotspot_heap_ready(instance->heap, m))
		return;
	f->oops = instance->heap->oops;
	f->z = instance->heap->z;
}

bool hotspot_frozen_due(const struct hotspot_instance *instance, u64 now)
{
	u64 wait = (instance->frozen_looked_ns - instance->frozen_first_ns) / 2;

	return instance->freezes && !instance->freezing.frozen.stack &&
	       now - instance->frozen_looked_ns >= (wait > LOOK_EVERY_NS ? wait : LOOK_EVERY_NS);
}
