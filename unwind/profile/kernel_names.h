/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's names for its functions. */
#ifndef YRT_KERNEL_NAMES_H
#define YRT_KERNEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <types.h>

#define KERNEL_NAME_SIZE 520

/* Asks the kernel for the name of its function at addr; false if there is none. */
typedef bool kernel_ask(void *ctx, u64 addr, char *text, size_t size);

struct kernel_names {
	kernel_ask *ask; /* NULL: the kernel's functions have no names */
	void *ctx;
	char text[KERNEL_NAME_SIZE];
};

/* NULL: none covers addr. Valid until the next call. */
static inline const char *kernel_names_find(struct kernel_names *k, u64 addr)
{
	return k->ask && k->ask(k->ctx, addr, k->text, sizeof(k->text)) ? k->text : NULL;
}

#endif
