/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Y program's probes as the kernel takes them: instructions and maps, made by the compiler (frontends/ylang/emit/),
 * loaded and attached by y_probe.c. Instructions name maps and functions of the kernel by number; the loader puts in
 * what these are here:
 *
 *	BPF_LD | BPF_IMM | BPF_DW, BPF_PSEUDO_MAP_FD or _VALUE	imm: number of a map
 *	BPF_CALL, BPF_PSEUDO_KFUNC_CALL				imm: enum y_kfunc
 */
#ifndef YRT_Y_OBJECT_H
#define YRT_Y_OBJECT_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <types.h>

#include "y.h"

enum y_kfunc { Y_ITER_NEW, Y_ITER_NEXT, Y_ITER_DESTROY, Y_KFUNCS };

/* The maps that all have; those of the program follow. */
enum y_own_map {
	Y_MAP_STATES,
	Y_MAP_RING,
	Y_MAP_FAILURES,
	Y_MAP_GLOBALS,
	Y_MAP_LITERALS,
	Y_MAP_LEFT,
	Y_MAP_EDIT, /* struct y_edit and a key */
	Y_MAP_PENDING,
	Y_MAP_ON_Y, /* and one for each other enum y_kind */
	Y_MAP_ARGUMENTS = Y_MAP_ON_Y + Y_KINDS,
	Y_OWN_MAPS
};
/* From Y_MAP_PENDING on they are those of y_stacks_maps(), where the program has stacks, or arguments of calls. */

/*
 * Cookies of returns. A function may be left by a jump to another one, whose return is its own (hit_tails.h): the jump
 * marks the call in Y_MAP_LEFT, by the stack pointer, which is that of the entry.
 */
#define Y_COOKIE_BORROWED 1 /* of a function that was jumped to: of marked calls only */
#define Y_COOKIE_JUMP     2 /* such a jump */
#define Y_LEFT_MOST       4096

struct y_left_key {
	u64 sp, handler;
};

/*
 * Where a handler works. Threads may be preempted within it, so each CPU has some: a handler takes the first that is
 * free. Slots, strings, arrays and room for keys follow.
 */
#define Y_STATES_PER_CPU 8
#define Y_OUT_SIZE       8192u
struct y_state {
	u32 busy, out_used;
	u32 status, place; /* of the last failure */
	u64 at;
	u64 until, steps; /* of loops */
	u64 scratch;
	u64 thread;     /* its number; from bit 32 on its process's */
	u64 generation; /* that it began in */
	u64 pends;      /* pending is set */
	struct y_pending pending;
	char out[Y_OUT_SIZE]; /* records for user space */
};

/* What a timer adds to a map that handlers also read: a program (struct y_object_edit) does it, atomically. */
struct y_edit {
	char head[offsetof(struct y_state, thread)]; /* as a state's, whose scratch it uses */
	u64 by, result;                              /* the key follows */
};

enum y_record_kind { Y_RECORD_PRINT = 1, Y_RECORD_MAP, Y_RECORD_WARN, Y_RECORD_ERROR, Y_RECORD_EXIT };
struct y_record {
	u16 kind;
	u16 size;   /* with this head; a multiple of 8 */
	u32 number; /* of a format or a map; of a warning its place */
};
struct y_printed_value { /* behind a PRINT, in the order of the format; of a string its y_text follows */
	u64 value, status, at;
};

struct y_counted { /* Y_MAP_FAILURES: [place * Y_STATUSES + status] */
	u64 count, at;
};

/* The start of Y_MAP_GLOBALS. */
struct y_control {
	u64 running; /* 0: handlers do nothing */
	u64 handlers, lost_records, lost_updates;
	u64 not_run; /* all states of the CPU were in use */
	u64 generation;
};

/*
 * Generations. What handlers only add to is gathered: its keys begin with the control's generation, as it was when the
 * handler began. User space takes a generation once it has begun the next one and no handler that began in it is
 * running: then nobody adds to it, and what was taken can be deleted without losing a hit.
 */

struct y_total { /* of an aggregate; in the kernel one for each CPU. count 0: it has none */
	u64 count, sum;
	u64 most, least; /* unsigned, ~unsigned: y_ordered() */
	u64 bucket[258]; /* of the program's histogram, which may have fewer */
};
#define Y_TOTAL_SIZE offsetof(struct y_total, bucket)
/* The order of signed numbers as unsigned ones, so that 0 is the least. */
static inline u64 y_ordered(u64 value)
{
	return value ^ 1ull << 63;
}

struct y_object_map {
	u32 type, key_size, value_size, most; /* as BPF_MAP_CREATE takes them */
};

struct y_object_edit {          /* a raw tracepoint's program, run by hand */
	struct bpf_insn *insns; /* NULL: nobody needs it */
	u32 ninsns;
};

struct y_object_handler {
	enum y_kind kind;
	const char *spec; /* of code and calls: as hit_parse() takes it; of the kernel: the tracepoint's name */
	const char *file; /* of the program, and where this stands there */
	u32 line, column;
	bool returns;
	bool sleepable;              /* it was made so that it may wait for absent pages */
	u64 period_ns;               /* of the clock */
	const char *const *variants; /* of a USDT probe: its cookie says which of these its place's arguments are */
	u32 nvariants;
	bool registers;            /* it reads arguments or a result */
	const char *const *wanted; /* of a call: the arguments that it reads, by name, or "0" and so on */
	u32 nwanted;
	struct bpf_insn *insns;
	u32 ninsns;
};

struct y_object {
	struct y_object_map *maps;
	u32 nmaps;
	struct y_object_edit *edits; /* of the program's own maps (struct y_edit) */
	struct y_object_handler *handlers;
	u32 nhandlers;
	void *globals, *literals; /* contents of their maps at first */
	bool loops;               /* it calls kernel functions */
	u32 stacks;               /* bits of enum y_kind: which have keys that are stacks (y.h) */
};

#endif
