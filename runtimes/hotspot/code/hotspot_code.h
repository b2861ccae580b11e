/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code cache as user space reads it: heaps, blobs, nmethods. The target keeps running, so what is read may be torn.
 * Every number is checked; false means that the data was inconsistent.
 */
#ifndef YRT_HOTSPOT_CODE_H
#define YRT_HOTSPOT_CODE_H

#include "runtimes/hotspot/walk/hotspot.h"
#include "runtimes/hotspot/layout/hotspot_layout.h"
#include "binary/memory.h"

#define HOTSPOT_HEAPS_MAX HOTSPOT_HEAPS

struct hotspot_heap {
	u64 low, high;     /* committed */
	u64 reserved_high; /* it may grow up to here */
	u64 segmap;        /* of the first segment */
	u32 log2_segment;
	char name[64]; /* "CodeHeap 'non-nmethods'" */
};

/* What kind a blob is: by _kind where there is one, else by its name. */
enum hotspot_blob_kind {
	BLOB_NMETHOD,
	BLOB_STUB /* fixed frame size: RuntimeStub, deopt, uncommon trap… */,
	BLOB_BUFFER /* adapters, stub routines, interpreter */
};

struct hotspot_blob {
	u64 at; /* struct CodeBlob */
	u64 code, code_end;
	u32 frame_size; /* words; with return address, and saved rbp */
	s32 frame_complete;
	enum hotspot_blob_kind kind;
	char name[64]; /* "nmethod", "StubRoutines (2)", "I2C/C2I adapters", "Interpreter", "jlong_disjoint_arraycopy"…
	                */
};

/* A compiled method: where its tables lie. */
struct hotspot_nmethod {
	u64 at;
	u64 method; /* Method* */
	u64 code, code_end;
	u64 pcs, pcs_end; /* array of PcDesc */
	u64 scopes;       /* scopes_data */
	u64 scopes_end;
	u64 metadata, metadata_end; /* array of Metadata*, index 1 is the first */
	u32 compile_id;
	u32 level;     /* 1 to 4 */
	s32 entry_bci; /* >= 0: on-stack replacement */
	s32 orig_pc_offset;
};

struct hotspot_vm hotspot_vm_of(const struct hotspot_layout *l, const struct hotspot_heap *heap);
/* Tells it of all heaps, as they are by now. */
void hotspot_vm_heaps(struct hotspot_vm *vm, const struct hotspot_heap *heaps, u32 n);

struct hotspot_code; /* of one process */

struct error *hotspot_code_create(const struct vmstructs *v, const struct hotspot_layout *l, struct hotspot_code **ret);
void hotspot_code_destroy(struct hotspot_code *c); /* NULL is fine */

/* The heaps as they are now; returns how many. */
u32 hotspot_heaps(const struct hotspot_code *c, struct memory *m, struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX]);
/* The interpreter's code. */
bool hotspot_interpreter(const struct hotspot_code *c, struct memory *m, u64 *start, u64 *end);
/* Calls each for all blobs of a heap (bounded) until it returns false. */
void hotspot_each_blob(const struct hotspot_code *c, struct memory *m, const struct hotspot_heap *heap,
        bool (*each)(void *ctx, const struct hotspot_blob *blob), void *ctx);
bool hotspot_blob_at(const struct hotspot_code *c, struct memory *m, u64 pc, struct hotspot_blob *ret);
/* The nmethod at this address. False: there is none, or it is another one by now (compile_id; 0: any). */
bool hotspot_nmethod_read(
        const struct hotspot_code *c, struct memory *m, u64 at, u32 compile_id, struct hotspot_nmethod *ret);

#endif
