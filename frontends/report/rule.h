/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules: what a report concludes from measurements, as text files (rules/, compiled in by cmake/rules.cmake, and those
 * of --rules DIR). docs/report-rules.md describes the language; a file is
 *
 *	rule NAME
 *		title TEXT
 *		severity problem | waste | remark
 *		runtime NAME…		only where one of these was seen (runtimes/list.h); leave out: anywhere
 *		module REGEX		only where code of such a module was seen: of a server, a library
 *		view NAME…		the first of these that was measured; leave out: counters only
 *		stack PATTERN		which of its stacks; several: any of them
 *		except PATTERN		and none of these
 *		let NAME VIEW PATTERN	the share of another pattern as a number
 *		site TERM		the caller to name: the nearest one that matches; skip TERM: not these
 *		site deepest		or the innermost function that half of the stacks go through
 *		holder yes		facts on who released the lock that is waited for
 *		holder self		the same, where those who wait are those who have it: of pools
 *		holder waker		the same, of the threads that end the waits
 *		blame VIEW PATTERN	the functions to name are those of these stacks; of several lines the
 *					first that was measured
 *		begin last		it is looked for from the last matched frame on, not from the first
 *		when EXPRESSION		all must hold
 *		unless EXPRESSION	none may
 *		weight EXPRESSION	0 to 1; without, the share of the stacks
 *		remark EXPRESSION	it is a remark only, if this holds
 *		computes EXPRESSION : TITLE	it is about what the holder computes: the place is that of its CPU time
 *		used PATTERN		for what a holder has it: the fact holder.used is the part of its time
 *		word NAME TERM : TEXT	a fact: the text of the first term that half of the stacks go through
 *		advice EXPRESSION : TEXT	in place of change, of several the first that holds
 *		doubt EXPRESSION : TEXT	said as what speaks against it, if it holds
 *		replaces NAME…		these say less than this one, of the same
 *		consequence yes		of computing too much: comes behind what takes 40 % of the CPU time
 *		familiar yes		healthy only if some of its stacks were seen, as there are other such libraries
 *		general yes | last	others of its severity say more: it comes behind them, or behind all
 *		why, change, against, show, healthy TEXT
 *
 * Between rules, `library TERM` says which functions are those of libraries, all that match; `wrapper TERM`, which
 * only pass a call on; `loop TERM`, which serve all the time; `about TERM : WHAT : CHANGE`, what a function is known
 * for (the facts about, about.change).
 *
 * Deeper indented lines continue a text. A pattern is frames from the root to the leaf:
 *
 *	"^json" > "malloc"		the second is called by the first, directly or not
 *	"^json" >3 "malloc"		within three frames
 *	"x" leaf, "x" leaf 4		it is the leaf, or among the four innermost
 *	"x" without "y"			and no frame of the stack matches y
 *	script"^handle"@"app/"		of a kind (profile.h), in a file or module that matches
 *	own				code of the program, of no library (own.h)
 */
#ifndef YRT_REPORT_RULE_H
#define YRT_REPORT_RULE_H

#include <stdbool.h>

#include "unwind/error.h"
#include "unwind/profile/pattern.h"
#include "unwind/profile/profile.h"

#define RULE_TERMS_MAX   8
#define RULE_VIEWS_MAX   4
#define RULE_LINE_MAX    4096
#define RULES_MAX        1024
#define RULE_CLAUSES_MAX 16

struct term {
	u32 kinds;                  /* bit n: enum profile_kind n; 0: any */
	bool own;                   /* of the program, not of a library: own.h */
	struct pattern name, place; /* not set: any */
	u32 within;                 /* frames from the term before it; 0: any */
};

struct stack_pattern {
	struct term term[RULE_TERMS_MAX];
	u32 n;
	u32 leaf; /* the last one is among so many innermost frames; 0: anywhere */
	struct term without[RULE_TERMS_MAX];
	u32 nwithout;
};

#define OWN_KNOWN 16384

/* What a function is known for, and what to change: said of places that take much, whatever rule names them. */
struct about {
	struct term term;
	char *what, *change;
};

struct libraries {
	struct term *all, *wrappers, *loops; /* wrappers: functions that only pass a call on; loops: run all the time */
	u32 n, nwrappers, nloops;
	struct about *abouts;
	u32 nabouts;
	u64 *known; /* OWN_KNOWN hashes of functions, whose lowest bit says whether they are the program's own; own.c */
};

enum severity { SEVERITY_PROBLEM, SEVERITY_WASTE, SEVERITY_REMARK };

struct rule_let {
	char *name, *view;
	struct stack_pattern pattern;
};

struct rule_when { /* a text that is said if an expression holds */
	char *when, *text;
};

struct rule_word {
	char *name, *text;
	struct term term;
};

struct rule {
	char *name, *title, *why, *change, *against, *show, *healthy;
	enum severity severity;
	bool general, last;               /* others of its severity say more: it comes behind them, or behind all */
	bool consequence;                 /* of computing too much: findings.c */
	bool familiar;                    /* healthy only if some of its stacks were seen */
	char *runtimes[RULE_CLAUSES_MAX]; /* names; the first NULL ends each of these */
	struct pattern module;
	char *views[RULE_VIEWS_MAX + 1];
	struct stack_pattern *stacks, *excepts, *used, *also; /* used: for what the holder has it */
	u32 nstacks, nexcepts, nused, nalso;
	struct rule_let *lets;
	u32 nlets;
	struct term site, *skip;
	bool has_site, from_last, deepest, placeless; /* placeless: where it happens says nothing */
	bool holder, holder_self, waker;
	struct rule_let *blames; /* without names */
	u32 nblames;
	u32 nskip;
	char *when[RULE_CLAUSES_MAX + 1], *unless[RULE_CLAUSES_MAX + 1], *weight, *remark;
	struct rule_when doubts[RULE_CLAUSES_MAX], advices[RULE_CLAUSES_MAX];
	struct rule_when computes; /* text: the title */
	u32 ndoubts, nadvices;
	struct rule_word *words;
	u32 nwords;
	char *replaces[RULE_CLAUSES_MAX + 1];
	const struct libraries *libraries; /* of all rules; not owned */
	char *source;                      /* "python.rule:12" */
	char *text;                        /* as written, for --explain */
};

struct rules { /* zeroed at first */
	struct rule *all;
	u32 n;
	struct libraries *libraries;
};

/* Adds those of a file's text. An error names file, line, and what was expected there. */
struct error *rules_parse(struct rules *r, const char *file, const char *text);
/* Does it look at this view, or name its functions? Who holds a lock is asked only once it is waited for. */
bool rule_asks_for(const struct rule *r, const char *view);
/* Those that are compiled in. */
struct error *rules_builtin(struct rules *r);
/* *.rule of a folder, by name. A rule of a known name replaces that one. */
struct error *rules_load(struct rules *r, const char *folder);
const struct rule *rules_find(const struct rules *r, const char *name);
void rules_free(struct rules *r);

/* A pattern by itself, for tests. where: for messages. */
struct error *stack_pattern_parse(const char *text, const char *where, struct stack_pattern *ret);
void stack_pattern_free(struct stack_pattern *p);

/* Made by the build. */
struct rules_embedded {
	const char *file, *text;
};
extern const struct rules_embedded rules_embedded[]; /* up to file NULL */

#endif
