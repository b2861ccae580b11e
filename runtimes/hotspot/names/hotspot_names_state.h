/* SPDX-License-Identifier: Apache-2.0 */
/* What hotspot_names.c, hotspot_methods.c and hotspot_expand.c share: one JVM as it is named. */
#ifndef YRT_HOTSPOT_NAMES_STATE_H
#define YRT_HOTSPOT_NAMES_STATE_H

#include "runtimes/hotspot/memory/hotspot_blocks.h"
#include "runtimes/hotspot/memory/hotspot_cache.h"
#include "hotspot_names.h"

#define HOTSPOT_SYMBOL_MAX 1024 /* bytes of a Symbol that are read */

struct hotspot_stub_names;

struct hotspot_names {
	const struct vmstructs *v;
	const struct hotspot_layout *l;
	const struct hotspot_code *code;
	bool old;     /* JDK 8: its version is HotSpot's own */
	bool ready;   /* what follows has been read */
	bool no_zero; /* hotspot_unsigned5.h */
	u64 version_at;
	u64 stub_list; /* static StubCodeDesc*; 0: unknown */
	struct hotspot_cache tables, sites, methods, classes;
	struct hotspot_stub_names *stubs;
	struct hotspot_blocks *blocks, *fresh; /* fresh: renewed for each stack */
	u64 stack;                             /* that fresh is of; 0: of none */
	bool stale;                            /* fresh is of another stack */
	u32 ahead;                             /* fresh has been filled for the frames of the stack before this one */
	struct table verified; /* (Method*, cookie) that were read from the JVM itself, not from a page that was kept */
};

/* A method as it is named. Its texts, and its line number table, lie behind it. */
struct hotspot_method_name {
	u64 identity;
	u32 definition;
	u32 nlines; /* bytes of the line number table */
	bool native;
	const u8 *lines;
	const char *name, *signature, *file;
};

/* Reads what the JVM decides at start. False: it can not be read. */
bool hotspot_names_ready(struct hotspot_names *n, struct memory *m);
/* The cookie of a method as m has it now, for HOTSPOT_CLASSED. False: there is none. */
bool hotspot_names_cookie(const struct hotspot_names *n, struct memory *m, u64 method, u32 *ret);
/* The same, and keeps the name that these texts make, for hotspot_names_method(). */
bool hotspot_names_learn(struct hotspot_names *n, struct memory *m, u64 method, u32 *ret);
/* The same of the method that the walker's cookie is of. False: it is gone. */
bool hotspot_names_classed(const struct hotspot_names *n, struct memory *m, u64 method, u32 cookie, u32 *ret);
/* Is the nmethod of this frame still the same, of this method, and in use? Asks the JVM, whatever pages are kept. */
bool hotspot_names_stands(const struct hotspot_names *n, const struct frame *f, u64 method);
/* At most HOTSPOT_SYMBOL_MAX bytes of a Symbol; false: there is none. */
bool hotspot_names_symbol(const struct hotspot_names *n, struct memory *m, u64 symbol, u8 *ret, size_t *size);
/* NULL: it is gone, or another one. Valid until the next call. */
const struct hotspot_method_name *hotspot_names_method(
        struct hotspot_names *n, struct memory *m, u64 method, u32 cookie, bool classed);

#endif
