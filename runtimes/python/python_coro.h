/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspended coroutines, generators and asynchronous generators, and what each awaits (cr_await, gi_yieldfrom,
 * ag_await), read from outside: 3.8 on. Sources: Include/genobject.h, Include/cpython/frameobject.h (3.8 to 3.10),
 * Include/internal/pycore_frame.h (3.11 on), Objects/genobject.c (_PyGen_yf()), Modules/_asynciomodule.c.
 */
#ifndef YRT_PYTHON_CORO_H
#define YRT_PYTHON_CORO_H

#include "python_names.h"
#include "python_objects.h"
#include "table.h"

#define PYTHON_CORO_FIRST 0x03080000 /* the first version that is known here */
#define PYTHON_CORO_DEPTH 256

/* What an object is, by the name of its type. */
enum python_kind {
	PYTHON_OTHER,
	PYTHON_CORO,       /* a coroutine, a generator, or an asynchronous one: it has a frame */
	PYTHON_STEP,       /* stands for a step of an asynchronous generator, or for a coroutine's __await__() */
	PYTHON_FUTURE_ITER /* of asyncio: a future's __await__() */
};

struct python_coros {
	const struct python_reader *r;
	struct python_names *names;
	struct table kinds; /* by type: enum python_kind */
};

enum python_coro_state {
	PYTHON_SUSPENDED,
	PYTHON_CREATED,
	PYTHON_RUNNING,
	PYTHON_ENDED,
	PYTHON_UNREADABLE,
};

struct python_chain {
	struct frame frames[PYTHON_CORO_DEPTH]; /* outermost first */
	u32 n;
	enum python_coro_state state; /* of the innermost */
	u64 awaits; /* what the innermost waits for, which has no frame (a future's iterator: the future); 0: nothing */
	bool cut;   /* deeper than that */
};

enum python_kind python_kind_of(struct python_coros *c, u64 object);
/* Whose frame that is; 0: nobody's. */
u64 python_coro_of(const struct python_reader *r, u64 frame);
/* From a coroutine to the innermost one that it awaits. False: something could not be read, or was inconsistent. */
bool python_chain(struct python_coros *c, u64 coro, struct python_chain *ret);

#endif
