/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_natives.h"

#include <elf.h>
#include <string.h>

#include "binary/image.h"
#include "frame_code.h"
#include "runtime.h"
#include "symbols/symbols.h"

#include "runtimes/hotspot/walk/hotspot.h"
#include "runtimes/hotspot/layout/hotspot_vmstructs.h"

#define CALLERS  2 /* of call_stub that are no more than that, below Java: JavaCalls::call_*, call_helper */
#define STARTERS 3 /* frames of libc outside of what a thread of the JVM begins with */

/*
 * Mangled names begin so: what code of Java and allocation call of a collector, and what the JVM's own thread does for
 * it (classes VM_G1CollectForAllocation and the like, gc/shared/gcVMOperations.hpp). Of 8 to 28.
 */
static const char *const collectors[] = {"_ZN8ZBarrier", "_ZN8XBarrier", "_ZN17ZBarrierSetRuntime",
        "_ZN17XBarrierSetRuntime", "_ZN19ZStoreBarrierBuffer", "_ZN15ZStackWatermark", "_ZN15XStackWatermark",
        "_ZN19G1BarrierSetRuntime", "_ZN12G1BarrierSet", "_ZN13SharedRuntime8g1_wb", "_ZN17ShenandoahRuntime",
        "_ZN20ShenandoahBarrierSet", "_ZN14ShenandoahHeap14evacuate_objec", "_ZN15G1CollectedHeap7collect",
        "_ZN15G1CollectedHeap19do_collection_pause", "_ZN15G1CollectedHeap22try_collect",
        "_ZN16GenCollectedHeap7collect", "_ZN10SerialHeap7collect", "_ZN20ParallelScavengeHeap7collect",
        "_ZN14ZCollectedHeap7collect", "_ZN14ShenandoahHeap7collect", "_ZN13CollectedHeap7collect"};

static bool is_native(const struct frame *f)
{
	return frame_kind(f) == FRAME_NATIVE;
}

/* Address in the file, if it is one of libjvm's. */
static bool is_own(const struct hotspot_instance *instance, const struct frame *f, u64 *addr)
{
	const struct image *img = instance->image->file;

	*addr = frame_code(f) - instance->bias;
	for (u32 i = 0; i < img->nsegments; i++)
		if (img->segments[i].flags & PF_X && *addr - img->segments[i].vaddr < img->segments[i].memsz)
			return true;
	return false;
}

/* "_ZN25VM_G1CollectForAllocation4doitEv" */
static bool is_operation(const char *symbol)
{
	const char *vm = strstr(symbol, "VM_");

	return !strncmp(symbol, "_ZN", 3) && vm && vm - symbol <= 5 && strstr(vm, "4doitEv") &&
	       (strstr(vm, "Collect") || strstr(vm, "GC") || strstr(vm, "VM_ZOperation") ||
	               strstr(vm, "VM_Shenandoah"));
}

static bool collects(const char *symbol)
{
	for (size_t i = 0; i < sizeof(collectors) / sizeof(*collectors); i++)
		if (!strncmp(symbol, collectors[i], strlen(collectors[i])))
			return true;
	return is_operation(symbol);
}

/* Is it where Java returns to call_stub? */
static bool is_entry(const struct hotspot_instance *instance, const struct runtime_process *p, const struct frame *f)
{
	u64 at, pc;

	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_HOTSPOT &&
	       hotspot_kind(f) == HOTSPOT_STUB && frame_flags(f) & FRAME_RETADDR &&
	       vmstructs_static(instance->v, "StubRoutines", "_call_stub_return_address", &at) &&
	       memory_read(p->memory, &pc, sizeof(pc), at) && pc == frame_addr(f);
}

/* How many frames from i on have only called call_stub, in a libjvm without names. */
static u32 callers(const struct hotspot_instance *instance, const struct runtime_process *p, const struct frame *frames,
        u32 i, u32 end, u32 n)
{
	struct symbol symbol;
	u32 own = i;
	u64 addr;

	if (!i || !is_entry(instance, p, &frames[i - 1]))
		return 0;
	while (own < end && is_own(instance, &frames[own], &addr) &&
	        !symbols_find(instance->image->file, addr, &symbol))
		own++;
	if (own == end && end < n)
		return own - i < CALLERS ? own - i : CALLERS;
	if (end != n || n - own >= STARTERS)
		return own - i;
	for (u32 k = own; k < n; k++) /* clone and start_thread, of one file */
		if ((u32)frames[k].detail != (u32)frames[n - 1].detail)
			return own - i;
	return n - i;
}

u32 hotspot_natives(const struct hotspot_instance *instance, const struct runtime_process *p,
        const struct frame *frames, u32 i, u32 n, struct frame *ret, u32 max, u32 *eaten)
{
	struct frame work = {.where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, 0, 0),
	        .detail = hotspot_detail(HOTSPOT_COLLECTOR, 0)};
	u32 end = i, behind = i, put = 0, hidden;
	struct symbol symbol;
	u64 addr;

	*eaten = 0;
	if ((i && is_native(&frames[i - 1])) ||
	        !symbols_are_read(instance->image->file)) /* its run was looked at already */
		return 0;
	for (; end < n && is_native(&frames[end]) && end - i + 2 < max; end++)
		if (is_own(instance, &frames[end], &addr) && symbols_find(instance->image->file, addr, &symbol) &&
		        collects(symbol.name))
			behind = end + 1;
	hidden = callers(instance, p, frames, i, end, n);
	if (behind == i && !hidden)
		return 0;
	for (u32 k = i; k < end; k++) {
		ret[put] = frames[k];
		ret[put++].where |= k - i < hidden ? (u64)FRAME_VM << FRAME_ADDR_BITS : 0;
		if (k + 1 == behind)
			ret[put++] = work;
	}
	*eaten = end - i;
	return put;
}
