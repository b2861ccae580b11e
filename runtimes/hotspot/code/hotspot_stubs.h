/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for code of HotSpot that belongs to no method: stub routines, runtime stubs, adapters, vtable stubs, and the
 * parts of the interpreter where no frame is at rbp. HotSpot makes them when it starts, and some later (adapters by
 * signature, stubs of compilers from 21 on, those that call native code and are called by it for each of Panama's
 * functions). They do not change afterwards; only those of Panama are freed, and others may take their place. The rows
 * are made by disassembly (hotspot_flow.h).
 */
#ifndef YRT_HOTSPOT_STUBS_H
#define YRT_HOTSPOT_STUBS_H

#include "cfi/cfi.h"
#include "runtimes/hotspot/walk/hotspot.h"
#include "hotspot_code.h"

/* A range of code with rows, in process addresses. Entries live as long as the stubs. */
struct hotspot_stub_range {
	u64 start, end;
	u8 part; /* HOTSPOT_STUBS, HOTSPOT_ENTRY, HOTSPOT_POLLED */
	const struct cfi_entry *entries;
	u32 nentries;
};

struct hotspot_stubs; /* of one process */

/* v must outlive them. */
struct error *hotspot_stubs_create(const struct vmstructs *v, struct hotspot_stubs **ret);
void hotspot_stubs_destroy(struct hotspot_stubs *s); /* NULL is fine */

/* Looks at the code as it is now, and makes rows for what is new. Blobs that make no sense are left out. */
struct error *hotspot_stubs_update(struct hotspot_stubs *s, const struct hotspot_code *c, struct memory *m);
/* A frame was seen at pc, in code without a method. */
void hotspot_stubs_saw(struct hotspot_stubs *s, u64 pc);
/* Was one seen in code that has no rows? If it is made all the time, it is looked at ever more rarely. */
bool hotspot_stubs_wanted(const struct hotspot_stubs *s, u64 now);
/* All ranges so far. Where they overlap, the later one holds. */
u32 hotspot_stubs_ranges(const struct hotspot_stubs *s, const struct hotspot_stub_range **ret);
/* The stub that frames return to whose caller is in the heap, by its code (hotspot_frozen_code.h); 0: not found (yet).
 */
u64 hotspot_stubs_barrier(const struct hotspot_stubs *s);

#endif
