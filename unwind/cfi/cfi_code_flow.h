/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the instructions of a piece of code along all paths, with the state of the stack at each instruction. Part of
 * cfi_code.c's work (cfi_internal.h).
 */
#ifndef YRT_CFI_CODE_FLOW_H
#define YRT_CFI_CODE_FLOW_H

#include <types.h>

#include "binary/image.h"
#include "code/disassembler.h"
#include "cfi_code_starts.h"
#include "cfi_code_state.h"

#define CODE_TAIL  0xffffffffu /* in at[]: not the first byte of its instruction */
#define CODE_ENTRY 1           /* number of the state at a function's first instruction */
#define CODE_ROOT  2           /* at the file's entry point, and where stacks begin */

/*
 * DESCRIBED: by an FDE; SIGNAL: what a signal handler returns to; START: of a function; SWITCH: a jump to places not
 * known; NEVER_RETURNS: to its caller, although it leaves as others return; POINTED: an instruction makes a pointer to
 * it; DATA: in a section that is not code (a file may have only one segment).
 */
enum code_mark {
	DESCRIBED = 1,
	SIGNAL = 2,
	START = 4,
	SWITCH = 8,
	NEVER_RETURNS = 16,
	NEWBORN = 32,
	POINTED = 64,
	DATA = 128
};

/*
 * A function returns if a return can be reached in it: the code behind a call is followed once its callee is known to
 * return. Function number 0 is code that belongs to no known function.
 */
struct code_function {
	u32 age;     /* where two come to the same instruction the later one is believed */
	u32 waiting; /* the first of its waiters, from 1; 0: none */
	bool returns;
};

/* addr 0: of a function that returns if the one it waits for does, as it jumps there. */
struct code_job {
	u64 addr;
	u32 state;
	u32 function;
};

struct code_waiter {
	struct code_job job;
	u32 next;
};

struct code_flow {
	struct image *img;
	u64 start, end; /* of an executable segment */
	const u8 *bytes;
	u8 *copy; /* bytes, if they had to be read; NULL */
	u8 *marks;
	u32 *at;    /* number of the state at an instruction, from 1; 0: not reached */
	u32 *owner; /* the function that reached it, or begins there */
	const struct code_starts *starts;
	struct code_state *states;
	struct code_job *jobs;
	struct code_function *functions;
	struct code_waiter *waiters;
	u32 nstates, states_room, njobs, jobs_room, nfunctions, functions_room, nwaiters, waiters_room;
	u64 steps;
	u32 nreturns, nstrays; /* ways out of functions: with the caller's stack and registers; all others */
	u32 open;              /* the state at an indirect jump within a frame whose targets are unknown; 0: none */
	bool gap;              /* between FDEs: of a file that describes most of its code */
	const struct cfi_rule *body; /* what holds in bodies of functions, and where nothing else is known; NULL */
	bool proves;                 /* one loose way is enough: steps becomes 0 */
	bool loose; /* a way ends elsewhere, or with a frame that is not undone, or meets with another */
	struct disassembler d;
	bool no_memory;
};

/* Room for one more behind n; false: no_memory is set. */
bool code_flow_reserve(struct code_flow *f, void *array, u32 n, u32 *room, size_t size);
/* The number of a state. like: the number of a state that is often equal to it, or 0. */
u32 code_flow_number(struct code_flow *f, const struct code_state *s, u32 like);
/* Is addr in the stretch, and code that is not described already? */
bool code_flow_follows(const struct code_flow *f, u64 addr);
/* The number of the function that begins at addr, queued if it is new, whatever ran into it before; 0: not followed. */
u32 code_flow_function(struct code_flow *f, u64 addr, u32 state, u32 age);
/* The same for a function that is called, or has a symbol: this overrides everything before. */
u32 code_flow_called(struct code_flow *f, u64 addr);
/* Queues code that a function comes to. */
void code_flow_enqueue(struct code_flow *f, u64 addr, u32 state, u32 function);
/* Follows all that is queued. */
void code_flow_run(struct code_flow *f);
/* Marks what code_sigreturn_size() and code_newborn_size() find. */
void code_flow_system_calls(struct code_flow *f);
/* The rule of what a signal handler returns to. */
struct cfi_rule code_signal_rule(void);
/*
 * Is it the byte before such code? A handler's return address is looked up there. Changes the rule of its instruction,
 * if one begins there; no call may end there.
 */
bool code_flow_before_signal(const struct code_flow *f, u64 addr, struct cfi_rule *rule);
/* Makes roots of what code_bottom_size() finds. */
void code_flow_bottoms(struct code_flow *f);
/* Into f->d.in; false: it is no instruction. */
bool code_flow_decode(struct code_flow *f, u64 addr);
/* No compiler makes it (addb %al, (%rax)): what was never written. */
bool code_is_zero(const cs_insn *in);

/* Finds the first `push %rbp; mov %rsp, %rbp`; NULL if there is none. */
const u8 *code_find_frame(const u8 *code, const u8 *end);
/*
 * Adds rows of [start, start + size), of one segment, that no function of p describes (cfi_code.c). body: the rule of
 * an FDE that describes all of it; NULL.
 */
struct cfi_parsed;
struct cfi_code;
struct error *code_stretch(struct image *img, u64 start, u64 size, bool gap, const struct cfi_rule *body,
        const struct cfi_parsed *p, const struct code_starts *starts, struct cfi_code *ret);

#endif
