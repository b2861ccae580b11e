/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All goroutines of a process, read while it runs: runtime.allgs, each g before and after its stack, and the stack
 * twice. If either has changed it is read again, and if that does not help it is GO_TORN and has no stack. The runtime
 * counts how often a goroutine stopped running (g.trackingSeq, 1.17 on, modulo 256), so one that came back to the same
 * place is noticed too.
 */
#ifndef YRT_GO_GOROUTINES_H
#define YRT_GO_GOROUTINES_H

#include "go_labels.h"
#include "go_places.h"
#include "go_stacks.h"
#include "go_view.h"
#include "profile/profile.h"

enum go_seen {
	GO_STANDS,
	GO_ON_CPU, /* it runs: its stack can not be known from memory */
	GO_TORN,
	GO_UNWALKED, /* its stack did not lead to where goroutines begin */
};

struct go_goroutine {
	u64 at; /* its g */
	u64 id, parent;
	u64 since;   /* of the process's CLOCK_MONOTONIC, when the collector found it waiting; 0: unknown */
	u64 creator; /* pc of the go statement, as a return address */
	u64 start;
	u64 stack[2]; /* from where it stands, or of all of it, to its end */
	u64 bubble;   /* of testing/synctest: its number, or 0 */
	u32 chain;    /* if it stands: without functions that the compiler made */
	u32 walked;   /* the same with them */
	u32 labels;   /* as go_labels.h counts them */
	u8 status, reason;
	u8 seen;     /* enum go_seen */
	bool locked; /* to its thread */
};

struct go_goroutines {
	struct go_goroutine *all; /* the dead are left out */
	u32 n;
	struct go_label_sets labels;
	u64 now; /* when they were read, in ns */
};

/* All of a moment, for go_goroutines_text.c and go_snapshots.c. */
struct go_goroutine_snapshot {
	struct go_goroutines goroutines;
	struct go_stacks stacks;
	struct go_places places;
	char reason[GO_REASONS][GO_REASON_MAX];
	u32 nreasons;
	u32 *order;  /* goroutines by chain, then labels; those without a chain are left out */
	u32 nchains; /* of this moment; stacks may get those of an earlier one besides */
	u32 *first;  /* of each chain in order; first[nchains] is the end */
};

/* Bits of runtime_snapshot_ops.flags. */
enum go_goroutine_flag { GO_EACH = 1, GO_SYSTEM = 2, GO_CREATORS = 4, GO_LINES = 8, GO_LABELLED = 16 };

/* What it does, as Go prints it: "chan receive". */
const char *go_goroutine_state(const struct go_goroutine_snapshot *s, const struct go_goroutine *g);
/* What Go prints behind that: " (leaked)", " (durable)", or nothing. */
const char *go_goroutine_manner(const struct go_goroutine_snapshot *s, const struct go_goroutine *g);
/* Minutes that it has waited, as far as the collector has noted it. */
u64 go_goroutine_minutes(const struct go_goroutine_snapshot *s, const struct go_goroutine *g);
/* How many each chain of after had in before, which gets numbers of chains of after; NULL: out of memory. before NULL:
 * zeroes. */
u32 *go_goroutines_before(const struct go_goroutine_snapshot *before, struct go_goroutine_snapshot *after);

/* As runtime_snapshot_ops.print and .draw. */
struct error *go_goroutines_print(const void *before, void *after, u32 flags, FILE *out);
struct error *go_goroutines_draw(const void *before, void *after, u32 flags, struct profile *ret);

struct error *go_goroutines_take(const struct go_view *v, u32 flags, void **ret);
void go_goroutines_drop(void *snapshot);

struct error *go_goroutines_read(const struct go_view *v, struct go_stacks *stacks, struct go_goroutines *ret);
void go_goroutines_free(struct go_goroutines *g);

#endif
