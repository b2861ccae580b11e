/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that are no code: the process and thread of samples, and the program's own labels. Formats with labels (pprof,
 * OTLP) have these beside the stack.
 */
#ifndef YRT_SAMPLE_LABELS_H
#define YRT_SAMPLE_LABELS_H

#include "unwind/profile/containers.h"
#include "unwind/profile/profile.h"

/* What a format calls them; NULL, but for process: it has no such label. */
struct label_keys {
	const char *process, *pid, *const *container, *thread, *thread_id;
};

/* What pprof files call what containers.h knows; as labels of processes. */
extern const char *const pprof_containers[CONTAINER_TERMS];

/* text: NULL for one that is a number. */
typedef void label_add(void *ctx, const char *key, const char *text, u64 number);

/* Is a node of this kind a label? */
bool sample_label_is(enum profile_kind kind);
/* Calls add() for each label that the node of this function is. */
void sample_labels_add(const struct profile_function *f, const struct label_keys *keys, label_add *add, void *ctx);

/* The function of the process that used most, of those whose files are known; 0: none. */
u32 sample_labels_program(const struct profile *p);

#endif
