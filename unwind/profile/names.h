/* SPDX-License-Identifier: Apache-2.0 */
/* From frames to functions of a profile: symbols for native and kernel code, the runtime for its own frames. */
#ifndef YRT_NAMES_H
#define YRT_NAMES_H

#include <signal.h>
#include <types.h>

#include "symbols/name_reader.h"
#include "process/process.h"
#include "process/view.h"
#include "kernel_names.h"
#include "profile.h"
#include "table.h"

struct names;

#define REASON_LEN 256

struct names_options {
	u32 expand;       /* enum expand_flag of runtime.h */
	bool lines;       /* split functions by the line being executed */
	bool addresses;   /* split native functions by the place being executed, which is their address */
	bool inlines;     /* add inlined functions and lines of native code, by names_expand() */
	bool own_inlines; /* but not in files that are a runtime's alone, whose debug information is large */
	bool mangled;     /* native names as they are in the file */
	bool signatures;  /* names of functions with their arguments, in languages where they have them */
	bool objects; /* stacks end in an object: hide what only leads to one (runtime_alloc_ops.is_runtime_internal) */
	void (*reason)(u32 reason,
	        char *text); /* the words of a FRAME_REASON, at most REASON_LEN bytes; NULL: there is none */
	void (*object)(u64 key, char *text);          /* those of a FRAME_OBJECT, as long; NULL: there is none */
	enum profile_kind (*reason_kind)(u32 reason); /* and what it is; NULL: kernel */
	enum profile_kind object_kind;                /* what FRAME_OBJECTs are; 0: kernel */
	bool (*leads_to_program)(
	        const char *symbol); /* kernel functions that hide as innermost ones: event_ops; NULL: none */
	struct name_reader *reader;  /* NULL: symbols are read when they are needed */
	kernel_ask *kernel;          /* names the kernel's functions; NULL: they have no names */
	void *kernel_ctx;
	struct process *(*find)(void *ctx, u32 number); /* by number, NULL if unknown; set by the collector */
	void *find_ctx;
	const struct view *view; /* hide native frames that this language's frames stand for; NULL: hide none */
};

struct named {                /* what a frame became */
	u32 function;         /* in the profile */
	bool hidden;          /* not to be shown in this view */
	bool leads;           /* not to be shown as long as nothing inside it is: names_options.leads_to_program */
	bool is_thread_entry; /* hidden, as are the native frames that have called it */
	bool by_code;         /* a script's frame for C code: the native frame inside it says the same */
	bool unresolved;      /* nothing is known but the address */
	u8 layer; /* enum translated_layer: it only leads to a native frame of the same name inside it, of a lower layer
	           */
};

struct error *names_create(struct profile *profile, const struct modules *modules, const struct names_options *options,
        struct names **ret);
void names_destroy(struct names *names);
/* Names frames[i] of a stack of n frames, leaf first. p: the process it was taken in; NULL: unknown, kernel frames
 * only. */
struct error *names_frame(
        struct names *names, const struct process *p, const struct frame *frames, u32 i, u32 n, struct named *ret);
/* Is frames[i] a VM's loop that runs the script's frame inside it? It is named without what is inlined there. */
static inline bool names_runs_script(const struct frame *frames, u32 i)
{
	return frame_kind(&frames[i]) == FRAME_NATIVE && frame_flags(&frames[i]) & FRAME_VM && i &&
	       frame_kind(&frames[i - 1]) == FRAME_SCRIPT;
}

/* What is inlined at the place of such a loop: the innermost script frame has called it. If hidden: nothing. */
struct error *names_inlined_part(
        struct names *names, const struct process *p, const struct frame *loop, struct named *ret);
/* Lets runtimes read what they need to name new frames of scripts; they keep it in their own caches. */
void names_prefetch(struct names *names, const struct process *p, const struct frame *frames, u32 n);
/* Have n frames the symbols that their names take? If not they are asked of the reader. */
bool names_ready(struct names *names, const struct frame *frames, u32 n);
/* The names of what is inlined where function stands for a place in native code, outermost first. Reads debug
 * information. */
struct error *names_inlined(struct names *names, u32 function, const char *const **ret, u32 *n);
/*
 * Call when all stacks are there. Replaces *p, the profile of names, by one in which native frames are the functions
 * that are inlined there, with files and lines. On failure it stays. Nothing may be named after that. stop: as in
 * inline_sites_expand().
 */
struct error *names_expand(struct names *names, struct profile **p, volatile sig_atomic_t *stop);

#endif
