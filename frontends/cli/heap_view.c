/* SPDX-License-Identifier: Apache-2.0 */
#include "heap_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "unwind/cleanup.h"

#define SMALL_SHARE  100 /* rows below 1/100 of the total are summed up */
#define SIDE_BY_SIDE 6   /* so are those behind as many of one parent: arenas are alike */

/* --- what is shown of a node --- */

/* The node of the same path at the earlier moment; 0: none, or the root. */
static u32 counterpart(const struct heap_view *v, u32 node)
{
	const struct usage_node *n = &v->after->nodes[node];
	u32 parent = node ? counterpart(v, n->parent) : 0;

	if (!node || (n->parent && !parent))
		return 0;
	for (u32 i = v->before->nodes[parent].child; i; i = v->before->nodes[i].sibling)
		if (v->before->nodes[i].kind == n->kind && !strcmp(v->before->nodes[i].name, n->name))
			return i;
	return 0;
}

static u64 above(u64 now, u64 before)
{
	return now > before ? now - before : 0;
}

/* What of a node of `after` is shown: all, or what it increased by. */
static struct amount heap_amount(const struct heap_view *v, u32 node, bool total)
{
	const struct usage_node *n = &v->after->nodes[node], *b;
	struct amount now = total ? n->total : n->own;
	struct amount then;
	u32 at = v->before ? counterpart(v, node) : 0;

	if (!v->before || (node && !at))
		return now;
	b = &v->before->nodes[at];
	then = total ? b->total : b->own;
	return (struct amount){above(now.blocks, then.blocks), above(now.size, then.size),
	        above(now.resident, then.resident), above(now.swapped, then.swapped)};
}

/* --- text --- */

struct row {
	u32 node;
	struct amount amount;
	u64 weight;
};

static int by_weight(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->node < y->node ? -1 : 1;
}

static void put_bytes(const struct heap_view *v, FILE *out, u64 bytes)
{
	char text[USAGE_BYTES];

	if (v->bytes)
		fprintf(out, "%16" PRIu64, bytes);
	else
		fprintf(out, "%10s", usage_bytes(text, bytes));
}

static void put_row(const struct heap_view *v, FILE *out, const struct amount *a, u32 depth, const char *name)
{
	cleanup(free) char *clean = clean_text(name);

	put_bytes(v, out, a->resident);
	put_bytes(v, out, a->swapped);
	put_bytes(v, out, a->size);
	if (a->blocks)
		fprintf(out, "%12" PRIu64, a->blocks);
	else
		fprintf(out, "%12s", "");
	fprintf(out, "   %*s%s\n", 2 * (int)depth, "", clean ? clean : "");
}

static struct error *put_children(const struct heap_view *v, FILE *out, u32 parent, u32 depth, u64 least)
{
	const struct usage_node *nodes = v->after->nodes;
	struct amount rest = {0};
	cleanup(free) struct row *rows = NULL;
	struct error *err = NULL;
	u32 n = 0, small = 0, most = v->all || v->before ? UINT32_MAX : SIDE_BY_SIDE;

	for (u32 i = nodes[parent].child; i; i = nodes[i].sibling)
		n++;
	rows = calloc(n + 1, sizeof(*rows));
	if (!rows)
		return &error_no_memory;
	n = 0;
	for (u32 i = nodes[parent].child; i; i = nodes[i].sibling) {
		struct amount a = heap_amount(v, i, true);

		rows[n++] = (struct row){i, a, heap_weight(v, &a)};
	}
	qsort(rows, n, sizeof(*rows), by_weight);
	for (u32 i = 0; !err && i < n; i++) {
		if (rows[i].weight < least || i >= most || (v->before && !rows[i].weight && !rows[i].amount.size)) {
			amount_add(&rest, &rows[i].amount);
			small++;
			continue;
		}
		put_row(v, out, &rows[i].amount, depth, nodes[rows[i].node].name);
		err = put_children(v, out, rows[i].node, depth + 1, least);
	}
	if (!err && small && !v->before) {
		char text[40];

		snprintf(text, sizeof(text), "%u smaller", small);
		put_row(v, out, &rest, depth, text);
	}
	return err;
}

static void put_verdict(const struct heap_view *v, FILE *out)
{
	const struct usage_facts *f = &v->after->facts;
	const struct amount *all = &v->after->nodes[0].total;
	char a[USAGE_BYTES], b[USAGE_BYTES], c[USAGE_BYTES], d[USAGE_BYTES];

	fprintf(out, "%s%s", usage_bytes(a, all->resident), v->core ? " in the core" : " RSS");
	if (all->swapped)
		fprintf(out, ", %s swapped out", usage_bytes(a, all->swapped));
	if (f->arenas) {
		fprintf(out, ": malloc has %s in use, %s free in %u arena%s", usage_bytes(a, f->in_use),
		        usage_bytes(b, f->free + f->cached), f->arenas, f->arenas == 1 ? "" : "s");
		fprintf(out, " (%s could go back, %s lie in pages held by %" PRIu64 " live blocks)",
		        usage_bytes(c, f->returnable), usage_bytes(d, f->held), f->held_blocks);
	}
	fputc('\n', out);
}

static void put_lines(const struct heap_view *v, FILE *out, enum usage_remark kind, const char *before)
{
	for (u32 i = 0; i < v->after->nlines; i++) {
		cleanup(free) char *clean = NULL;

		if (v->after->lines[i].kind != kind)
			continue;
		clean = clean_text(v->after->lines[i].text);
		fprintf(out, "%s%s\n", before, clean ? clean : "");
	}
}

static void put_heading(const struct heap_view *v, FILE *out)
{
	int width = v->bytes ? 16 : 10;

	fprintf(out, "\n%*s%*s%*s%12s   %s\n", width, v->core ? "in core" : "RSS", width, "swap", width, "size",
	        "blocks", v->before ? "increase" : "");
}

struct error *heap_print(const struct heap_view *v, FILE *out)
{
	cleanup(free) char *target = clean_text(v->target);
	struct amount all = heap_amount(v, 0, true);
	u64 weight = heap_weight(v, &all);

	put_lines(v, out, USAGE_CORRUPT, "CORRUPT: ");
	fprintf(out, "%s: ", target ? target : "");
	put_verdict(v, out);
	put_lines(v, out, USAGE_ADVICE, "  - ");
	put_heading(v, out);
	put_row(v, out, &all, 0, "all");
	return put_children(v, out, 0, 1, v->all || v->before ? 0 : (weight + SMALL_SHARE - 1) / SMALL_SHARE);
}

void heap_notes(const struct heap_view *v)
{
	for (u32 i = 0; i < v->after->nlines; i++)
		if (v->after->lines[i].kind == USAGE_NOTE)
			say_note("%s", v->after->lines[i].text);
	if (v->after->facts.torn)
		say_note("the process changed blocks while they were read: %" PRIu64 " times memory was read again",
		        v->after->facts.torn);
}

/* --- a picture --- */

static const enum profile_kind kinds[USAGE_KINDS] = {
        [USAGE_GROUP] = KIND_MEMORY,
        [USAGE_MAPPING] = KIND_MEMORY,
        [USAGE_IN_USE] = KIND_USED,
        [USAGE_CACHED] = KIND_FREE,
        [USAGE_FREE] = KIND_FREE,
        [USAGE_TOP] = KIND_FREE,
        [USAGE_METADATA] = KIND_VM,
        [USAGE_UNREAD] = KIND_UNKNOWN,
};

struct error *heap_draw(const struct heap_view *v, struct profile *ret)
{
	const struct usage *u = v->after;
	cleanup(free) u32 *places = calloc(u->nnodes, sizeof(*places));
	struct error *err = places ? NULL : &error_no_memory;

	for (u32 i = 1; !err && i < u->nnodes; i++) {
		struct profile_function fn = {.name = u->nodes[i].name, .kind = kinds[u->nodes[i].kind]};
		struct amount own = heap_amount(v, i, false);
		u32 function;

		err = profile_function(ret, 0, &fn, false, &function);
		if (!err)
			err = profile_child(ret, places[u->nodes[i].parent], function, &places[i]);
		if (!err) {
			profile_add(ret, places[i], heap_weight(v, &own));
			profile_add_more(ret, places[i], own.blocks);
		}
	}
	return err;
}
