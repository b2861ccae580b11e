/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait, as the BPF program visit_threads reports them: of the whole machine, whose threads the kernel
 * lists one by one (a microsecond each), or of a few processes only (Linux 6.1, kernel/bpf/task_iter.c).
 */
#ifndef YRT_WAIT_LIST_H
#define YRT_WAIT_LIST_H

#include <bpf/libbpf.h>
#include <types.h>

#include "error.h"
#include "probes/targets.h"
#include "wait_record.h"

struct wait_list {
	const struct bpf_program *program;
	struct bpf_link *all;
	bool whole_only; /* the kernel cannot list those of a process */
};

/* What it returns ends the list, unless it is NULL. */
typedef struct error *wait_each(void *ctx, const struct wait_thread *t);

/* wait_list_close() in any case. */
struct error *wait_list_open(struct wait_list *l, const struct bpf_program *program);
void wait_list_close(struct wait_list *l);
/* All threads of targets. */
struct error *wait_list_all(const struct wait_list *l, wait_each *each, void *ctx);
/* The same, cheaper where there are few targets. While threads end a list may lack others: for what is done again. */
struct error *wait_list_some(struct wait_list *l, const struct targets *targets, wait_each *each, void *ctx);

#endif
