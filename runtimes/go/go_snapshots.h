/* SPDX-License-Identifier: Apache-2.0 */
/* The commands go-goroutines, go-heap, go-alloc. */
#ifndef YRT_GO_SNAPSHOTS_H
#define YRT_GO_SNAPSHOTS_H

#include "go_table.h"
#include "runtime_snapshot.h"

extern const struct runtime_snapshot_ops *const go_snapshots[];

/* *ret: a struct go_goroutine_snapshot; NULL if there are no goroutines. flags: enum go_goroutine_flag. */
struct error *go_take_goroutines(void *instance, const struct runtime_process *p, u32 flags, void **ret);

/* Of an instance (go.c): its table and load bias. */
struct go_table *go_instance_table(void *instance, u64 *bias);

#endif
