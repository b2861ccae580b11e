/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile: named stacks with counts as one tree. Formats write it. It bounds memory while sampling, because the tree
 * grows with distinct call paths, not with samples.
 *
 * A function is an identity with a display name that may improve while sampling (a Lua function gets its name from its
 * caller). Nodes refer to functions, so a better name applies to all of them.
 */
#ifndef YRT_PROFILE_H
#define YRT_PROFILE_H

#include <stdio.h>
#include <types.h>

#include "error.h"
#include "shared/frame.h"

/* What a frame is to people: its colour and its filter. Order is the order of legends. */
#define PROFILE_KINDS(X)                                                                                               \
	X(KIND_ROOT, "root")                                                                                           \
	X(KIND_KERNEL, "kernel")                                                                                       \
	X(KIND_NATIVE, "native")                                                                                       \
	X(KIND_CXX, "c++")                                                                                             \
	X(KIND_RUST, "rust")                                                                                           \
	X(KIND_VM, "vm")                                                                                               \
	X(KIND_SCRIPT, "script")            /* interpreted */                                                          \
	X(KIND_SCRIPT_BASELINE, "baseline") /* compiled by the quick one of a runtime's two JITs */                    \
	X(KIND_SCRIPT_JIT, "jit")           /* script code compiled by a JIT */                                        \
	X(KIND_SCRIPT_NATIVE, "cfunc")      /* a function of the language that is implemented in C */                  \
	X(KIND_STUB, "stub")                /* machine code of a runtime that does the work of a function */           \
	X(KIND_WORK, "runtime")             /* what a runtime does of its own, as one frame */                         \
	X(KIND_CLASS, "class")              /* no code: the type of what was allocated */                              \
	X(KIND_MEMORY, "memory")            /* no code: a mapping, or a part of an allocator */                        \
	X(KIND_USED, "used")                /* memory that the program has */                                          \
	X(KIND_FREE, "free")                /* memory that it gave back to its allocator */                            \
	X(KIND_LABEL, "label")              /* no code: what the program has labelled its work with */                 \
	X(KIND_CONTAINER, "container")      /* of processes: containers.h */                                           \
	X(KIND_PROCESS, "process")          /* process_names.h */                                                      \
	X(KIND_THREAD, "thread")                                                                                       \
	X(KIND_RUNNING, "running")   /* no code: what its thread did, inside the leaf */                               \
	X(KIND_RUNNABLE, "runnable") /* the CPU was busy with others */                                                \
	X(KIND_WAITING, "waiting")                                                                                     \
	X(KIND_UNKNOWN, "unknown") /* no symbol, truncated */

enum profile_kind {
#define X(id, word) id,
	PROFILE_KINDS(X)
#undef X
	        KIND_MAX
};

/* How the processes of a profile are drawn (profile_processes.h). */
enum processes {
	PROCESSES_AUTO,    /* if there are several; of a program with many as one */
	PROCESSES_SEVERAL, /* if there are several, each */
	PROCESSES_EACH,
	PROCESSES_PROGRAM, /* those of a program as one */
	PROCESSES_NONE,    /* all as one */
	PROCESSES_RAW,     /* each, under its whole command line */
};

/* For a function that was compiled in several ways: the shares of its samples, in percent. */
struct profile_tiers {
	u8 script, baseline, jit; /* kinds */
	u8 inlined;
	u8 approx; /* FRAME_APPROX */
};

struct profile_function {
	const char *name;   /* "handler (app.lua:42)", demangled; UTF-8 not guaranteed; hostile */
	const char *module; /* "nginx", "kernel", "luajit"; never NULL, may be "" */
	const char *file;   /* "" if unknown */
	u32 line;           /* being executed, where functions are split by line; else definition; 0: unknown */
	u32 definition;     /* where the function is defined; 0: unknown */
	u32 flags;          /* enum frame_flag: FRAME_GUESS, FRAME_APPROX */
	enum profile_kind kind;
	u32 image;   /* index into profile.images; 0: unknown */
	u64 address; /* of its first byte, in the file (0: unknown); or of the place being executed
	              * (names_options.addresses): of a call the last byte, in no file that of the process */
	double chance_self,
	        chance_total;       /* of a difference that was tested (diff_test.h): p, adjusted; 0: it was not */
	struct profile_tiers tiers; /* all 0: it was seen in one way only, or is not merged (profile_tiers.h) */
};

/* An ELF file that functions came from. */
struct profile_image {
	const char *path;     /* as the target knew it */
	const char *build_id; /* hexadecimal; "" if it has none */
};

struct profile_node {
	u32 function; /* index into profile.functions; node 0 is the root, function 0 is "all" */
	u32 parent;
	u32 child;   /* first child, 0: none */
	u32 sibling; /* next, 0: none */
	u64 self;    /* samples (or the unit's) that end here */
	u64 more;    /* what else was counted of them (meta.more), as objects beside bytes */
	u64 total;   /* with all below; valid after profile_finish() */
};

/* A sample in the order in which it was taken: counted in its node, too. */
#define PROFILE_TIME_STEP_NS 1000000u
struct profile_time {
	u32 node;
	u32 when; /* steps since the start */
};

/* How it was made: the banner of pictures and the statistics. Strings may be NULL. */
struct profile_meta {
	const char *title;        /* "lua-flame" */
	const char *heading;      /* for people, in place of title (--title); NULL: none */
	const char *command;      /* as typed */
	const char *target;       /* "nginx (pid 42)" */
	const char *unit;         /* "samples", "bytes", "objects" */
	const char *more;         /* unit of profile_node.more: "objects" beside bytes; NULL: none */
	const char *loss;         /* the loss line */
	const char *why;          /* to be read first: why nothing was seen, what is corrupt; NULL or "": nothing */
	const char *labels;       /* where it is from, for stores: lines "key=value"; NULL: not known */
	const char *stats;        /* what was seen and lost, as JSON (--stats) */
	enum processes processes; /* as asked for; PROCESSES_AUTO: as the format likes it */
	bool source;              /* show source lines, where that is possible */
	bool annotate;            /* frames of each kind are apart, folded stacks say which */
	const char *before;       /* of a difference: what it is compared with */
	const char *loss_before;  /* and its loss line */
	const char *chance;       /* what a test of it found, in a line; NULL: it was not tested */
	u64 start_unix_ns;
	u64 duration_ns;
	double frequency;
};

/* Bounds of memory. Stacks that find no room are counted under the root's child of function PROFILE_FULL. */
#define PROFILE_MAX_NODES  (4u << 20)
#define PROFILE_FULL       1 /* the function "[profile full]" */
#define PROFILE_MAX_IMAGES 4096

struct profile {
	struct profile_function *functions;
	u32 nfunctions;
	struct profile_node *nodes; /* a child's index is above its parent's */
	u32 nnodes;
	u32 max_nodes;                /* PROFILE_MAX_NODES, or less if set */
	struct profile_image *images; /* 0 is unused */
	u32 nimages;
	u64 *base;         /* of a difference: each node's self in the profile compared with; NULL: none. Owned */
	double base_scale; /* what base is to be multiplied by before it is compared */
	struct profile_time *times; /* of samples, in no order; NULL: nobody kept them. Owned */
	u32 ntimes;
	struct profile_meta meta;
	void *private; /* of profile.c: lookup tables */
};

struct error *profile_create(struct profile **ret);
void profile_destroy(struct profile *p);

/*
 * The function with this identity (all of name, module, file, line, kind, flags if key is 0, else key); made if new.
 * For a known key a new non-empty name (with its file and line, if it has a file) replaces the old one only if better
 * says so. Strings are copied; of each the first 4 KiB. NULL is "".
 */
struct error *profile_function(struct profile *p, u64 key, const struct profile_function *fn, bool better, u32 *ret);
/* The image of this path and build-id (may be NULL); made if new. 0 if there is no room. */
struct error *profile_image(struct profile *p, const char *path, const char *build_id, u32 *ret);
/* A copy of s that lives as long as the profile, for meta. NULL stays NULL. */
struct error *profile_string(struct profile *p, const char *s, const char **ret);
/* The child of node for function; made if new. */
struct error *profile_child(struct profile *p, u32 node, u32 function, u32 *ret);
/* Adds to a node's self count. What is less than 0 as an s64 is taken away, as far as there is something. */
void profile_add(struct profile *p, u32 node, u64 count);
/* Adds to what else was counted. */
void profile_add_more(struct profile *p, u32 node, u64 count);
/* A sample of a node was taken then. */
struct error *profile_add_time(struct profile *p, u32 node, u32 when);
/* The times of another profile; in map its nodes' places in p. */
struct error *profile_copy_times(struct profile *p, const struct profile *from, const u32 *map);
/* By time, and of one moment by node. */
void profile_sort_times(struct profile *p);
/* What else was counted becomes what is counted, and the other way round. */
void profile_swap(struct profile *p);
/* Computes totals. Call before a format writes. */
void profile_finish(struct profile *p);
/*
 * Replaces function i by function as[i], which is at most i and stays as it is; nodes that become equal are merged.
 * Functions have other numbers then. p must be finished, and is again afterwards.
 *
 * sure[i]: i, or the certain form of function i if that is the same but approximate. Below one node both forms are
 * merged into the form of most of its samples. sure[as[i]] is sure[i], and as[sure[i]] is sure[i]. If both are 0 the
 * function is removed: its nodes' counts go to their parents.
 */
struct error *profile_merge(struct profile *p, const u32 *as, const u32 *sure);

#endif
