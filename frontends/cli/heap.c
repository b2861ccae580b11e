/* SPDX-License-Identifier: Apache-2.0 */
/* heap: what all memory of a process, or of a core, is used for: mappings, allocators, arenas, blocks by size. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "heap_view.h"
#include "frontends/format/format.h"
#include "one_target.h"
#include "output.h"
#include "say.h"
#include "unwind/allocators/allocators.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/process/comm.h"

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
                "the free pages of each arena.\n"
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

/* What it is drawn as; NULL: text. */
static const struct format *format_of(const struct request *r)
{
	if (r->format)
		return format_find(r->format, r->output);
	return strcmp(r->output, "-") && strchr(r->output, '.') ? format_find(NULL, r->output) : NULL;
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

static struct error *draw(const struct heap_view *v, const struct format *format, u64 duration_ns, FILE *out)
{
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
	const struct format *format = format_of(r);
	struct output out;
	struct error *err = output_open(strdup(r->output), &out);

	if (err)
		return err;
	err = output_error(&out, format ? draw(v, format, duration_ns, out.file) : heap_print(v, out.file));
	if (!err)
		return output_close(&out, true);
	error_free(output_close(&out, false));
	return err;
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
