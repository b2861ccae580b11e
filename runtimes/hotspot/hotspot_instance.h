/* SPDX-License-Identifier: Apache-2.0 */
/* A JVM as the operations see it: what hotspot.c keeps of an image and of a process. */
#ifndef YRT_HOTSPOT_INSTANCE_H
#define YRT_HOTSPOT_INSTANCE_H

#include "runtimes/hotspot/code/hotspot_code.h"
#include "runtimes/hotspot/heap/hotspot_heap.h"
#include "runtimes/hotspot/names/hotspot_names.h"
#include "runtimes/hotspot/code/hotspot_stubs.h"
#include "runtimes/hotspot/waits/hotspot_waits.h"
#include "binary/image.h"

/* A libjvm. */
struct hotspot_image {
	struct image *file; /* outlives it */
	struct vmstructs_symbols *symbols;
	u64 stub_list;       /* StubCodeDesc::_list; 0: not known */
	u8 stub_list_sought; /* 0: not yet; 1: in the file; 2: in its debug file, too */
};

/* A code heap never moves; its configuration is made when it is seen first. */
struct hotspot_claim {
	u64 low;
	u32 config; /* struct hotspot_vm in the arena */
};

/* A JVM. v and what follows it are NULL while it is only starting, and if it is refused. */
struct hotspot_instance {
	struct hotspot_image *image;
	u64 bias;
	bool refused;
	u8 checks; /* how often the layout was tried */
	u64 checked_ns, first_checked_ns;
	struct vmstructs *v;
	struct layout *origins;
	const struct hotspot_layout *layout; /* origins' */
	struct hotspot_code *code;
	struct hotspot_names *names;
	struct hotspot_heap_view *heap;
	struct hotspot_stubs *stubs;
	struct hotspot_waits waits;
	struct hotspot_claim claims[HOTSPOT_HEAPS_MAX];
	u32 nclaims;
	/* hotspot_frozen.h */
	u64 return_barrier; /* address of StubRoutines::_cont_returnBarrier; 0: not known */
	u64 frozen_looked_ns, frozen_first_ns;
	bool freezes;               /* it may have virtual threads (21 on) */
	struct hotspot_vm freezing; /* what describes their frames; frozen.stack is 0 until all is known */
};

struct runtime_alloc_ops;
extern const struct runtime_alloc_ops hotspot_alloc_ops; /* hotspot_alloc.c */
struct runtime_heap_ops;
extern const struct runtime_heap_ops hotspot_heap_ops; /* hotspot_histogram.c */

#endif
