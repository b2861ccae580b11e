/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What BPF knows of an address that calls of a language's function touch (unwind/runtime_calls.h). */
#ifndef YRT_HIT_CALLEE_H
#define YRT_HIT_CALLEE_H

#include <types.h>

#include "unwind/shared/frame.h"

struct callee_key {
	u64 addr;
	u32 tgid, which; /* of the functions that have the same bytecode there, from 0 without a gap */
};
#define CALLEE_SHARING 4 /* no more have their turn together */

enum callee_exit {
	CALLEE_ENTRY,
	CALLEE_RETURN,  /* calls end here */
	CALLEE_LEFT,    /* another function takes the frame over: when that returns is not seen */
	CALLEE_FALLS,   /* the number of calls that are under way is written: one ends if it falls */
	CALLEE_CHANGES, /* the function gets other code */
	CALLEE_GONE,    /* references are written: a call may be over */
	CALLEE_RAISES,  /* an exception is about to leave a call, or is handled in it */
};

/* Where a call is on the stack that its language runs on (struct runtime_place). */
struct callee_place {
	u32 own; /* 0: the thread's, by number of frames; CALLEE_OWN_FRAME: the call's; else 1 + the walk's cursor whose
	             key is the owner */
	u32 reg; /* where the call's part of it begins is in this word of struct pt_regs; CALLEE_NO_REG: in memory, */
	u32 top; /* of the owner; */
	u32 call;   /* there is what describes the call, and where its part begins is so far behind it */
	u32 bottom; /* of the owner: where the stack begins */
	u32 half;   /* words have 4 bytes */
	u64 moved;
};
#define CALLEE_NO_REG    0xff
#define CALLEE_OWN_FRAME 0xff

/* Whose calls those are of a thread that carries others (struct runtime_carrier); number 0: it carries none. */
struct callee_carrier {
	u32 reg; /* 1 + a word of struct pt_regs */
	u32 current, own, number;
};
#define CALLEE_CARRIED (1ull << 63) /* who: it is a thread that is carried */

#define CALLEE_FRAMES 2
#define CALLEE_STAMP  3
struct callee_watch {
	struct frame at[CALLEE_FRAMES]; /* either of them is innermost in its language; flags count as 0 */
	u64 word; /* what is there: a hit that finds something else was a write; of code that a call begins with its
	             first bytes, 0: any */
	u64 stamp_at, stamp;       /* where CALLEE_STAMP words are, and their sum: another one is the same call again */
	u64 proof_at[2], proof[2]; /* of an entry: words of a frame that is not linked yet; a register points to it */
	u64 loose;                 /* of an entry: bits of detail that do not count */
	u64 beside;                /* as lead, of the language: bits of detail of a frame that is no call */
	u64 identity;              /* exits: bits of detail that count; and the frame is not at[1] */
	u32 reason;
	u32 each;  /* how many calls a call counts for */
	u32 bytes; /* of word; 0: it is code that is executed */
	u32 nat;
	u32 nproof;   /* 0, or 2 */
	u32 compared; /* by code that does not begin a call; 0: by none */
	u32 lead;     /* native frames that may precede at[] */
	u32 values;   /* its number in values_functions, from 1, of an exit that of its result; 0: none are read */
	u32 shows;    /* they are a frame of the stack */
	u32 function; /* its number, where calls are measured; 0: they are counted */
	u32 exit;     /* enum callee_exit */
	struct callee_place place;
	struct callee_carrier carrier;
	u64 counter;            /* where the number of calls is that are under way; 0: nowhere */
	u64 calls;              /* that began */
	u64 frame_cursor;       /* of walks: the key of the one that has the call's frame in more[], */
	u32 frame_word;         /* here; 0: none has */
	u8 returns[4];          /* CALLEE_GONE: one of these is where proof_at[1] says, if it returned */
	u64 code_from, code_to; /* of the code that reads it to begin a call; code_to 0: any */
	u32 handler[2];         /* of a Y program, as calls begin and return: 1 + its place in y_handlers; 0: none */
};

/* Calls on a stack that are under way, of one function, outermost first. */
#define CALLEE_WITHIN 20 /* of a recursion: calls further in are not measured */
struct callee_line {
	u32 n, shift; /* calls of another shift may have ended unseen */
	struct {
		u64 began;
		u64 depth;         /* how far from the stack's root, in frames or bytes */
		u64 frame, caller; /* where the language has them; 0: not known */
		u64 raised;        /* when an exception was about to leave it, last; 0: none was */
	} call[CALLEE_WITHIN];
};
#define CALLEE_LINES 8192

#define CALLEE_PATCH 5 /* bytes of a jump that code of no more use begins with: the call begins where that leads */

struct callee_change { /* a CALLEE_CHANGES was written: RECORD_EVENT, of this size */
	u32 type, tgid;
	u64 addr, at; /* CLOCK_MONOTONIC, ns */
	u64 reserved;
};

struct callee_counts {  /* one for each CPU */
	u64 traps;      /* of threads of targets */
	u64 calls;      /* of them, those that were calls */
	u64 stand_for;  /* calls, each with those that it stands for */
	u64 walk_ns;    /* spent on traps, by BPF */
	s64 under_way;  /* calls that are measured, and not over */
	u64 slot;       /* of the hit that is looked at, */
	u64 again;      /* which is walked a second time */
	u64 thread;     /* that has it: its id, or CALLEE_CARRIED and the number of the one that it carries */
	u64 who, depth; /* of that hit: whose stack, how deep */
	u64 frame;      /* the call's; if a register proved it it is known before, else 0 */
	u64 caller;     /* its caller's */
	u64 proven, found;
	u64 function; /* its number */
	u64 happened; /* by that hit: enum callee_happened, */
	u64 at;       /* and when */
	u64 held;     /* 1 + number of the slot that waits for a Y program's handler to ask for its stack */
	u64 handler;  /* that handler, in y_handlers */
};

/* A call that can be suspended, and is under way: of when it began. */
struct callee_own_key {
	u64 who; /* its frame */
	u32 tgid, function;
};

enum callee_happened { CALLEE_NOTHING, CALLEE_BEGAN, CALLEE_RETURNS };

#endif
