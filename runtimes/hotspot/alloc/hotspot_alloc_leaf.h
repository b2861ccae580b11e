/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which allocation a place in compiled code belongs to, exactly. An object is initialised between two places that
 * PcDescs describe, so these alone do not show the inlined method. But both compilers allocate by the same steps
 * (PhaseMacroExpand::expand_allocate_common(), C1_MacroAssembler::allocate_object(), MacroAssembler::tlab_allocate()):
 *
 *	cmp  new_top, [r15 + end of the TLAB]
 *	ja   slow path
 *	mov  [r15 + top of the TLAB], new_top
 *	...  header, fields
 *
 * and the call of the slow path has a PcDesc, whose scopes are those of the allocation. No other call with a PcDesc
 * lies between these steps and the place: a collection may happen there, and must not see an uninitialised object. A
 * trap behind such a call was a write to an older object.
 *
 * C2 may put the end of the initialisation (zeros behind what is copied) behind all else of the method. So the place is
 * followed back through the method's jumps: each way must come from these steps, or from the return of that slow path.
 * Where that fails, the steps are looked for in front of the place.
 */
#ifndef YRT_HOTSPOT_ALLOC_LEAF_H
#define YRT_HOTSPOT_ALLOC_LEAF_H

#include "runtimes/hotspot/walk/hotspot.h"
#include "runtimes/hotspot/code/hotspot_code.h"

/*
 * f is compiled code (HOTSPOT_NMETHOD) that initialised an object; it becomes the return address in the slow path of
 * that allocation. False, and f stays where it is: its place is exact already, or not understood, which marks it
 * FRAME_APPROX. top, end: of the TLAB, in the thread.
 */
bool hotspot_alloc_leaf(const struct hotspot_layout *l, const struct hotspot_code *c, struct memory *m, u32 top,
        u32 end, struct frame *f);

#endif
