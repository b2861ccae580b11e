/* SPDX-License-Identifier: Apache-2.0 */
/* heap: what all memory of a process, or of a core, is used for: mappings, allocators, arenas, blocks by size. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "one_target.h"
#include "output.h"
#include "say.h"
#include "frontends/format/format.h"
#include "unwind/allocators/allocators.h"
#include "unwind/allocators/usage.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/process/comm.h"
#include "unwind/profile/profile.h"

/* What memory is used for (usage.h) as text and as a profile. Names in it may be hostile. */

struct heap_view {
	const struct usage *before; /* an earlier moment: only what increased is shown; NULL: none */
	const struct usage *after;
	const char *target;
	bool bytes; /* exact numbers */
	bool all;   /* also small rows */
	bool size;  /* by size, whether it is in memory or not */
	bool core;
};

/* By what the view is drawn and sorted. */
static inline u64 heap_weight(const struct heap_view *v, const struct amount *a)
{
	return v->size ? a->size : a->resident + a->swapped;
}

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
		if (f->returnable || f->held_blocks)
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

/* A table; the verdict and what helps come first. */
static struct error *heap_print(const struct heap_view *v, FILE *out)
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

/* What could not be read, on stderr. */
static void heap_notes(const struct heap_view *v)
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

/* Adds to a profile: bytes, and blocks as what else is counted. */
static struct error *heap_draw(const struct heap_view *v, struct profile *ret)
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

enum { HEAP_CORE = 512, HEAP_ROOT, HEAP_BYTES, HEAP_ALL, HEAP_SIZE, HEAP_SWAPPED, HEAP_WATCH };

static const struct manual_option options[] = {
        ONE_PROCESS_OPTIONS,
        CORE_OPTIONS(HEAP_CORE, HEAP_ROOT),
        {HEAP_WATCH, "watch", "SECS", "look again after SECS seconds, and show what increased, by size",
                COMPLETE_NOTHING},
        {HEAP_ALL, "all", NULL, "all rows, also those below 1 % of the memory", COMPLETE_NOTHING},
        {HEAP_BYTES, "bytes", NULL, "exact numbers of bytes", COMPLETE_NOTHING},
        {HEAP_SIZE, "size", NULL, "draw and sort by size, whether it is in memory or not", COMPLETE_NOTHING},
        {HEAP_SWAPPED, "swapped", NULL,
                "read blocks that are swapped out, too, which brings them back into memory; else they are only "
                "counted",
                COMPLETE_NOTHING},
        {'o', "output", "FILE", "- is stdout (the default): text", COMPLETE_FILE},
        {'f', "format", "NAME", "text, or a format, whatever the extension of FILE:", COMPLETE_FORMAT},
        {'q', "quiet", NULL, "no notes", COMPLETE_NOTHING},
        {0},
};

static const char *const usage_lines[] = {"-p PID [options]", "--core FILE [options]", NULL};

static const struct manual_example examples[] = {
        {"yrt heap -p 4242", "where its memory is, what of it is free, and what gives it back"},
        {"yrt heap -p 4242 --watch 60", "which sizes of blocks grew"},
        {"yrt heap -p 4242 -o heap.html", "as a page for a browser"},
        {"yrt heap --core core.4242", "the same of a core; a corrupt block is reported first"},
        {NULL, NULL},
};

const struct manual heap_manual = {
        .usage = usage_lines,
        .text = "Shows all memory of a process as one tree: kinds of mappings, allocators, their arenas, what is in "
                "use and what is free, and the sizes of blocks (with their headers of 8 bytes). It is read from "
                "outside, in order of address; the process is neither stopped nor changed.\n"
                "For glibc's malloc (2.26 or later), free memory is divided by where it waits to be used again: a "
                "cache of a thread, fast bins, the unsorted list, bins of small and large blocks, the top of an "
                "arena. Pages that are free as a whole could go back to the system; pages that live blocks share "
                "cannot.\n"
                "For jemalloc (5.0 to 5.3) it shows by size the blocks in use and those that are free in slabs, and "
                "the free pages of each arena; for musl's (1.2.1 or later), tcmalloc of gperftools and of "
                "Google, and mimalloc (2.0.9 or later, and 3), also static and stripped, by size the blocks in use "
                "and those that are free in groups, spans or pages.\n"
                "Other allocators are shown as the mappings that they use, and named in a note.",
        .options = options,
        .examples = examples,
};

struct request {
	int pid;
	const char *core, *root, *output, *format;
	double seconds; /* 0: one moment */
	bool bytes, all, size, swapped, quiet, help;
};

static const struct setting settings[] = {
        {HEAP_WATCH, SETTING_OF(struct request, seconds), .name = "--watch", .min = 0.01, .max = 1e6, .seconds = true},
        {'o', SETTING_OF(struct request, output)},
        {'f', SETTING_OF(struct request, format)},
        {'q', SETTING_OF(struct request, quiet), .on = true},
        {'h', SETTING_OF(struct request, help), .on = true},
        {HEAP_CORE, SETTING_OF(struct request, core)},
        {HEAP_ROOT, SETTING_OF(struct request, root)},
        {HEAP_ALL, SETTING_OF(struct request, all), .on = true},
        {HEAP_BYTES, SETTING_OF(struct request, bytes), .on = true},
        {HEAP_SIZE, SETTING_OF(struct request, size), .on = true},
        {HEAP_SWAPPED, SETTING_OF(struct request, swapped), .on = true},
        {0},
};

static struct error *check(struct request *r)
{
	if (r->format && !strcmp(r->format, "text"))
		r->format = NULL;
	else if (r->format && !format_find(r->format, NULL))
		return error_hint(error_new(ERROR_USAGE, "there is no format \"%s\"", r->format), "--help lists them");
	if (r->core && r->seconds)
		return error_new(ERROR_USAGE, "--core excludes --watch: a core does not grow");
	return one_target_check(r->pid, r->core, r->root);
}

static struct error *parse(int argc, char **argv, struct request *r)
{
	struct error *err;

	*r = (struct request){.output = "-"};
	err = one_process_parse(&heap_manual, settings, argc, argv, r, &r->pid, &r->help);
	return err || r->help ? err : check(r);
}

static struct error *take(const struct request *r, struct core_file *core, struct usage **ret)
{
	struct space space;
	struct error *err = space_open(r->pid, core, &space);

	if (err)
		return err;
	space.swapped_too = r->swapped;
	err = allocators_read(&space, ret);
	space_close(&space);
	return err;
}

static bool has_objects(const struct process *p, const struct view *v)
{
	for (u32 i = 0; i < p->ninstances; i++)
		if (p->instances[i].data && p->instances[i].ops->heap && view_has(v, p->instances[i].ops->id))
			return true;
	return false;
}

/*
 * A note that names the view of a language's objects, most of which are not in malloc's memory; NULL: no language.
 * Call it before memory is counted: reading a page makes it resident.
 */
static char *lead(const struct request *r)
{
	struct one_target t = {.pid = r->pid, .core = r->core, .root = r->root, .quiet = true};
	struct error *err = one_target_open(&t);
	char where[32] = "--core FILE", *ret = NULL;

	if (!r->core)
		snprintf(where, sizeof(where), "-p %d", r->pid);
	for (const struct view *v = views(); !err && !ret && v->name; v++)
		if (has_objects(t.p, v) &&
		        asprintf(&ret, "it runs %s: `yrt %s-refs %s` shows its objects and who keeps them", v->language,
		                v->name, where) < 0)
			ret = NULL;
	error_free(err);
	one_target_close(&t);
	return ret;
}

/* That blocks are corrupt, above the picture. NULL: none is. */
static char *corruption(const struct heap_view *v)
{
	char *ret = NULL;

	for (u32 i = 0; !ret && i < v->after->nlines; i++)
		if (v->after->lines[i].kind == USAGE_CORRUPT &&
		        asprintf(&ret, "CORRUPT: %s", v->after->lines[i].text) < 0)
			ret = NULL;
	return ret;
}

static struct error *draw(const struct heap_view *v, const struct format *format, u64 duration_ns, FILE *out)
{
	cleanup(free) char *corrupt = corruption(v);
	struct profile *p;
	struct error *err = profile_create(&p);
	struct timespec now;

	if (err)
		return err;
	err = heap_draw(v, p);
	clock_gettime(CLOCK_REALTIME, &now);
	p->meta = (struct profile_meta){.title = "heap",
	        .target = v->target,
	        .unit = "bytes",
	        .more = "blocks",
	        .why = corrupt,
	        .duration_ns = duration_ns,
	        .start_unix_ns = (u64)now.tv_sec * 1000000000ull + (u64)now.tv_nsec};
	profile_finish(p);
	if (!err)
		err = format_write(format, p, out);
	profile_destroy(p);
	return err;
}

static struct error *write_result(const struct request *r, const struct heap_view *v, u64 duration_ns)
{
	const struct format *format = format_or_text(r->format, r->output);
	struct output out;
	struct error *err = output_open(strdup(r->output), &out);

	if (err)
		return err;
	return output_end(&out, format ? draw(v, format, duration_ns, out.file) : heap_print(v, out.file));
}

static struct error *run(const struct request *r)
{
	char comm[COMM_TEXT] = "", target[128];
	struct usage *before = NULL, *after = NULL;
	struct core_file *core = NULL;
	cleanup(free) char *advice = lead(r);
	u64 start = now_ns();
	struct error *err = r->core ? core_open(r->core, r->root, &core) : NULL;

	if (!err && core)
		snprintf(target, sizeof(target), "%s (core of pid %u)", core->comm, core->pid);
	if (!err && !core) {
		comm_read(r->pid, comm);
		snprintf(target, sizeof(target), "%s (pid %d)", comm, r->pid);
	}
	if (!err && r->seconds)
		err = take(r, core, &before);
	if (!err && r->seconds)
		sleep_released_s(r->seconds);
	if (!err)
		err = take(r, core, &after);
	if (!err && advice)
		err = usage_say(after, USAGE_ADVICE, "%s", advice);
	if (!err) {
		struct heap_view v = {before, after, target, r->bytes, r->all, r->size, core != NULL};

		if (!r->quiet)
			heap_notes(&v);
		err = write_result(r, &v, now_ns() - start);
	}
	usage_destroy(before);
	usage_destroy(after);
	core_close(core);
	return err;
}

int heap_main(const struct command_line *self, int argc, char **argv)
{
	struct request r;
	struct error *err = parse(argc, argv, &r);

	if (!err && r.help) {
		manual_help(stdout, self);
		return 0;
	}
	release_signals();
	if (!err)
		err = run(&r);
	return err ? report_error(err) : 0;
}
