/* SPDX-License-Identifier: Apache-2.0 */
/* From frames to functions of a profile: symbols for native and kernel code, the runtime for its own frames. */
#ifndef YRT_NAMES_H
#define YRT_NAMES_H

#include <signal.h>
#include <types.h>

#include "symbols/name_reader.h"
#include "process/process.h"
#include "profile.h"
#include "table.h"

struct names;

struct names_options {
	u32 expand;			/* enum expand_flag of runtime.h */
	bool lines;			/* split functions by the line being executed */
	bool inlines;			/* tell inlined functions and lines of native code, by names_expand() */
	bool mangled;			/* native names as they are in the file */
	bool signatures;		/* names of functions with their arguments, in languages where they have them */
	bool alloc;			/* stacks of allocations: hide what only leads to them (runtime_alloc_ops.hides) */
	struct name_reader *reader;	/* NULL: symbols are read when they are needed */
	const struct runtime_ops *view; /* hide native frames that this language's frames stand for; NULL: hide none */
};

struct named { /* what a frame became */
	u32 function;	 /* in the profile */
	bool hidden;	 /* not to be shown in this view */
	bool begins;	 /* hidden, as are the native frames that have called it */
	bool by_code;	 /* a script's frame for C code, named by that code: the native frame inside it says the same */
	bool unresolved; /* nothing is known but the address */
	u8 layer;	 /* enum cython_layer: it only leads to a native frame of the same name inside it, of a lower layer */
};

struct error *names_create(struct profile *profile, const struct modules *modules, const struct names_options *options,
	struct names **ret);
void names_destroy(struct names *names);
/* Names frames[i] of a stack of n frames, leaf first. p: the process it was taken in; NULL: unknown, kernel frames only. */
struct error *names_frame(struct names *names, const struct process *p, const struct frame *frames, u32 i, u32 n,
	struct named *ret);
/* Have n frames the symbols that their names take? If not they are asked of the reader. */
bool names_ready(struct names *names, const struct frame *frames, u32 n);
/* The names of what is inlined where function stands for a place in native code, outermost first. Reads debug information. */
struct error *names_inlined(struct names *names, u32 function, const char *const **ret, u32 *n);
/*
 * When all stacks are there: *p, the profile of names, is replaced by one in which native frames are the functions that
 * are inlined there, and have files and lines. On failure it stays. Nothing is to be named after that. stop: as
 * inline_sites_expand() has it.
 */
struct error *names_expand(struct names *names, struct profile **p, volatile sig_atomic_t *stop);

#endif
