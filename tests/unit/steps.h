/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live program walked at every machine instruction. What must hold of any language: a stack only ever changes at its
 * inner end. A frame further out that goes, comes or changes while one inside it stays is wrong, and so is the place in
 * a caller that changes. A call lasts some instructions, and so does the time between a return and the next call.
 *
 * YRT_STEPS: instructions, YRT_SEED: varies where it begins, YRT_SHOW: so many faults are shown with their stacks.
 */
#ifndef YRT_STEPS_H
#define YRT_STEPS_H

#include "unit.h"

#include "process/process.h"
#include "runtime.h"

#define STEPS_FRAMES 4096

enum steps_fault {
	STEPS_CUT,    /* the walk did not come to a root */
	STEPS_MIDDLE, /* a frame inside of what changed stayed */
	STEPS_PLACE,  /* the place in a caller changed */
	STEPS_SHORT,  /* a frame was there for too few instructions */
	STEPS_BACK,   /* the same frame was away for too few */
	STEPS_ROOT,   /* the outermost script's frame is not that of the first stack */
	STEPS_FAULTS,
};

struct steps_item {
	u64 identity, place, outer; /* outer: a hash of all that is outside of it */
	u32 born;
	bool script;
};

struct steps_stack {
	struct frame frames[STEPS_FRAMES];     /* leaf first */
	struct steps_item items[STEPS_FRAMES]; /* root first, up to the innermost script's frame */
	u32 nframes, nitems;
};

struct steps_run; /* steps.c */

struct steps {
	struct process *process;
	struct steps_stack *now, *before;
	u32 step, cut; /* cut: the last step whose stack was cut, if cuts is not 0 */
	u32 cuts;
	int stop; /* of the walk now */
	struct steps_run *run;
};

struct steps_language {
	u64 (*identity)(struct steps *s, const struct frame *f); /* of a script's frame; 0: not to be looked at */
	u64 (*place)(struct steps *s, const struct frame *f);    /* in it; NULL: not checked */
	u32 shortest;                                            /* instructions that a call takes */
	bool (*known)(struct steps *s, enum steps_fault fault);  /* a limit that is documented; NULL: there is none */
	u32 rare;           /* one of so many steps may show another limit, which known() cannot tell; 0: none */
	u32 bursts;         /* places where it is stopped; more of them if a whole burst may fall into a known limit */
	u32 dull;           /* after so many instructions without a change it is met elsewhere; 0: never */
	bool root;          /* the outermost script's frame is the same as long as the program runs */
	const char *thread; /* the one that is followed, by its comm, while the others run; NULL: the first, which stops
	                       itself when all is ready */
};

/* argv: what begins with "fixtures/" is a path in the sources. steps: if YRT_STEPS does not say how many. */
void steps_test(const struct steps_language *language, const char *const *argv, u32 steps);

/* For the language's functions. */
u64 steps_mix(u64 a, u64 b);
/* Does a frame in this function's machine code stand among the innermost n? part: of its symbol. */
bool steps_in(struct steps *s, const struct steps_stack *stack, u32 n, const char *part);
/* Is a frame of the stack, the leaf being 0, called so? part: of its name. */
bool steps_named(struct steps *s, const struct steps_stack *stack, u32 i, const char *part);

#endif
