/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes, in the map code_changes, when targets map memory where code was that they had made. A JIT compiler that makes
 * code for each query (LLVM's in PostgreSQL) gets the same memory again and again, and walks must not follow the rows
 * of other code. A stack that reaches such memory is walked again when it has been read (deferred.h).
 *
 * It is a BPF object of its own, loaded when a target has such rows: few have. Where the kernel does not permit it, or
 * code is replaced without a mapping, rows may be believed for 0.1 s too long.
 */
#ifndef YRT_CODE_WATCH_H
#define YRT_CODE_WATCH_H

#include <sys/types.h>

#include "unwind/shared/region.h"

struct code_watch;
struct sample;

/* For the targets of a loaded object. NULL: not possible here. */
struct code_watch *code_watch_create(struct sample *skel);
/* Where a target has code that it made. */
void code_watch_set(struct code_watch *w, pid_t tgid, const struct code_ranges *code);
void code_watch_destroy(struct code_watch *w);

#endif
