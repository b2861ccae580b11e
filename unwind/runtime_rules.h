/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules on stacks: what the functions of a stack say of a wait. They are text: runtimes/NAME/NAME.rules, and
 * unwind/profile/native.rules for native code of whatever program. cmake/stack_rules.cmake makes a table of each, and
 * unwind/profile/rules.c matches. A file is blocks of rules. The first word says what the rules below it say:
 *
 *	source "TEXT"	whose functions follow, of which versions: one is needed; also indented, between rules
 *	idle		a wait by design: an event loop without events, a pool thread without work
 *	serves		the same, where nothing else is said, of a thread without frames of a language which waits for
 *			nothing that a language knows
 *	thread		the same of threads without frames of a language, whose name in the kernel begins so
 *	first		of the program's first thread: it serves nobody
 *	lock KIND	what a wait in futex(2) is for (enum lock_kind): the first rule that matches
 *	runs		the function runs a task of a pool (these three: patterns of fnmatch(3), the first counts)
 *	library		it is the language's own, or only leads to another
 *	program		it is the program's, as is what nothing is said of
 *
 * Indented below: names of functions, a rule for each, and attributes. Those of the first line hold for the block.
 * A name stands without arguments, file and line; what lies before a dot may be left out. x{a,b} is xa and xb, quotes
 * keep blanks, lines that are indented deeper go on, and # begins a comment.
 *
 *	within=N	among so many innermost frames of its kind: native ones, or those of the language
 *	caller=NAME	the next frame of its kind is this one
 *	file=TEXT	the end of its file's path
 *	prefix=TEXT	before all names and callers
 *	near=N		at most so many callers of its kind: so near its start a thread waits for work, unless one of
 *			them is a `first`
 *	main=1		also where one is: the first thread may serve so
 *	leaf=NAME	the innermost function of the language, if there is one
 *	shown=TEXT	the lock: "read lock"; else the words of its kind
 *	type=TEXT	its type, if the runtime does not say it
 *	back=N		the futex lies so many bytes inside the lock, rounded down to 8
 *	own=1		the futex is the thread's own: its address says nothing of the lock
 *	begun=N		with more functions of the program around it this is no wait for work: the thread has begun
 *			something, and needs what others have: a connection of a pool that is too small, a result. Of
 *			native code only in a process without a language
 *	in_task=N	the same inside a task of a pool
 *	test=NAME	tests/e2e/test_NAME.py has such a stack
 */
#ifndef YRT_RUNTIME_RULES_H
#define YRT_RUNTIME_RULES_H

#include <types.h>

#define RULE_WITHIN 16 /* no attribute that counts is more (cmake/stack_rules.cmake) */

enum rule_says {
	RULE_IDLE = 1,
	RULE_SERVES,
	RULE_THREAD,
	RULE_FIRST,
	RULE_LOCK,
	RULE_RUNS,
	RULE_LIBRARY,
	RULE_PROGRAM,
};

/* What a thread that sleeps in futex(2) waits for. */
enum lock_kind {
	LOCK_FUTEX, /* no rule knows */
	LOCK_MUTEX,
	LOCK_RWLOCK,
	LOCK_MONITOR, /* an object's own lock */
	LOCK_OBJECT,  /* a lock that is an object of the language */
	LOCK_VM,      /* the one of a whole VM */
	LOCK_OTHERS,  /* those from here on are not held by anybody: no contention */
	LOCK_CONDITION = LOCK_OTHERS,
	LOCK_SEMAPHORE,
	LOCK_JOIN, /* the end of a thread */
	LOCK_PARK, /* work: parked, or a queue is empty */
	LOCK_KINDS,
};

/* Attributes that are not given are 0. A table ends with one that says nothing. */
struct stack_rule {
	const char *name;
	enum rule_says says;
	enum lock_kind kind;
	u8 within, near, main, back, begun, in_task, own;
	const char *caller, *file, *leaf, *shown, *type;
};

#define RUNTIME(id, name) extern const struct stack_rule name##_rules[]; /* if it has a file of them */
#include "../runtimes/list.h"
#undef RUNTIME
extern const struct stack_rule native_rules[];

#endif
