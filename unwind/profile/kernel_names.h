/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's symbols as they are needed: read once, with the first kernel frame. BPF programs that are loaded later
 * are not in them. Reading takes 30 ms, in which nobody follows processes: not again while sampling.
 */
#ifndef YRT_KERNEL_NAMES_H
#define YRT_KERNEL_NAMES_H

#include "symbols/name_reader.h"

/* Zeroed at first. */
struct kernel_names {
	struct kallsyms *symbols; /* NULL: not read yet, or not permitted */
	bool tried;
};

void kernel_names_free(struct kernel_names *k);
/* Are they there? If not, reader begins to read them. */
bool kernel_names_ready(struct kernel_names *k, struct name_reader *reader);
/* Reads them now, if nobody has. NULL: none covers addr. Valid until the next call. */
const char *kernel_names_find(struct kernel_names *k, u64 addr);

#endif
