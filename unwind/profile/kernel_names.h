/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's names for its functions. */
#ifndef YRT_KERNEL_NAMES_H
#define YRT_KERNEL_NAMES_H

#include "symbols/symbols.h"

#define KERNEL_NAME_SIZE 520

/* Asks the kernel for the name of its function at addr; false if there is none. */
typedef bool kernel_ask(void *ctx, u64 addr, char *text, size_t size);

/*
 * Without ask, /proc/kallsyms is read, once, with the first kernel frame, which takes 30 ms and CAP_SYSLOG. BPF
 * programs that are loaded later are not in it. Zeroed but for ask at first.
 */
struct kernel_names {
	kernel_ask *ask;
	void *ctx;
	struct kallsyms *symbols; /* NULL: not read yet, or not permitted */
	bool tried;
	char text[KERNEL_NAME_SIZE];
};

void kernel_names_free(struct kernel_names *k);
/* NULL: none covers addr. Valid until the next call. */
const char *kernel_names_find(struct kernel_names *k, u64 addr);

#endif
