/* SPDX-License-Identifier: Apache-2.0 */
/* What the walker needs of the layout of a JVM, for one of its code heaps. */
#include "hotspot.h"
#include "hotspot_code.h"

static struct hotspot_field field(struct layout_member m)
{
	return (struct hotspot_field){m.at, m.size < 8 ? m.size : 8};
}

/* The first of two members that this build has. */
static struct hotspot_field either(struct layout_member a, struct layout_member b)
{
	return field(a.size ? a : b);
}

static void cover(struct hotspot_field f, u32 *low, u32 *high)
{
	if (!f.size)
		return;
	*low = f.at < *low ? f.at : *low;
	*high = f.at + f.size > *high ? f.at + f.size : *high;
}

static void find_head(struct hotspot_vm *vm)
{
	u32 low = UINT16_MAX, high = 0;

	cover(vm->kind, &low, &high);
	cover(vm->code_begin, &low, &high);
	cover(vm->frame_size, &low, &high);
	cover(vm->frame_complete, &low, &high);
	cover(vm->compile_id, &low, &high);
	cover(vm->orig_pc, &low, &high);
	cover(vm->deopt, &low, &high);
	cover(vm->deopt_mh, &low, &high);
	vm->head_at = low & ~7u;
	vm->head_size = ((high + 7) & ~7u) - vm->head_at;
}

struct hotspot_vm hotspot_vm_of(
        const struct hotspot_layout *l, const struct hotspot_heap *heaps, u32 n, const struct hotspot_heap *heap)
{
	bool kinds = l->blob_kind.size && l->kind_nmethod.size;
	/* the mirror of the method's class, a slot of the interpreter's frames above bcp, came with 9 (frame_x86.hpp) */
	bool mirror = l->blob_code_begin.size || l->blob_kind.size;
	struct hotspot_vm vm = {
	        .low = heap->low,
	        .segmap = heap->segmap,
	        .log2_segment = heap->log2_segment,
	        .block_size = l->block_size.at,
	        .kind_nmethod = kinds ? l->kind_nmethod.at : l->nm_size.at,
	        .kind = field(kinds ? l->blob_kind : l->blob_header_size),
	        .code_begin = either(l->blob_code_begin, l->blob_code_offset),
	        .frame_size = field(l->blob_frame_size),
	        .frame_complete = field(l->blob_frame_complete),
	        .compile_id = field(l->nm_compile_id),
	        .orig_pc = field(l->nm_orig_pc_offset),
	        .deopt = either(l->nm_deopt_begin, l->nm_deopt_offset),
	        .deopt_mh = either(l->nm_deopt_mh_begin, l->nm_deopt_mh_offset),
	        .bcp = mirror ? 64 : 56,
	        .method_const = l->method_const.at,
	        .const_size = l->const_size.at,
	        .const_code_size = l->const_code_size.at,
	};

	vm.cache_low = heap->low;
	for (u32 i = 0; i < n; i++) {
		vm.cache_low = heaps[i].low < vm.cache_low ? heaps[i].low : vm.cache_low;
		vm.cache_high = heaps[i].reserved_high > vm.cache_high ? heaps[i].reserved_high : vm.cache_high;
	}
	find_head(&vm);
	return vm;
}
