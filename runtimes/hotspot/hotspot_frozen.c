/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_frozen.h"

#include <string.h>

#include "hotspot_heap_view.h"
#include "hotspot_moved.h"
#include "symbols.h"

#define VM_CLASSES_MAX 256 /* 21 has 120 */
#define BARRIER_MAX    384 /* bytes of the stub */
#define FIELD_MAX      124 /* the walker reads 128 bytes of a chunk */

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

void hotspot_frozen_find(struct hotspot_instance *instance)
{
	find_static(instance, "StubRoutines", "_cont_returnBarrier", "_ZN12StubRoutines19_cont_returnBarrierE",
	        &instance->return_barrier);
}

/*
 * The stub of the barrier begins with mov rsp, [r15 + JavaThread::_cont_entry]. Its end, as that of cont_thaw before it, which is the
 * same but for its beginning: mov rsp, rbx; sub rsp, 16; pop rbp; ret.
 */
static const u8 stub_begin[] = {0x49, 0x8b, 0xa7}, stub_end[] = {0x48, 0x8b, 0xe3, 0x48, 0x83, 0xec, 0x10, 0x5d, 0xc3};

/* Where the first such end is over; 0: nowhere. */
static u32 end_of_stub(const u8 *code, u32 size)
{
	for (u32 i = 0; i + sizeof(stub_end) <= size; i++)
		if (!memcmp(code + i, stub_end, sizeof(stub_end)))
			return i + sizeof(stub_end);
	return 0;
}

/* Both call twice, and keep in rbx what the call returned: what there is to thaw, then where it is on the stack. */
static const u8 keeps[] = {0x48, 0x8b, 0xd8}; /* mov rbx, rax */

/* How many bytes before its last the stub has thawed; HOTSPOT_LANDING: not told. */
static u32 landing(const u8 *code, u32 size)
{
	u32 n = 0, at = 0;

	for (u32 i = 0; i + sizeof(keeps) <= size; i++)
		if (!memcmp(code + i, keeps, sizeof(keeps))) {
			at = i + sizeof(keeps);
			n++;
		}
	return n == 2 && size - 1 - at > HOTSPOT_LANDING ? size - 1 - at : HOTSPOT_LANDING;
}

static void read_thaw(const struct hotspot_instance *instance, struct memory *m, struct hotspot_vm *vm)
{
	u8 code[2 * BARRIER_MAX];
	u64 at, thaw;
	u32 size, end;

	if (!find_static(instance, "StubRoutines", "_cont_thaw", "_ZN12StubRoutines10_cont_thawE", &at) ||
	        !memory_read(m, &thaw, sizeof(thaw), at) || vm->return_barrier - thaw > BARRIER_MAX ||
	        !memory_read(m, code, sizeof(code), thaw))
		return;
	size = vm->return_barrier - thaw;
	end = end_of_stub(code + size, BARRIER_MAX);
	if (end_of_stub(code, sizeof(code)) != size || !end)
		return;
	vm->thaw = thaw;
	vm->thaw_size = size;
	vm->thaws_size = size + end - 1;
	vm->thaw_landing = landing(code, size);
	vm->barrier_landing = landing(code + size, end);
}

static bool read_barrier(struct memory *m, struct hotspot_vm *vm)
{
	u8 code[sizeof(stub_begin) + sizeof(u32)];
	u32 entry;

	if (!memory_read(m, code, sizeof(code), vm->return_barrier) || memcmp(code, stub_begin, sizeof(stub_begin)) != 0)
		return false;
	memcpy(&entry, code + sizeof(stub_begin), sizeof(entry));
	vm->frozen.cont_entry = entry;
	return entry && entry < UINT16_MAX;
}

/* A class that the VM itself knows. */
static u64 vm_class(struct hotspot_instance *instance, struct memory *m, const char *name)
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

static bool field(struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name, const char *type, u16 *ret)
{
	u32 at;

	if (!klass || !hotspot_java_field(h, m, klass, name, type, &at) || at > UINT16_MAX)
		return false;
	*ret = at;
	return true;
}

static bool chunk_field(struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name, const char *type, u16 *ret)
{
	return field(h, m, klass, name, type, ret) && *ret <= FIELD_MAX;
}

/* A field that is not Java's: only the VM's own variable tells. 0: it does not. */
static u16 injected(const struct hotspot_instance *instance, struct memory *m, const char *symbol)
{
	struct symbol s;
	u32 at;

	return symbols_lookup(instance->image->file, symbol, &s) && memory_read(m, &at, sizeof(at), instance->bias + s.start) &&
	                       at <= FIELD_MAX
	               ? at
	               : 0;
}

static bool read_classes(struct hotspot_instance *instance, struct memory *m, struct hotspot_frozen *f)
{
	static const char type[] = "Ljdk/internal/vm/StackChunk;";
	struct hotspot_heap_view *h = instance->heap;
	u64 chunk = vm_class(instance, m, "jdk/internal/vm/StackChunk");
	const struct hotspot_class *c = hotspot_class_of(h, m, chunk);

	if (!c || c->kind != SIZE_STACK_CHUNK || c->size > UINT16_MAX)
		return false;
	f->stack = c->size;
	f->bottom_is_args = !chunk_field(h, m, chunk, "bottom", "I", &f->bottom);
	f->klass = h->narrow_klass ? (chunk - h->klass_base) >> h->klass_shift : chunk;
	f->klass_shift = h->mark_klass_shift ? h->mark_klass_shift : h->narrow_klass;
	f->max_thawing = injected(instance, m, "_ZN26jdk_internal_vm_StackChunk22_maxThawingSize_offsetE");
	f->cont = injected(instance, m, "_ZN26jdk_internal_vm_StackChunk12_cont_offsetE");
	f->flags = injected(instance, m, "_ZN26jdk_internal_vm_StackChunk13_flags_offsetE");
	return chunk_field(h, m, chunk, "size", "I", &f->size) && chunk_field(h, m, chunk, "sp", "I", &f->sp) &&
	       chunk_field(h, m, chunk, "parent", type, &f->parent) &&
	       (!f->bottom_is_args || chunk_field(h, m, chunk, "argsize", "I", &f->bottom)) &&
	       field(h, m, vm_class(instance, m, "jdk/internal/vm/Continuation"), "tail", type, &f->tail);
}

/* Coloured references lead to where objects were: what tells where they are now has to be known. */
static bool read_coloured(struct hotspot_instance *instance, struct memory *m, struct hotspot_frozen *f)
{
	static const char type[] = "Ljdk/internal/vm/Continuation;";
	struct hotspot_heap_view *h = instance->heap;

	f->thread_handle = instance->layout->thread_obj.at;
	return h->at.thread_handle && field(h, m, vm_class(instance, m, "java/lang/Thread"), "cont", type, &f->thread_cont) &&
	       field(h, m, vm_class(instance, m, "jdk/internal/vm/Continuation"), "parent", type, &f->cont_parent) &&
	       hotspot_z_find(instance->v, m, h->collected_heap, &f->z);
}

static bool read_vm(struct hotspot_instance *instance, struct memory *m, struct hotspot_vm *vm)
{
	struct hotspot_frozen *f = &vm->frozen;
	u64 sp, start, end;

	if (!hotspot_heap_ready(instance->heap, m) || !read_barrier(m, vm) ||
	        !vmstructs_field(instance->v, "JavaFrameAnchor", "_last_Java_sp", &sp, NULL) ||
	        !find_static(instance, "ContinuationEntry", "_return_pc", "_ZN17ContinuationEntry10_return_pcE", &f->entry_pc_at))
		return false;
	if (!hotspot_interpreter(instance->code, m, &start, &end) || end - start > UINT32_MAX)
		return false;
	f->interpreter_low = start;
	f->interpreter_size = end - start;
	f->last_java_sp = instance->layout->thread_anchor.at + sp;
	f->oops = instance->heap->oops;
	f->oop_base = instance->heap->oop_base;
	f->oop_shift = instance->heap->oop_shift;
	if (!read_classes(instance, m, f))
		return false;
	if (f->oops == HOTSPOT_OOP_COLOURED && !read_coloured(instance, m, f))
		return false;
	if (f->max_thawing)
		read_thaw(instance, m, vm);
	return true;
}

void hotspot_frozen_tell(struct hotspot_instance *instance, struct memory *m, struct hotspot_vm *vm)
{
	struct hotspot_vm known = *vm;
	u64 barrier;

	if (vm->frozen.stack || !instance->return_barrier || !memory_read(m, &barrier, sizeof(barrier), instance->return_barrier) ||
	        !barrier)
		return;
	known.return_barrier = barrier;
	if (read_vm(instance, m, &known))
		*vm = known;
	else
		vm->return_barrier = barrier;
}
