/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where members of the runtime's structures are, by release: runtime/runtime2.go (g, m), runtime/mprof.go (bucket,
 * memRecord). The walker needs none of these; goroutines and the heap profile do.
 */
#ifndef YRT_GO_LAYOUT_H
#define YRT_GO_LAYOUT_H

#include "layout/layout.h"

#define GO_MEMBERS(M, OPTIONAL)                                                                                        \
	M(g_stack_lo, "runtime.g:stack.lo")                                                                            \
	M(g_stack_hi, "runtime.g:stack.hi")                                                                            \
	M(g_m, "runtime.g:m")                                                                                          \
	M(g_sp, "runtime.g:sched.sp")                                                                                  \
	M(g_pc, "runtime.g:sched.pc")                                                                                  \
	M(g_self, "runtime.g:sched.g")                                                                                 \
	M(g_syscallsp, "runtime.g:syscallsp")                                                                          \
	M(g_syscallpc, "runtime.g:syscallpc")                                                                          \
	M(g_status, "runtime.g:atomicstatus")                                                                          \
	M(g_goid, "runtime.g:goid")                                                                                    \
	M(g_waitsince, "runtime.g:waitsince")                                                                          \
	M(g_waitreason, "runtime.g:waitreason")                                                                        \
	M(g_gopc, "runtime.g:gopc")                                                                                    \
	M(g_startpc, "runtime.g:startpc")                                                                              \
	M(g_labels, "runtime.g:labels")                                                                                \
	M(g_locked, "runtime.g:lockedm")                                                                               \
	OPTIONAL(g_parent, "runtime.g:parentGoid") /* 1.21 on */                                                       \
	OPTIONAL(g_moves, "runtime.g:trackingSeq") /* 1.17 on: one more each time that it stops running */             \
	OPTIONAL(g_bubble, "runtime.g:bubble")     /* 1.25 on: of testing/synctest */                                  \
	M(m_curg, "runtime.m:curg")                                                                                    \
	M(m_tid, "runtime.m:procid")                                                                                   \
	OPTIONAL(bubble_id, "runtime.synctestBubble:id")                                                               \
	M(b_next, "runtime.bucket:allnext")                                                                            \
	M(b_type, "runtime.bucket:typ")                                                                                \
	M(b_size, "runtime.bucket:size")                                                                               \
	M(b_depth, "runtime.bucket:nstk")                                                                              \
	M(b_bytes, "sizeof runtime.bucket:")                                                                           \
	M(r_active, "runtime.memRecord:active")                                                                        \
	M(r_future, "runtime.memRecord:future")                                                                        \
	M(c_bytes, "sizeof runtime.memRecordCycle:") /* objects made, freed; bytes made, freed */

struct go_layout {
#define M(slot, name) struct layout_member slot;
	GO_MEMBERS(M, M)
#undef M
};

extern const struct layout_schema go_layout_schema;

/* Where a layout may come from, in the order that they are tried in. */
enum go_layout_from {
	GO_LAYOUT_SERIES, /* the library's, by the release's series: "go1.26" of "go1.26.8" */
	GO_LAYOUT_DEBUG,  /* the file's debug information */
	GO_LAYOUT_NEWEST, /* the library's newest, for a series that it does not have */
	GO_LAYOUTS,
};

/* *ret is NULL if that source has no layout. The release that a file names may be wrong: check it on the process. */
struct error *go_layout_find(struct image *img, const char *release, enum go_layout_from from, struct layout **ret);
/* The number behind "go1."; 0: it has another form. */
unsigned long go_release_minor(const char *release);

#endif
