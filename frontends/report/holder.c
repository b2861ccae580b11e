/* SPDX-License-Identifier: Apache-2.0 */
#include "holder.h"

#include <stdlib.h>
#include <string.h>

#include "frontends/format/text.h"
#include "match.h"
#include "own.h"
#include "place.h"
#include "stack_path.h"
#include "unwind/cleanup.h"

/* The stack of the one that released lies behind its name, the leaf first. The nearest own code, scripts before C. */
static u32 releaser(const struct profile *p, const struct libraries *l, const u32 *path, u32 at)
{
	u32 native = 0;

	while (at-- > 0) {
		u32 function = p->nodes[path[at]].function;

		if (!is_own(l, &p->functions[function]))
			continue;
		if (p->functions[function].kind != KIND_NATIVE && p->functions[function].kind != KIND_CXX)
			return function;
		native = native ? native : function;
	}
	return native;
}

static void note(const struct profile *p, const struct libraries *l, const char *waiter, u32 node, u64 *sums,
        struct holders *h, u64 *most)
{
	u32 path[STACK_PATH_MAX], n = stack_path(p, node, path), at = stack_path_find(p, path, n, "[released by ");
	u32 function;

	if (at + 1 >= n || !stack_path_has(p, path, at + 2, n, waiter))
		return;
	h->total += p->nodes[node].self;
	function = releaser(p, l, path, at);
	if (!function)
		return;
	sums[function] += p->nodes[node].self;
	if (sums[function] < *most)
		return;
	*most = sums[function];
	h->thread = p->nodes[path[at]].function;
	h->lock = p->nodes[path[at + 1]].function;
}

struct error *holders_find(
        const struct profile *locks, const struct libraries *l, const char *waiter, struct holders *ret)
{
	cleanup(free) u64 *sums = calloc(locks->nfunctions + 1, sizeof(*sums));
	u64 most = 0;

	*ret = (struct holders){0};
	if (!sums)
		return &error_no_memory;
	for (u32 i = 1; i < locks->nnodes; i++)
		if (locks->nodes[i].self)
			note(locks, l, waiter, i, sums, ret, &most);
	while (ret->n < HOLDERS_MAX) {
		u32 best = 0;

		for (u32 i = 1; i < locks->nfunctions; i++)
			if (sums[i] > (best ? sums[best] : 0))
				best = i;
		if (!best)
			break;
		ret->all[ret->n++] = (struct holder){best, sums[best]};
		sums[best] = 0;
	}
	return NULL;
}

/* A pattern for just this function, and for all that it calls. */
static struct error *pattern_of(const struct profile_function *f, const char *end, struct stack_pattern *ret)
{
	char name[NAME_LENGTH], text[2 * NAME_LENGTH + 32], *to = text;

	matched_name(f, name, sizeof(name));
	to += sprintf(to, "\"^");
	for (const char *at = name; *at; at++) {
		if (*at == '"')
			return stack_pattern_parse("\"$.\"", "a name", ret); /* cannot be written */
		if (strchr("\\.[](){}*+?^$|", *at))
			*to++ = '\\';
		*to++ = *at;
	}
	strcpy(to, end);
	return stack_pattern_parse(text, "a name", ret);
}

struct error *holder_works(
        const struct rule *r, const struct profile *p, const struct profile_function *holder, struct match *ret)
{
	struct stack_pattern own[2] = {0};
	struct rule those = {.stacks = own,
	        .nstacks = 2,
	        .excepts = r->stacks,
	        .nexcepts = r->nstacks,
	        .from_last = true,
	        .libraries = r->libraries};
	struct error *err = pattern_of(holder, "$\" > \"\" leaf", &own[0]);

	if (!err)
		err = pattern_of(holder, "$\" leaf", &own[1]);
	if (err) { /* a name that is no pattern */
		error_free(err);
		err = NULL;
	} else {
		err = match_stacks(&those, p, ret);
	}
	stack_pattern_free(&own[0]);
	stack_pattern_free(&own[1]);
	return err;
}
