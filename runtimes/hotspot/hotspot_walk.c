/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Out of Java's code. */
#include "walk.h"
#include "hotspot.h"

WALK_STEP int hotspot_step(struct walk *w)
{
	WALK_CHECK(w);
	if (!walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, w->leaf ? 0 : FRAME_RETADDR, w->reg[REG_PC]),
	            hotspot_detail(HOTSPOT_STUB, 0)))
		return STOP_DEPTH;
	return STOP_VM_UNKNOWN;
}
