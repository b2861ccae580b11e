/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocators: runtimes without frames. Each has a table of operations and a line in allocators.c; what it finds it
 * adds to the tree of the process (usage.h), and claims the memory that it accounts for (space.h). Whatever nobody
 * claims is shown by kind of mapping.
 *
 * To add one: a file NAME.c with `const struct allocator NAME_allocator`. It recognises itself by structure, checks
 * what it found, and refuses by usage_say() rather than guess. Everything that it reads is untrusted, and changes while
 * it is read.
 */
#ifndef YRT_ALLOCATORS_H
#define YRT_ALLOCATORS_H

#include "space.h"
#include "usage.h"

struct allocator {
	const char *name;
	/* Adds what it holds. Nothing if it is not in this process. Errors are those of yrt itself (no memory). */
	struct error *(*read)(struct space *s, struct usage *u);
};

extern const struct allocator glibc_allocator;
extern const struct allocator jemalloc_allocator;
extern const struct allocator mallocng_allocator; /* musl's */
extern const struct allocator mimalloc_allocator;
extern const struct allocator tcmalloc_allocator;    /* of gperftools, and Google's */
extern const struct allocator recognised_allocators; /* by their names only: says that they are not read */

/* Reads all memory of a process into a tree, and computes its totals. */
struct error *allocators_read(struct space *s, struct usage **ret);

#endif
