/* SPDX-License-Identifier: Apache-2.0 */
/* Builders of names that tests of HotSpot's names share. */
#ifndef YRT_HOTSPOT_NAMES_FAKE_H
#define YRT_HOTSPOT_NAMES_FAKE_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotspot_scopes_fake.h"
#include "runtimes/hotspot/alloc/hotspot_alloc_leaf.h"
#include "runtimes/hotspot/names/hotspot_names_state.h"
#include "runtimes/hotspot/names/hotspot_text.h"

struct jvm {
	struct hotspot_fake f;
	struct vmstructs *v;
	struct layout *origins;
	const struct hotspot_layout *l;
	struct hotspot_code *code;
	struct hotspot_names *names;
	u64 version, stubs; /* variables */
};

static inline bool name(struct jvm *j, struct frame f, struct frame_name *ret)
{
	return hotspot_name_frame(j->names, &j->f.memory, &f, ret);
}

#endif
