/* SPDX-License-Identifier: Apache-2.0 */
#include "usage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

struct error *usage_create(struct usage **ret)
{
	struct usage *u = calloc(1, sizeof(*u));
	struct error *err = u ? grow(&u->nodes, 0, sizeof(*u->nodes)) : &error_no_memory;

	if (err) {
		free(u);
		return err;
	}
	u->nodes[0] = (struct usage_node){.name = strdup("memory")};
	u->nnodes = 1;
	*ret = u;
	return NULL;
}

void usage_destroy(struct usage *u)
{
	if (!u)
		return;
	for (u32 i = 0; i < u->nnodes; i++)
		free(u->nodes[i].name);
	for (u32 i = 0; i < u->nlines; i++)
		free(u->lines[i].text);
	free(u->nodes);
	free(u->lines);
	free(u);
}

static struct error *add_child(struct usage *u, u32 parent, enum usage_kind kind, char *name)
{
	struct error *err = grow(&u->nodes, u->nnodes, sizeof(*u->nodes));
	u32 last;

	if (err)
		return err;
	last = u->nodes[parent].last;
	if (last)
		u->nodes[last].sibling = u->nnodes;
	else
		u->nodes[parent].child = u->nnodes;
	u->nodes[parent].last = u->nnodes;
	u->nodes[u->nnodes++] = (struct usage_node){.name = name, .kind = kind, .parent = parent};
	return NULL;
}

struct error *usage_child(struct usage *u, u32 parent, enum usage_kind kind, u32 *ret, const char *format, ...)
{
	struct error *err;
	va_list args;
	char *name;
	int n;

	va_start(args, format);
	n = vasprintf(&name, format, args);
	va_end(args);
	if (n < 0)
		return &error_no_memory;
	for (u32 i = u->nodes[parent].child; i; i = u->nodes[i].sibling)
		if (u->nodes[i].kind == kind && !strcmp(u->nodes[i].name, name)) {
			free(name);
			*ret = i;
			return NULL;
		}
	*ret = u->nnodes;
	err = add_child(u, parent, kind, name);
	if (err)
		free(name);
	return err;
}

void usage_add(struct usage *u, u32 node, const struct amount *amount)
{
	amount_add(&u->nodes[node].own, amount);
}

struct error *usage_part(
        struct usage *u, u32 parent, enum usage_kind kind, const char *name, const struct amount *amount)
{
	u32 node;
	struct error *err = amount->size ? usage_child(u, parent, kind, &node, "%s", name) : NULL;

	if (!err && amount->size)
		usage_add(u, node, amount);
	return err;
}

struct error *usage_sizes(struct usage *u, u32 parent, enum usage_kind kind, const char *name, const struct amount *of,
        const u64 *sizes, u32 n)
{
	struct error *err = NULL;
	u32 group = 0, node;
	char size[24];

	for (u32 i = 0; !err && i < n; i++) {
		if (!of[i].size)
			continue;
		if (!group)
			err = usage_child(u, parent, kind, &group, "%s", name);
		size_text(size, sizeof(size), sizes[i]);
		if (!err)
			err = usage_child(u, group, kind, &node, "%s", size);
		if (!err)
			usage_add(u, node, &of[i]);
		if (kind == USAGE_IN_USE)
			u->in_use_of[size_class(sizes[i])] += of[i].size;
	}
	return err;
}

struct error *usage_say(struct usage *u, enum usage_remark kind, const char *format, ...)
{
	struct error *err = grow(&u->lines, u->nlines, sizeof(*u->lines));
	va_list args;
	char *text;
	int n;

	if (err)
		return err;
	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return &error_no_memory;
	u->lines[u->nlines++] = (struct usage_line){kind, text};
	return NULL;
}

void usage_add_facts(struct usage_facts *to, const struct usage_facts *from)
{
	to->in_use += from->in_use;
	to->cached += from->cached;
	to->free += from->free;
	to->returnable += from->returnable;
	to->top += from->top;
	to->held += from->held;
	to->held_blocks += from->held_blocks;
	to->torn += from->torn;
	to->arenas += from->arenas;
}

/* More than a tenth of the allocator's, and not little of the process's. */
struct error *usage_say_held(struct usage *u, const char *parts)
{
	char text[USAGE_BYTES];

	if (!usage_matters(u, u->facts.held))
		return NULL;
	return usage_say(u, USAGE_ADVICE,
	        "%s are free in %s that live blocks hold: blocks that live long lie among short-lived ones of their "
	        "size",
	        usage_bytes(text, u->facts.held), parts);
}

bool usage_matters(const struct usage *u, u64 bytes)
{
	u64 all = u->facts.in_use + u->facts.cached + u->facts.free;

	return bytes > all / 10 && bytes > 1 << 20 && bytes > u->resident / 50;
}

void usage_finish(struct usage *u)
{
	for (u32 i = 0; i < u->nnodes; i++)
		u->nodes[i].total = u->nodes[i].own;
	for (u32 i = u->nnodes - 1; i > 0; i--) /* a child's number is above its parent's */
		amount_add(&u->nodes[u->nodes[i].parent].total, &u->nodes[i].total);
}

const char *usage_bytes(char ret[USAGE_BYTES], u64 bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	double n = (double)bytes;
	u32 unit = 0;

	while (n >= 999.5 && unit + 1 < sizeof(units) / sizeof(*units)) {
		n /= 1000;
		unit++;
	}
	snprintf(ret, USAGE_BYTES, unit && n < 99.95 ? "%.1f %s" : "%.0f %s", n, units[unit]);
	return ret;
}
