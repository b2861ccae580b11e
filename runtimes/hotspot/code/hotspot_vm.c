/* SPDX-License-Identifier: Apache-2.0 */
/* What the walker needs of a JVM's layout, for one of its code heaps. */
#include "runtimes/hotspot/walk/hotspot.h"
#include "hotspot_code.h"

static void place(struct hotspot_vm *vm, struct hotspot_field *f, struct layout_member m)
{
	u32 end;

	f->size = m.size < 8 ? m.size : 8;
	f->at = vm->block_size + m.at;
	end = (f->at + f->size + 7u) & ~7u;
	if (f->size && end > vm->head_size)
		vm->head_size = end;
}

/* By the first of two members that this build has. */
static void place_either(struct hotspot_vm *vm, struct hotspot_field *f, struct layout_member a, struct layout_member b)
{
	place(vm, f, a.size ? a : b);
}

static void place_fields(struct hotspot_vm *vm, const struct hotspot_layout *l, bool kinds)
{
	u16 half = vm->block_size / 2; /* memory/heap.hpp: 4 bytes and a flag, or 8 and a flag */

	vm->length = (struct hotspot_field){0, half};
	vm->used = (struct hotspot_field){half, 1};
	place(vm, &vm->kind, kinds ? l->blob_kind : l->blob_header_size);
	place_either(vm, &vm->code_begin, l->blob_code_begin, l->blob_code_offset);
	place(vm, &vm->frame_size, l->blob_frame_size);
	place(vm, &vm->frame_complete, l->blob_frame_complete);
	place(vm, &vm->compile_id, l->nm_compile_id);
	place(vm, &vm->method, l->nm_method);
	place(vm, &vm->orig_pc, l->nm_orig_pc_offset);
	place_either(vm, &vm->deopt, l->nm_deopt_begin, l->nm_deopt_offset);
	place_either(vm, &vm->deopt_mh, l->nm_deopt_mh_begin, l->nm_deopt_mh_offset);
}

struct hotspot_vm hotspot_vm_of(const struct hotspot_layout *l, const struct hotspot_heap *heap)
{
	bool kinds = l->blob_kind.size && l->kind_nmethod.size;
	/* the mirror of the method's class, a slot of the interpreter's frames above bcp, came with 9 (frame_x86.hpp)
	 */
	bool mirror = l->blob_code_begin.size || l->blob_kind.size;
	struct hotspot_vm vm = {
	        .low = heap->low,
	        .segmap = heap->segmap,
	        .log2_segment = heap->log2_segment,
	        .block_size = l->block_size.at,
	        .kind_nmethod = kinds ? l->kind_nmethod.at : l->nm_size.at,
	        .bcp = mirror ? 64 : 56,
	        .method_const = l->method_const.at,
	        .const_size = l->const_size.at,
	        .const_code_size = l->const_code_size.at,
	        .saved_pc = l->thread_saved_pc.size ? l->thread_saved_pc.at : 0,
	};

	place_fields(&vm, l, kinds);
	return vm;
}

void hotspot_vm_heaps(struct hotspot_vm *vm, const struct hotspot_heap *heaps, u32 n)
{
	u64 low = vm->low, high = 0;

	for (u32 i = 0; i < n; i++) {
		low = heaps[i].low < low ? heaps[i].low : low;
		high = heaps[i].reserved_high > high ? heaps[i].reserved_high : high;
		vm->heap[i] =
		        (struct hotspot_vm_heap){heaps[i].low, heaps[i].reserved_high - heaps[i].low, heaps[i].segmap};
	}
	vm->cache_low = low;
	vm->cache_high = high;
}
