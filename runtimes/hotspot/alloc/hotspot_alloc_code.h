/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a libjvm without symbols reports its allocation, by its code. Both functions of AllocTracer (hotspot_alloc.h),
 * of 8u262 and later, and of 11 and later, begin like this, whatever the compiler makes of it:
 *
 *	call JfrAllocationTracer::JfrAllocationTracer()		their first call, the same for both
 *	cmpb $0, settings + 24 * event + 17			is the event enabled?
 *								(JfrEventSetting::_jvm_event_settings)
 *
 * and their events are neighbours (jfr/metadata/metadata.xml: ObjectAllocationInNewTLAB, ObjectAllocationOutsideTLAB).
 * The function for new TLABs has five parameters, in registers by the ABI, the other one four. One function calls both
 * (from 11 on MemAllocator::Allocation::notify_allocation_jfr_sampler(), unless it was inlined into
 * MemAllocator::allocate()). The pair is used only if exactly one fits, and each of its reports is checked
 * (runtime_alloc.checked). Before 8u262, in 9 and in 10 the functions do not have this shape.
 *
 * Functions begin where .eh_frame says, so a probe is always at an instruction, whatever the function is.
 */
#ifndef YRT_HOTSPOT_ALLOC_CODE_H
#define YRT_HOTSPOT_ALLOC_CODE_H

#include "binary/image.h"

struct hotspot_alloc_code {
	u64 refill, outside; /* starts of the functions, addresses of the file */
};

/* False: there is no such pair, or more than one. img->cfi is needed. */
bool hotspot_alloc_code(struct image *img, struct hotspot_alloc_code *ret);

/*
 * The nops of the USDT probe hotspot:gc__begin, where all threads stand and a collection begins (SvcGCMarker,
 * gc/shared/ gcVMOperations.cpp), as addresses of the file. Returns how many.
 */
u32 hotspot_gc_probes(struct image *img, u64 *ret, u32 max);

#endif
