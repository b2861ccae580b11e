/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The argument of -e of `yrt probe`:
 *
 *	libc:malloc, malloc		a function of a file, of whichever file has it
 *	nginx:0x51340, nginx+0x51340	an address in a file, as stacks show it where there is no symbol
 *	python:gc__start		a USDT probe by its provider, or by its file
 *	sched:sched_process_exec	a tracepoint
 *	python:orders.views.checkout	a function of a language that is interpreted (hit_callees.h)
 *	go:main.f			one that a language's own table in a file has, of whichever file
 *
 * A prefix "uprobe:", "usdt:" or "tracepoint:" decides where that is not clear.
 */
#ifndef YRT_HIT_SPEC_H
#define YRT_HIT_SPEC_H

#include <stdbool.h>
#include <types.h>

#include "unwind/error.h"

#define HIT_NAME_MAX 512

enum hit_kind { HIT_ANY, HIT_FUNCTION, HIT_USDT, HIT_TRACEPOINT }; /* HIT_ANY: a function, or else USDT */

/* The names that are most like what was asked for. */
#define HIT_NEAR 4
struct hit_near {
	char name[HIT_NEAR][128];
	u32 distance[HIT_NEAR];
	u32 n;
};

struct hit_spec {
	enum hit_kind kind;
	const char
	        *language; /* it may be a function of this view's language: its name is all that follows; else NULL */
	bool by_addr;
	u64 addr;             /* in the file */
	struct hit_near near; /* tracepoints, if it is none */
	char text[2 * HIT_NAME_MAX], file[HIT_NAME_MAX], name[HIT_NAME_MAX];
};

struct error *hit_parse(const char *text, struct hit_spec *ret);
/* The view whose functions a name without such a prefix may mean: "python" of "python:f"; NULL: none. */
const char *hit_language(const char *text);
/* Does the spec mean this file? "libc" is libc.so.6 and libc-2.31.so; with a '/' it is the end of the path. */
bool hit_is_file(const struct hit_spec *s, const char *path);

/* Is its name a pattern, whose * stands for any letters? Not C++'s operators and pointers. */
bool hit_is_pattern(const struct hit_spec *s);
/* The tracepoints of this kernel that can be probed: of each, its name without a category. */
void hit_each_tracepoint(void (*each)(void *ctx, const char *name), void *ctx);

void hit_near(struct hit_near *near, const char *wanted, const char *name);
/* The same of functions of languages, whose names are parted by dots and colons. */
void hit_near_dotted(struct hit_near *near, const char *wanted, const char *name);
/* "a, b, c" in HIT_NEAR_TEXT bytes. */
#define HIT_NEAR_TEXT 1024
void hit_near_text(const struct hit_near *near, char *ret);

#endif
