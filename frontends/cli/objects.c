/* SPDX-License-Identifier: Apache-2.0 */
/* <view>-heap: what is alive, by type. <view>-refs: who keeps it alive. Of what runtimes tell (runtime_heap.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "objects_text.h"
#include "one_target.h"
#include "output.h"
#include "say.h"
#include "frontends/format/diff.h"
#include "frontends/format/format.h"
#include "frontends/format/keeper.h"
#include "frontends/report/counters.h"
#include "unwind/cleanup.h"
#include "unwind/heap/heap.h"
#include "unwind/heap/heap_draw.h"
#include "unwind/now.h"
#include "unwind/process/pause.h"

#define MEMORY_LEAST_MB 512
#define MEMORY_MOST_MB  1536
#define MEMORY_SHARE    16 /* of what is free */
#define TORN_SAID       0.001
#define NICE            10
#define READINGS        5 /* at most, as long as more than TORN_SAID is torn */
#define AGAIN_NS        (5 * 1000000000ull)
/* What all objects would take (heap_nodes.h, heap_edges.h), and reading. */
#define OBJECT_BYTES    22
#define REFERENCE_BYTES 8
#define READING_MB      128

enum key {
	KEY_CORE = 512,
	KEY_ROOT,
	KEY_MEMORY,
	KEY_PAUSE,
	KEY_WATCH,
	KEY_TO,
	KEY_ROOTS,
	KEY_LIVE,
	KEY_LARGEST,
	KEY_UNREACHABLE,
	KEY_HPROF,
	KEY_CONTENTS
};

/* clang-format off */
#define COMMON \
	ONE_PROCESS_OPTIONS, \
	CORE_OPTIONS(KEY_CORE, KEY_ROOT), \
	{'o', "output", "FILE", "- is stdout (the default): text", COMPLETE_FILE}, \
	{'f', "format", "NAME", "text, or a format, whatever the extension of FILE:", COMPLETE_FORMAT}, \
	{KEY_PAUSE, "pause", NULL, "stop the process while it is read: then nothing is torn", COMPLETE_NOTHING}, \
	{KEY_MEMORY, "memory", "MB", \
		"that yrt may take (a sixteenth of what is free, but at least 512, at most 1536): an eighth of it, " \
		"at most 64 MB, for blocks of the process's memory, " \
		"the rest for objects, 22 bytes each, and about 8 for each reference but the first to an object. " \
		"If there are more, all count, but each for the way on which it was found first", \
		COMPLETE_NOTHING}, \
	{'q', "quiet", NULL, "no notes", COMPLETE_NOTHING}
#define WATCH {KEY_WATCH, "watch", "SECS", "look again after SECS seconds, and show what has grown", COMPLETE_NOTHING}
/* clang-format on */

static const struct manual_option heap_options[] = {
        COMMON,
        WATCH,
        {0},
};

/* Of runtimes that can be counted without a walk. */
static const struct manual_option counting_options[] = {
        COMMON,
        WATCH,
        {KEY_LIVE, "live", NULL, "only what the roots reach: not what waits for a collection", COMPLETE_NOTHING},
        {0},
};

/* Of those that write their language's own format, too. */
static const struct manual_option dumping_options[] = {
        COMMON,
        WATCH,
        {KEY_LIVE, "live", NULL, "only what the roots reach: not what waits for a collection", COMPLETE_NOTHING},
        {KEY_HPROF, "hprof", "FILE",
                "write all objects as a heap dump, for Eclipse MAT, VisualVM and other tools, without a stop. Arrays "
                "of characters and numbers have their lengths only",
                COMPLETE_FILE},
        {KEY_CONTENTS, "contents", NULL, "with --hprof: what these arrays hold, too: texts, passwords, buffers",
                COMPLETE_NOTHING},
        {0},
};

static const struct manual_option refs_options[] = {
        COMMON,
        WATCH,
        {KEY_TO, "to", "WHAT",
                "only the ways to objects of this type, or to the object at this address (0x...), shortest first",
                COMPLETE_NOTHING},
        {KEY_ROOTS, "roots", NULL, "what each root alone keeps alive: a table", COMPLETE_NOTHING},
        {KEY_UNREACHABLE, "unreachable", NULL,
                "what no root reaches, in place of the rest: garbage, cycles, and "
                "objects that count as used though nothing refers to them, as when an extension forgets to give a "
                "reference back",
                COMPLETE_NOTHING},
        {KEY_LARGEST, "largest", "N",
                "the N largest single objects, by their own bytes, each with a shortest way from a root",
                COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"-p PID [options]", "--core FILE [options]", NULL};

static const struct manual_example heap_examples[] = {
        {"yrt @ -p 4242", "what is alive, by type"},
        {"yrt @ -p 4242 --watch 30", "what grows"},
        {"yrt @ --core core.4242 -o heap.html", "of a core, as a page for a browser"},
        {NULL, NULL},
};

static const struct manual_example refs_examples[] = {
        {"yrt @ -p 4242 -o refs.html", "who keeps memory alive"},
        {"yrt @ -p 4242 --to Session", "which ways lead to objects of this type"},
        {"yrt @ -p 4242 --watch 60 -o grew.html", "what has grown in a minute, and who keeps it"},
        {"yrt @ -p 4242 --roots", "what would be free without each root"},
        {"yrt @ -p 4242 --largest 20", "the largest lists, maps and buffers, and the way to each"},
        {NULL, NULL},
};

struct request {
	int pid;
	const char *core, *root;
	const char *output, *format, *to, *hprof;
	double seconds, memory_mb, largest;
	bool refs, pause, roots, live, unreachable, contents, quiet, help;
};

static const struct setting settings[] = {
        {KEY_CORE, SETTING_OF(struct request, core)},
        {KEY_ROOT, SETTING_OF(struct request, root)},
        {'o', SETTING_OF(struct request, output)},
        {'f', SETTING_OF(struct request, format)},
        {KEY_TO, SETTING_OF(struct request, to)},
        {KEY_HPROF, SETTING_OF(struct request, hprof)},
        {KEY_CONTENTS, SETTING_OF(struct request, contents), .on = true},
        {KEY_PAUSE, SETTING_OF(struct request, pause), .on = true},
        {KEY_ROOTS, SETTING_OF(struct request, roots), .on = true},
        {KEY_UNREACHABLE, SETTING_OF(struct request, unreachable), .on = true},
        {KEY_LIVE, SETTING_OF(struct request, live), .on = true},
        {'q', SETTING_OF(struct request, quiet), .on = true},
        {'h', SETTING_OF(struct request, help), .on = true},
        {KEY_WATCH, SETTING_OF(struct request, seconds), .name = "--watch", .min = 0.01, .max = 1e6, .seconds = true},
        {KEY_LARGEST, SETTING_OF(struct request, largest), .name = "--largest", .min = 1, .max = 1 << 20},
        {KEY_MEMORY, SETTING_OF(struct request, memory_mb), .name = "--memory", .min = 16, .max = 1 << 20},
        {0},
};

#define HEAP_TEXT                                                                                                      \
	"Reads the objects of a running process from outside, %s. Nothing is stopped and nothing is loaded into it. "  \
	"What changes while it is read may be torn: %s; --pause stops the process for as long as it takes. "
#define TORN_OBJECTS "such objects are read again, and counted if they are torn again"
#define TORN_BLOCKS  "that is counted"
#define REFS_TEXT                                                                                                      \
	"An object is drawn below the one that alone keeps it alive: if that were gone, so would be all below it. "    \
	"Its name is the field, then the type; {} is an entry of a map whose keys are data, [] an element of a list. " \
	"What several objects keep alive is in a box \"shared by N paths\", below the nearest that all these paths "   \
	"have in common; \"also\" names where another of them begins, if it is much, the shortest follows, and --to "  \
	"shows all. "                                                                                                  \
	"Modules and globals come before threads: what they keep is not shown below a local variable."

static const struct runtime_heap_ops *ops_of(const struct view *view)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (view_has(view, (*r)->id) && (*r)->heap)
			return (*r)->heap;
	return NULL;
}

static const char *text_of(const struct runtime_heap_ops *ops, bool refs)
{
	return refs && ops->blocks_are_all ? ops->walk : ops->text;
}

/* What the runtimes of a view say of their heaps, in a row. NULL: out of memory. */
static char *texts_of(const struct view *view, bool refs)
{
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	if (!out)
		return NULL;
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (view_has(view, (*r)->id) && (*r)->heap && text_of((*r)->heap, refs))
			fprintf(out, "%s%s", ftell(out) ? " " : "", text_of((*r)->heap, refs));
	fclose(out);
	return ret;
}

bool objects_manual(const struct view *view, bool refs, const struct manual **ret)
{
	const struct runtime_heap_ops *ops = ops_of(view);
	cleanup(free) char *own = NULL;
	struct manual *m;
	bool walks;
	char *text;

	*ret = NULL;
	if (!ops || (refs ? !ops->object : ops->refs_only))
		return true;
	walks = ops->object && (refs || !ops->blocks_are_all);
	own = texts_of(view, refs);
	if (!own)
		return false;
	m = malloc(sizeof(*m));
	if (!m || asprintf(&text, HEAP_TEXT "%s%s", walks ? "from its roots on" : "in order of address",
	                  walks ? TORN_OBJECTS : TORN_BLOCKS, own, refs ? "\n" REFS_TEXT : "") < 0) {
		free(m);
		return false;
	}
	*m = (struct manual){.usage = usage,
	        .text = text,
	        .options = refs                  ? refs_options
	                   : ops->dump           ? dumping_options
	                   : ops->blocks_are_all ? counting_options
	                                         : heap_options,
	        .examples = refs ? refs_examples : heap_examples};
	*ret = m;
	return true;
}

/* --- options --- */

static struct error *check(const struct request *r)
{
	struct error *err = one_target_check(r->pid, r->core, r->root);

	if (err)
		return err;
	if (r->core && (r->seconds || r->pause))
		return error_new(ERROR_USAGE, "--core excludes --watch and --pause");
	if (r->roots && (r->to || r->format || r->largest || r->seconds))
		return error_new(ERROR_USAGE, "--roots is a table, without --to, --largest, --format and --watch");
	if ((r->largest || r->to) && r->seconds)
		return error_new(ERROR_USAGE, "--watch excludes --largest and --to");
	if (r->unreachable && (r->to || r->roots))
		return error_new(ERROR_USAGE, "--unreachable excludes --to and --roots: no root leads there");
	if (r->hprof && (r->live || r->seconds || r->format || strcmp(r->output, "-")))
		return error_new(ERROR_USAGE, "--hprof FILE excludes --live, --watch, --format and --output");
	if (r->contents && !r->hprof)
		return error_new(ERROR_USAGE, "--contents needs --hprof");
	if (r->largest && r->to)
		return error_new(ERROR_USAGE, "--largest excludes --to");
	if (r->format && !format_find(r->format, NULL))
		return error_hint(error_new(ERROR_USAGE, "there is no format \"%s\"", r->format), "--help lists them");
	return NULL;
}

static struct error *parse(const struct command_line *self, int argc, char **argv, struct request *r)
{
	struct error *err = one_process_parse(self->manual, settings, argc, argv, r, &r->pid, &r->help);

	if (err || r->help)
		return err;
	if (r->format && !strcmp(r->format, "text"))
		r->format = NULL;
	return check(r);
}

/* --- the process --- */

/* Several instances of a runtime are one heap. An error of one counts only if there is no other. */
static struct error *read_instances(struct heap *h, const struct one_target *t, const struct view *view)
{
	const struct process *p = t->p;
	struct runtime_process seen = process_view(p);
	struct error *err = NULL;
	bool any = false;

	for (u32 i = 0; i < p->ninstances; i++) {
		const struct instance *in = &p->instances[i];
		bool found = false;
		struct error *now;

		if (!in->data || !in->ops->heap || !view_has(view, in->ops->id))
			continue;
		now = heap_read(h, in->ops->heap, in->data, &seen, &found);
		any |= found;
		if (err)
			error_free(now);
		else
			err = now;
	}
	if (any && err && err != &error_no_memory) {
		say_note_error(err);
		err = NULL;
	}
	return err || any ? err : one_target_lacks(t, view);
}

static struct error *read_once(const struct request *r, const struct one_target *t, const struct view *view,
        const struct heap_options *o, struct heap **ret)
{
	struct error *err = heap_create(t->p->memory, t->p->pid, o, ret);

	return err ? err : read_instances(*ret, t, view);
}

static struct heap_sum sum_of(const struct heap *h)
{
	struct heap_sum ret = {0};

	for (u32 i = h->first; i < h->nodes.n; i++)
		if (heap_is_object(h, i)) {
			ret.count += heap_count_of(h, i);
			ret.bytes += heap_size_of(h, i);
		}
	for (u32 i = 0; i < h->ntallies; i++) {
		ret.count += h->tallies[i].count;
		ret.bytes += h->tallies[i].bytes;
	}
	return ret;
}

/* Of objects or of bytes, whichever is more: a table that could not be read is one, but may be half of the heap. */
static double torn_share(const struct heap *h)
{
	const struct heap_counts *c = &h->counts;
	struct heap_sum sum = sum_of(h);
	double objects = c->torn ? (double)c->torn / (double)(c->torn + sum.count) : 0,
	       bytes = c->torn_bytes ? (double)c->torn_bytes / (double)(c->torn_bytes + sum.bytes) : 0;

	return objects > bytes ? objects : bytes;
}

/* Does the heap take so little of --memory that another fits beside it, so that it can be read again? */
static bool is_small(const struct heap *h, const struct heap_options *o)
{
	return !h->coarse && h->nodes.n * (u64)OBJECT_BYTES + h->counts.references * REFERENCE_BYTES < o->memory / 4;
}

/* Again, as long as much is torn and it does not take long: the best of them counts. */
static struct error *read_again(const struct request *r, const struct one_target *t, const struct view *view,
        const struct heap_options *o, struct heap **best)
{
	const u64 end = now_ns() + AGAIN_NS;
	struct error *err = NULL;

	for (u32 i = 1; !err && i < READINGS && torn_share(*best) > TORN_SAID && is_small(*best, o) && now_ns() < end;
	        i++) {
		struct heap *h = NULL;

		err = read_once(r, t, view, o, &h);
		if (!err && torn_share(h) < torn_share(*best)) {
			heap_destroy(*best);
			*best = TAKE(h);
		}
		heap_destroy(h);
	}
	return err;
}

static struct error *read_heap(
        const struct request *r, const struct one_target *t, const struct view *view, struct heap **ret)
{
	const struct process *p = t->p;
	struct heap_options o = {.memory = ((u64)r->memory_mb << 20) / (r->seconds ? 2 : 1), /* --watch has two */
	        .references = r->refs,
	        .ways = r->refs && r->to,
	        .live = r->live,
	        .unreachable = r->unreachable,
	        .nice = p->pid && !r->pause ? NICE : 0};
	struct pause pause = {0};
	struct error *err = NULL;

	if (r->pause && !r->quiet)
		say_note("%s (pid %d) is stopped while it is read", p->comm, p->pid);
	if (r->pause)
		err = pause_begin(p->pid, &pause);
	if (!err)
		err = read_once(r, t, view, &o, ret);
	if (!err && p->pid && !r->pause && ops_of(view)->copied)
		err = read_again(r, t, view, &o, ret);
	pause_end(&pause);
	return err;
}

/* --- results --- */

struct result {
	struct heap *before, *after; /* before: NULL without --watch */
	const struct runtime_heap_ops *ops;
	u64 start_ns, end_ns;
	char loss[512];
};

static void note(void *ctx, const char *text, u64 n)
{
	if (n > 1)
		say_note("%s (%lu times)", text, n);
	else
		say_note("%s", text);
}

static void describe_coarse(const struct heap *h, const struct request *r, u64 objects)
{
	u64 others = h->counts.references > objects ? h->counts.references - objects : 0;
	u64 mb = READING_MB + ((objects * OBJECT_BYTES + others * REFERENCE_BYTES) >> 20);

	if (!h->coarse || !r->refs)
		return;
	say_note("too many objects for --memory %.0f: each counts for the way on which it was found first, which need "
	         "not be who alone keeps it alive; for that: --memory %lu",
	        r->memory_mb, (mb + 99) / 100 * 100);
}

/* One object that could not be read may have kept many. */
static void describe_torn(const struct heap *h)
{
	double share = torn_share(h);

	if (h->counts.references && share > TORN_SAID)
		say_note(
		        "%.1f %% of the objects, or of their bytes, had moved or changed when they were read: they are "
		        "missing, with what only they keep; --pause shows one moment",
		        100 * share);
}

static void describe(struct result *res, const struct request *r)
{
	const struct heap *h = res->after;
	const struct heap_counts *c = &h->counts;
	struct heap_sum sum = sum_of(h);
	char references[64] = "";

	if (c->references)
		snprintf(references, sizeof(references), ", %lu references", c->references);
	snprintf(res->loss, sizeof(res->loss), "%lu %s, %lu bytes%s; %lu torn%s%s", sum.count, res->ops->objects,
	        sum.bytes, references, c->torn, h->coarse && r->refs ? "; by the first way to each" : "",
	        c->refused ? "; INCOMPLETE: --memory is used up" : "");
	if (r->quiet)
		return;
	fprintf(stderr, "yrt: %s; read in %.2f s\n", res->loss, (double)(res->end_ns - res->start_ns) / 1e9);
	describe_coarse(h, r, sum.count);
	describe_torn(h);
	if (c->refused)
		say_note("%lu references, or the objects that they lead to, did not fit into --memory %.0f: they are "
		         "missing, and so may be who keeps an object alive",
		        c->refused, r->memory_mb);
	heap_each_note(h, note, NULL);
}

static struct error *take(
        const struct request *r, const struct one_target *t, const struct view *view, struct result *ret)
{
	struct error *err = NULL;

	if (r->seconds) {
		err = read_heap(r, t, view, &ret->before);
		if (!err && r->refs)
			err = heap_settle(ret->before);
		if (!err)
			heap_end(ret->before);
		if (!err)
			sleep_released_s(r->seconds);
	}
	ret->start_ns = now_ns();
	if (!err)
		err = read_heap(r, t, view, &ret->after);
	ret->end_ns = now_ns();
	if (!err && r->refs)
		err = heap_settle(ret->after);
	if (!err)
		describe(ret, r);
	return err;
}

/* --- output --- */

struct wanted {
	const char *type;
	u64 addr;
};

static bool is_wanted(const void *ctx, const struct heap *h, u32 node)
{
	const struct wanted *w = ctx;
	const char *name, *dot;

	if (!heap_is_object(h, node))
		return false;
	if (w->addr)
		return heap_addr(h, node) == w->addr;
	name = h->types[heap_kind(h, node)->type].name;
	dot = strrchr(name, '.');
	return !strcmp(name, w->type) || (dot && !strcmp(dot + 1, w->type));
}

static struct error *draw_ways(const struct heap *h, const char *to, struct profile *p)
{
	struct wanted w = {.type = to};
	bool any = false;

	if (!strncmp(to, "0x", 2))
		w.addr = strtoull(to, NULL, 16);
	for (u32 i = 1; !any && i < h->nodes.n; i++)
		any = is_wanted(&w, h, i);
	if (!any)
		return error_hint(error_new(ERROR_INPUT, "no object %s %s was found", w.addr ? "at" : "of type", to),
		        "the table of the -heap command lists the types");
	return heap_draw_ways(h, is_wanted, &w, p);
}

static struct error *profile_of(const struct heap *h, const struct request *r, struct profile **ret)
{
	struct error *err = profile_create(ret);

	if (err)
		return err;
	if (!r->refs)
		err = heap_draw_types(h, *ret);
	else if (r->to)
		err = draw_ways(h, r->to, *ret);
	else if (r->largest)
		err = heap_draw_largest(h, (u32)r->largest, *ret);
	else
		err = heap_draw_refs(h, *ret);
	profile_finish(*ret);
	return err;
}

static struct error *draw(struct result *res, const struct command_line *self, const struct one_target *t,
        const struct request *r, const struct format *format, FILE *out)
{
	struct profile *before = NULL, *after = NULL, *both = NULL;
	struct diff_options options = {.raw = true, .before = "before"};
	char target[128];
	struct timespec now;
	struct error *err = profile_of(res->after, r, &after);
	cleanup(free) char *keeper = !err && r->refs && !r->to && !r->largest ? keeper_describe(after) : NULL;

	if (keeper && !r->quiet)
		fprintf(stderr, "yrt: %s\n", keeper);
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(target, sizeof(target), "%s (pid %d)", t->p->comm, one_target_pid(t));
	if (!err)
		after->meta = (struct profile_meta){.title = self->name,
		        .target = target,
		        .unit = "bytes",
		        .more = res->ops->objects,
		        .loss = res->loss,
		        .why = keeper,
		        .duration_ns = res->end_ns - res->start_ns,
		        .start_unix_ns =
		                (u64)now.tv_sec * 1000000000ull + (u64)now.tv_nsec - (now_ns() - res->start_ns)};
	if (!err && res->before && format->compares)
		err = profile_of(res->before, r, &before);
	if (before)
		before->meta.unit = after->meta.unit;
	if (!err && before)
		err = diff_create(before, after, &options, &both);
	if (!err)
		err = format_write(format, both ? both : after, out);
	profile_destroy(before);
	profile_destroy(after);
	profile_destroy(both);
	return err;
}

static struct error *write_result(
        struct result *res, const struct command_line *self, const struct one_target *t, const struct request *r)
{
	const struct format *format = format_or_text(r->format, r->output);
	struct output out;
	struct error *err = output_open(strdup(r->output), &out);

	if (err)
		return err;
	if (r->roots)
		err = objects_print_roots(res->after, out.file);
	else if (r->largest && !format)
		err = objects_print_largest(res->after, (u32)r->largest, out.file);
	else if (format || r->refs)
		err = draw(res, self, t, r, format ? format : &format_txt, out.file);
	else
		err = objects_print_types(res->before, res->after, out.file);
	return output_end(&out, err);
}

/* --- dumps --- */

#define DUMPS 2 /* until nothing moves meanwhile: more do not help when collections come more often */

static struct error *try_dump(
        const struct request *r, const struct one_target *t, const struct view *view, bool last, bool *moved)
{
	const struct process *p = t->p;
	struct runtime_process seen = process_view(p);
	struct pause pause = {0};
	struct heap *h = NULL;
	struct output out;
	bool found = false;
	struct error *err = output_open(strdup(r->hprof), &out);

	if (err)
		return err;
	err = heap_create(p->memory, p->pid,
	        &(struct heap_options){.memory = (u64)r->memory_mb << 20, .nice = r->pause ? 0 : NICE}, &h);
	if (!err && r->pause)
		err = pause_begin(p->pid, &pause);
	for (u32 i = 0; !err && !found && i < p->ninstances; i++) {
		const struct instance *in = &p->instances[i];

		if (in->data && in->ops->heap && in->ops->heap->dump && view_has(view, in->ops->id))
			err = heap_dump(h, in->ops->heap, in->data, &seen, out.file, r->contents, &found, moved);
	}
	pause_end(&pause);
	if (!err && !found)
		err = one_target_lacks(t, view);
	err = output_error(&out, err);
	if (!err && (last || !*moved) && !r->quiet) {
		fprintf(stderr, "yrt: %lu bytes in %s; %lu torn\n", (u64)ftello(out.file), r->hprof, h->counts.torn);
		heap_each_note(h, note, NULL);
	}
	if (err)
		error_free(output_close(&out, false));
	else
		err = output_close(&out, true);
	heap_destroy(h);
	return err;
}

static struct error *write_dump(const struct request *r, const struct one_target *t, const struct view *view)
{
	struct error *err = NULL;
	bool moved = true;

	if (r->pause && !r->quiet)
		say_note("%s (pid %d) is stopped while it is read", t->p->comm, t->p->pid);
	for (u32 i = 0; !err && moved && i < DUMPS; i++) {
		moved = false;
		err = try_dump(r, t, view, i + 1 == DUMPS, &moved);
	}
	return err;
}

static double memory_by_default(void)
{
	struct counters c = {0};
	const pid_t self = getpid();
	u64 mb = 0, free;

	if (!counters_take(&self, 1, &c)) {
		free = c.machine.memory_free;
		if (c.cgroup.memory_limit && c.cgroup.memory_limit - c.cgroup.memory < free)
			free = c.cgroup.memory_limit - c.cgroup.memory;
		mb = free / MEMORY_SHARE >> 20;
	}
	counters_free(&c);
	return mb < MEMORY_LEAST_MB ? MEMORY_LEAST_MB : mb > MEMORY_MOST_MB ? MEMORY_MOST_MB : (double)mb;
}

int objects_main(const struct command_line *self, int argc, char **argv)
{
	const struct view *view = view_of_command(self->name);
	struct request r = {.output = "-", .refs = !strcmp(self->name + strlen(view->name), "-refs")};
	struct result res = {.ops = ops_of(view)};
	struct one_target t = {0};
	struct error *err = parse(self, argc, argv, &r);

	if (!err && r.help) {
		manual_help(stdout, self);
		return 0;
	}
	release_signals();
	r.memory_mb = r.memory_mb ? r.memory_mb : memory_by_default();
	t = (struct one_target){.pid = r.pid, .core = r.core, .root = r.root, .quiet = r.quiet};
	if (!err)
		err = one_target_open(&t);
	if (!err && r.hprof)
		err = write_dump(&r, &t, view);
	if (!err && !r.hprof)
		err = take(&r, &t, view, &res);
	if (!err && !r.hprof)
		err = write_result(&res, self, &t, &r);
	heap_destroy(res.before);
	heap_destroy(res.after);
	one_target_close(&t);
	return err ? report_error(err) : 0;
}
