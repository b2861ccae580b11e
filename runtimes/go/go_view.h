/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's own data in a process. Its variables are found from the code that uses them and checked by their
 * contents. The layout of its structures must fit the goroutines of this process. For reports; the walker needs none of
 * it.
 */
#ifndef YRT_GO_VIEW_H
#define YRT_GO_VIEW_H

#include "go_code.h"
#include "go_layout.h"
#include "go_release.h"
#include "runtime.h"

#define GO_REASONS       128
#define GO_REASON_MAX    40
#define GO_GOROUTINE_MAX 1024 /* bytes of struct g that all members lie in */

/* runtime/runtime2.go: g.atomicstatus. */
enum go_status {
	GO_IDLE,
	GO_RUNNABLE,
	GO_RUNNING,
	GO_SYSCALL,
	GO_WAITING,
	GO_DEAD = 6,
	GO_COPYSTACK = 8,
	GO_PREEMPTED,
	GO_LEAKED,     /* 1.26 on */
	GO_DEAD_EXTRA, /* 1.26 on */
	GO_STATUSES = 16,
	GO_STATUS_SCAN = 0x1000, /* a bit besides: the collector looks at its stack */
};

struct go_view {
	const struct runtime_process *p;
	struct go_table *table;
	u64 bias;
	char release[GO_RELEASE_MAX];
	struct layout *layout;
	const struct go_layout *at;             /* of layout */
	u64 allgs;                              /* address of the slice; 0: the runtime is only starting */
	char reason[GO_REASONS][GO_REASON_MAX]; /* runtime.waitReasonStrings */
	u32 nreasons;
	u64 buckets; /* address of runtime.mbuckets; 0: not found */
	u64 rate;    /* runtime.MemProfileRate */
};

/*
 * *ret is NULL for a module without a runtime of its own. An error says what does not fit: a layout that the goroutines
 * contradict is not used. p stays the caller's.
 */
struct error *go_view_open(const struct runtime_process *p, struct go_table *t, u64 bias, struct go_view **ret);
void go_view_close(struct go_view *v); /* NULL is fine */

/* A word of the process; 0 if it can not be read. */
u64 go_word(const struct go_view *v, u64 addr);
/* A member of size 1, 4 or 8 out of a copy of its structure. */
u64 go_member(const void *structure, struct layout_member m);
/* So many bytes of a struct g hold all members; more than GO_GOROUTINE_MAX: the layout is wrong. */
u32 go_goroutine_size(const struct go_view *v);
/* Is this the first byte of a function in Go? */
bool go_is_start(const struct go_view *v, u64 addr);

#endif
