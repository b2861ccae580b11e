/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why Go's runtime ended the process: the value of a panic that nobody recovered, or what a fatal error says. The
 * runtime replaces values of type error and Stringer by their text before it dies (runtime/panic.go: preprintpanics,
 * since 1.9). g._panic follows two words of stack and two guards in all releases; the linker knows that offset.
 * _panic began with argp until 1.25 (runtime/runtime2.go of 1.11 to 1.26).
 */
#ifndef YRT_GO_PANIC_H
#define YRT_GO_PANIC_H

#include "go.h"
#include "go_table.h"
#include "runtime.h"

struct go_dying { /* a thread */
	const struct runtime_process *p;
	struct go_table *table;
	u64 bias;
	const struct frame *frames; /* as walked */
	u32 n;
};

/* config may be NULL: then only fatal errors are known. As runtime_ops.last_words. */
bool go_last_words(
        const struct go_dying *at, const struct go_config *config, u64 thread_pointer, char *ret, size_t size);

#endif
