/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_postgres.h"

#include <string.h>
#include <sys/mman.h>

#include "symbols/symbols.h"

#define CONTEXTS_MAX 4096
#define DESC_WITHIN  1024 /* of a context; struct plperl_proc_desc is the first that is allocated in it */
#define SUB_WITHIN   12   /* words of it: its reference to the sub */
#define NAME_BYTES   32

/* The members of MemoryContextData (memnodes.h) that lie side by side. */
struct context {
	u64 firstchild, prevchild, nextchild, name, ident;
};
static const u32 begins[] = {24, 32}; /* of 11 and 12; of 13 and later, which have mem_allocated */

u64 perl_postgres_find(const struct runtime_process *p)
{
	struct symbol top;

	for (u32 i = 0; i < p->nmappings; i++)
		if (p->mappings[i].image && p->mappings[i].prot & PROT_EXEC &&
		        symbols_lookup(p->mappings[i].image, "TopMemoryContext", &top))
			return p->mappings[i].bias + top.start;
	return 0;
}

static bool is_called(const struct perl_reader *r, const struct context *c, const char *name)
{
	char text[NAME_BYTES];

	return memory_string(r->mem, text, sizeof(text), c->name) && !strcmp(text, name);
}

static bool word(const struct perl_reader *r, u64 *ret, u64 at)
{
	return memory_read(r->mem, ret, sizeof(*ret), at);
}

/* Does this SV refer to the sub? */
static bool refers(const struct perl_reader *r, u64 sv, u64 cv, u64 start)
{
	u64 to, body, first;

	if (!sv || sv & 7 || !word(r, &to, sv + r->image->layout->sv_u.at) || !to || to & 7)
		return false;
	if (!start)
		return to == cv;
	return perl_is_cv(r, to) && word(r, &body, to + r->image->layout->sv_any.at) &&
	       word(r, &first, body + r->image->layout->cv_start.at) && first == start;
}

/* A struct plperl_proc_desc begins with its name and its context. */
static bool is_of(const struct perl_reader *r, u64 at, const struct context *c, u64 cv, u64 start)
{
	u64 words[DESC_WITHIN / 8];

	if (!memory_read(r->mem, words, sizeof(words), at))
		return false;
	for (u32 i = 0; i + SUB_WITHIN < DESC_WITHIN / 8; i++) {
		if (words[i] != c->ident || words[i + 1] != at)
			continue;
		for (u32 k = 2; k < SUB_WITHIN; k++)
			if (refers(r, words[i + k], cv, start))
				return true;
	}
	return false;
}

bool perl_postgres_name(const struct perl_reader *r, u64 top, u64 cv, u64 start, char *ret, size_t size)
{
	struct context c = {0};
	u32 at = 0;
	u64 next;

	if (!word(r, &next, top))
		return false;
	for (u32 i = 0; !at && i < sizeof(begins) / sizeof(*begins); i++)
		if (memory_read(r->mem, &c, sizeof(c), next + begins[i]) && is_called(r, &c, "TopMemoryContext"))
			at = begins[i];
	if (!at)
		return false;
	next = c.firstchild;
	for (u32 i = 0; next && i < CONTEXTS_MAX; i++, next = c.nextchild) {
		if (!memory_read(r->mem, &c, sizeof(c), next + at))
			return false;
		if (c.ident && is_called(r, &c, "PL/Perl function") && is_of(r, next, &c, cv, start))
			return memory_string(r->mem, ret, size, c.ident) && *ret;
	}
	return false;
}
