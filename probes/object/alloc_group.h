/* SPDX-License-Identifier: Apache-2.0 */
/* Places of a program in a file that a process maps: their uprobes come and leave together. */
#ifndef YRT_ALLOC_GROUP_H
#define YRT_ALLOC_GROUP_H

#include "alloc_departures.h"
#include "alloc_windows.h"

#define ALLOC_GROUP_MAX 64

struct alloc_group {
	u32 process;
	pid_t pid;
	int file;
	char path[96];
	const struct bpf_program *program;
	u64 offset[ALLOC_GROUP_MAX], cookie[ALLOC_GROUP_MAX], pair;
	u64 start; /* of the file's code in the process, if it were mapped from its begin on; 0: not known */
	u32 n;
	bool placed; /* it was, once */
	bool following, tail;
	struct uprobe *uprobe, *second; /* NULL: not there */
	struct alloc_breakpoint last, last_second;
};

/* Adds the place to one of the groups, or as a new one. What is gone by now is no error. */
struct error *alloc_groups_add(struct alloc_group **groups, u32 *n, const struct process *p, const char *path,
        const struct alloc_window_place *place);
/* Unless it is there. */
struct error *alloc_group_place(struct alloc_group *g);
/* This program behind the first place (alloc_window_place.pair), if it is probed and code permits that. */
void alloc_group_place_pair(struct alloc_group *g, const struct bpf_program *program);
/* Its process has ended. */
void alloc_group_forget(struct alloc_group *g, struct alloc_departures *d);

#endif
