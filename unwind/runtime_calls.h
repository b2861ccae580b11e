/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where calls of a language's functions can be seen from outside, for `yrt probe` and `yrt latency`: an address of the
 * target that each call touches once, on which a debug register is put, and the frame that a walk then finds.
 *
 * An interpreter reads a function's first instruction once for each call. Others may read it too (a copy of the code, a
 * debugger in the language), and a jump may lead back to it. So a hit counts only if the walk's innermost frame of the
 * language is the function at its very beginning.
 */
#ifndef YRT_RUNTIME_CALLS_H
#define YRT_RUNTIME_CALLS_H

#include <stdio.h>
#include <string.h>

#include "runtime.h"
#include "shared/value.h"

#define RUNTIME_CALL_FRAMES  2
#define RUNTIME_CALL_PROOF   2
#define RUNTIME_CALL_STAMP   3
#define RUNTIME_CALL_EXITS   3 /* debug registers that the entry leaves */
#define RUNTIME_CALL_RETURNS 4
#define RUNTIME_CALL_NAMES   128

/*
 * Where a call is, of a language whose functions have a stack of their own that may be left and resumed (coroutines).
 * While the first instruction and those of exits are read, the part of that stack that belongs to the call begins at
 * the word in a register, or where the word `call` behind what the owner's word at `top` points to says.
 */
struct runtime_place {
	u8 own; /* 0: calls are on the thread's stack, as deep as they have callers. Else 1 + the number of the walk's
	            cursor whose key is the stack's owner; or RUNTIME_OWN_FRAME: each call is in a frame of its own,
	            which frame_cursor tells; what `makes` something can be suspended */
	u8 reg; /* DWARF number; RUNTIME_NO_REG: not in a register */
	bool half; /* these words have 4 bytes */
	u8 moved; /* if the low three bits of the word in front are this, the part was moved by the rest of it. 0: no */
	u16 top, call, bottom; /* bottom: of the owner, the word where the stack begins */
};
#define RUNTIME_NO_REG    0xff
#define RUNTIME_OWN_FRAME 0xff

/*
 * Threads of the language that run on those of the system, now on this one, then on that (virtual threads). A register
 * points to the system's thread; the words at `current` and `own` behind it lead to a reference to the object of the
 * thread whose code runs, and of the system's thread itself. If these differ, the object has at `number` what tells it
 * apart for ever (8 bytes).
 */
struct runtime_carrier {
	u8 reg;                   /* DWARF number */
	u16 current, own, number; /* number 0: there are no such threads */
};

enum runtime_origin { RUNTIME_OF_PROGRAM, RUNTIME_INSTALLED, RUNTIME_STANDARD /* the language's own libraries */ };

/* A function as it exists now. One that was defined anew, or compiled, has several of these under one name. */
struct runtime_callee {
	char name[NAME_MAX_BYTES]; /* in full, as it is asked for behind "<view>:" */
	char file[NAME_MAX_BYTES]; /* "" if none */
	u32 line;                  /* where it is defined; 0: none */
	u64 entry;                 /* in the process, aligned to bytes: */
	u8 bytes;                  /* 1, 2, 4 or 8 */
	bool executed;             /* machine code begins there; else it is read */
	u8 nat;
	struct frame
	        at[RUNTIME_CALL_FRAMES]; /* the innermost frame of the language then is one of these, flags aside */
	u64 loose_detail;                /* bits of that frame's detail that do not count */
	u8 lead;                         /* so many native frames may precede it: of what has begun to run the entry */
	u64 beside; /* bits of detail that mark frames of the language that are no calls: one may precede it, too */
	/*
	 * Where RUNTIME_CALL_STAMP words are of which one changes when the interpreter, at the entry, begins the call
	 * anew: the entry is then read twice. 0: it never does.
	 */
	u64 stamp;
	u64 code_from, code_to; /* only what code from there up to there reads begins a call; code_to 0: any code */
	u8 compared;            /* code that compares the entry with this byte does not begin a call; 0: none does */
	/*
	 * A compiler may have the entry read before the new frame is linked: the walk then begins with the caller. But
	 * one of the thread's registers points to the frame, in which these words have these values. nproof is 0: each
	 * frame is linked.
	 */
	struct {
		u64 at, value;
	} proof[RUNTIME_CALL_PROOF];
	u8 nproof;
	/*
	 * Where a call ends: instructions that are read, by the interpreter, to end it. nexits: of all; where they are
	 * more than exits[] has room for, it has the last ones. 0: not known. The innermost frame of the language is
	 * then at[0], but for what is not in identity; and it is not `begun` (no frame: all 0), in which instructions
	 * are read for another reason.
	 */
	struct {
		u64 at;
		u8 bytes;
		bool tail; /* another function takes the frame over there: how long that takes is not seen */
	} exits[RUNTIME_CALL_EXITS];
	u32 nexits;
	/*
	 * Or the language counts the calls of a function that are under way (s32), and writes that as each ends,
	 * however it does. 0: it does not, and exits are used.
	 */
	u64 counter;
	/* A word of 8 bytes that is written as the function gets other code, or loses it. 0: not known. */
	u64 changes;
	struct runtime_place place;
	struct runtime_carrier carrier;
	u64 identity; /* bits of a frame's detail that are the same at any place in the function */
	struct frame begun;
	const char *unseen; /* which of its calls are never seen, for people; NULL: none */
	const char
	        *makes; /* a call only makes this ("generator"), and returns at once; NULL. With RUNTIME_OWN_FRAME its
	                       body is what begins and ends */
	/*
	 * Or, of a language whose calls have frames that a walk's cursor tells (frame_cursor: its key; in more[] of
	 * frame_word the innermost one, behind it the caller's; 0: it does not): a word of references (s32), of which a
	 * call has one until it ends, and one that is read as an exception is about to leave the call, or is handled in
	 * it. A call has returned if, where proof[1] is, there is the address of one of these bytes. 0: not known.
	 */
	u64 references, raises;
	u8 returns[RUNTIME_CALL_RETURNS], nreturns;
	u64 frame_cursor;
	u8 frame_word;
	struct value_places values;         /* its arguments; base VALUE_NOWHERE: not known */
	char arguments[RUNTIME_CALL_NAMES]; /* their names, each behind the other: "self,n"; those of the first ones */
	bool takes_more;                    /* than `values` has */
	/*
	 * What it returns, where registers have it as exits are reached: slot 0 of VALUE_REGISTERS; n 0: nothing, or it
	 * is not known there. base VALUE_NOWHERE: it is not known for any of its forms.
	 */
	struct value_places result;
	enum runtime_origin origin; /* by its file */
	bool switched;              /* its thread may run other calls until it is over, and come back (greenlets) */
};

/* An argument as it was read, in BPF. */
struct runtime_value {
	u64 word, type;  /* its slot, and its type as struct value_places says */
	const u8 *bytes; /* of the object that it is; untrusted, as all here */
	u32 size;
};

static inline void runtime_add_exit(struct runtime_callee *c, u64 at, u8 bytes, bool tail)
{
	u32 i = c->nexits < RUNTIME_CALL_EXITS ? c->nexits : RUNTIME_CALL_EXITS - 1;

	if (i < c->nexits)
		memmove(c->exits, c->exits + 1, i * sizeof(*c->exits));
	c->exits[i].at = at;
	c->exits[i].bytes = bytes;
	c->exits[i].tail = tail;
	c->nexits++;
}

/* The name of the next one; one that there is no room for has none. */
static inline void runtime_add_argument(struct runtime_callee *c, const char *name)
{
	size_t len = strlen(c->arguments);
	bool fits = len + strlen(name) + 2 <= sizeof(c->arguments);

	snprintf(c->arguments + len, sizeof(c->arguments) - len, "%s%s", len ? "," : "", fits ? name : "");
}

/*
 * For a path: the number of a free entry, which becomes this key of so many letters, with VALUE_KEYED. 0: there is no
 * room.
 */
static inline u16 runtime_add_key(struct value_places *v, const char *name, size_t len)
{
	u32 free = 0;

	while (free < VALUES_MAX && v->entry[free].length)
		free++;
	if (!len || len > VALUE_KEY || free == VALUES_MAX)
		return 0;
	memcpy(v->entry[free].key, name, len);
	memset(v->entry[free].mask, 0xff, len);
	v->entry[free].length = len;
	return (u16)(VALUE_KEYED | free);
}

/*
 * A framework of servers, by its function that is called once for each request, whatever calls it. Those of a higher
 * rank, which call frameworks or are called by anything, are looked at in processes that have none of a lower one.
 */
struct runtime_server {
	const char *name, *call; /* as asked for: "python:flask.app.Flask.wsgi_app" */
	const char *key;         /* what tells its requests apart (struct hit_options); NULL: nothing that is known */
	u8 rank;
};

struct runtime_calls_ops {
	const char *form; /* for help and errors: "python:MODULE.FUNCTION" */
	/*
	 * Calls add() for each function that may have a name of this pattern (* stands for any letters; NULL: any), and
	 * maybe for others. Reads the target, which keeps running.
	 */
	struct error *(*list)(void *instance, const struct runtime_process *p, const char *pattern,
	        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx);
	/* Of one that list() has found, with `changes`: calls add() for each of its forms as they are by now. */
	struct error *(*again)(void *instance, const struct runtime_process *p, const struct runtime_callee *of,
	        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx);
	/*
	 * Of one that list() has found: calls add() for each function whose compiled code has it inlined by now, maybe
	 * several times for one. Such calls are not seen. NULL: it is not known.
	 */
	void (*inlined)(void *instance, const struct runtime_process *p, const struct runtime_callee *of,
	        void (*add)(void *ctx, const char *into), void *ctx);
	/*
	 * Where a call is suspended, of RUNTIME_OWN_FRAME, whose frame is at this address, with what it waits for in
	 * turn: at most max frames, the innermost ones, leaf first. Returns how many; 0: it runs, is over, or moved as
	 * it was read. NULL: it is not known.
	 */
	u32 (*suspended)(void *instance, const struct runtime_process *p, u64 frame, struct frame *ret, u32 max);
	/*
	 * Puts the way from argument i of this function, from 0, along fields (".uriMB.byteC.buff", "[req][method]") to
	 * a text into slot `slot` of v, which has the other slots' already: its path and shape, and how references are
	 * kept; of VALUE_FRAME any object. False: a field is not known, or is no text. NULL: fields are not read.
	 */
	bool (*field)(void *instance, const struct runtime_process *p, const struct runtime_callee *of, u32 i,
	        const char *fields, struct value_places *v, u32 slot);
	const struct runtime_server *servers; /* up to name NULL; NULL: none is known */
	const char *const
	        *files; /* with servers: a process of the language maps a file whose name begins like one of these,
	                             up to NULL */
	/* Writes an argument as the language would, or as "<Type>". NULL: arguments are not read. */
	void (*value)(void *instance, const struct runtime_process *p, const struct runtime_value *v, FILE *out);
};

#endif
