/* SPDX-License-Identifier: Apache-2.0 */
/* dump: the stack of every thread once, of processes or of a core, as text, as JSON, or as the flame commands do. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "dump_view.h"
#include "frontends/format/format.h"
#include "output.h"
#include "say.h"
#include "unwind/binary/core_file.h"
#include "unwind/process/view.h"

enum { DUMP_JSON = 512, DUMP_REPEAT, DUMP_INTERVAL, DUMP_LOGICAL, DUMP_CORE, DUMP_ROOT };

static const struct manual_option options[] = {
        PID_OPTIONS,
        {DUMP_CORE, "core", "FILE",
                "a core file in place of processes, also packed by gzip, xz or zstd; \"-\": stdin; needs no privileges",
                COMPLETE_FILE},
        {DUMP_ROOT, "root", "DIR",
                "where the files are that the process of the core had mapped, if not here: the root of its container's "
                "image or of its machine",
                COMPLETE_FILE},
        {'s', "subprocesses", NULL, "also their children", COMPLETE_NOTHING},
        {FLAME_TID, "tid", "LIST", "only these threads, by number, separated by commas; -p is not needed",
                COMPLETE_NOTHING},
        {'o', "output", "FILE", "a file instead of stdout; its extension chooses the format", COMPLETE_FILE},
        {'f', "format", "NAME", "other than text and JSON; each thread is one sample:", COMPLETE_FORMAT},
        {DUMP_JSON, "json", NULL,
                "as JSON: {\"threads\": [{\"pid\", \"tid\", \"name\", \"state\", \"syscall\", \"stack\", ...}], "
                "\"stacks\": [[{\"name\", ...}]]}",
                COMPLETE_NOTHING},
        {DUMP_REPEAT, "repeat", "N",
                "take N dumps and show the last one, with the threads that were stuck in all of them",
                COMPLETE_NOTHING},
        {DUMP_INTERVAL, "interval", "SECS", "between two dumps (1)", COMPLETE_NOTHING},
        {DUMP_LOGICAL, "logical", NULL,
                "also tasks that wait without a thread, each with its own stack: goroutines, virtual threads (JDK 21 "
                "on), asyncio tasks (Python 3.8 on), LuaJIT coroutines",
                COMPLETE_NOTHING},
        {'U', "user", NULL, "leave out kernel frames", COMPLETE_NOTHING},
        {'K', "kernel", NULL, "leave out user frames", COMPLETE_NOTHING},
        {FLAME_NO_INLINE, "no-inline", NULL, "leave out inlined functions and lines", COMPLETE_NOTHING},
        {FLAME_NO_DEMANGLE, "no-demangle", NULL, "show names of C++ and Rust as they are in the file",
                COMPLETE_NOTHING},
        {FLAME_SIGNATURES, "signatures", NULL, "Java methods with the types of their arguments", COMPLETE_NOTHING},
        {FLAME_CARRIERS, "carriers", NULL, "below a virtual thread the stack of its carrier thread", COMPLETE_NOTHING},
        {FLAME_DEPTH, "depth", "N", "at most N frames per stack (1024; up to 8192)", COMPLETE_NOTHING},
        {FLAME_NO_CACHE, "no-cache", NULL, "do not keep compiled unwind tables on disk", COMPLETE_NOTHING},
        {'q', "quiet", NULL, "no notes", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"-p PID[,PID...] [options]", "--core FILE [options]", NULL};

static const struct manual_example examples[] = {
        {"yrt @ -p 4242", "what all threads do at this moment"},
        {"yrt @ -p $(pgrep -o nginx) -s", "a master and its workers"},
        {"yrt @ -p 4242 --repeat 3", "which threads are stuck: three dumps, a second apart"},
        {"yrt @ -p 4242 --json | jq '.threads[] | select(.state == \"sleeping\") | .syscall.text'", "for programs"},
        {"yrt @ -p 4242 --logical", "what each task of an event loop waits for, and which tasks wait for it"},
        {"yrt @ --core core.4242", "what all threads did when their process died, in every language"},
        {"yrt @ -p 4242 -o dump.html", "a picture of where most threads wait"},
        {NULL, NULL},
};

const struct manual dump_manual = {
        .usage = usage,
        .text = "Prints kernel, native and language frames of each thread in true order, innermost first. Threads with "
                "equal stacks are printed together. Nothing is stopped: a thread that is off the CPU is read in place, "
                "and read again if the kernel says that it ran meanwhile; threads on a CPU are sampled for a tenth of "
                "a second.\nLANG-dump (python-dump and so on) shows only the frames of scripts and of compiled code of "
                "the "
                "language: no kernel frames and no native ones, which also saves their names, half of the time.\nA "
                "thread that waits for a lock is shown with the holder: for glibc's mutexes, Java's "
                "monitors and java.util.concurrent locks (with their class), Python's RLock and the GIL. A deadlock "
                "among them is reported in the first line.\nA core file is read in the same way: the stack of the "
                "thread that was killed comes first, with its registers, its instruction and what lies at the address "
                "that it failed on. Frames of a recursion are shown once. Pages that the kernel leaves out are read "
                "from the files that "
                "were mapped, if these are still the same.",
        .options = options,
        .examples = examples,
};

struct request {
	struct flame_options o;
	bool json, logical, text;
	const char *core, *root;
	u32 repeat;
	double interval_s;
};

static const struct setting settings[] = {
        {DUMP_JSON, SETTING_OF(struct request, json), .on = true},
        {DUMP_LOGICAL, SETTING_OF(struct request, logical), .on = true},
        {DUMP_CORE, SETTING_OF(struct request, core)},
        {DUMP_ROOT, SETTING_OF(struct request, root)},
        {DUMP_REPEAT, SETTING_OF(struct request, repeat), .name = "--repeat", .min = 1, .max = 1000},
        {DUMP_INTERVAL, SETTING_OF(struct request, interval_s), .name = "--interval", .min = 0.001, .max = 86400,
                .seconds = true},
        {0},
};

static struct error *parse_option(struct request *r, int option)
{
	bool taken;
	struct error *err = settings_apply(settings, option, optarg, r, &taken);

	return err || taken ? err : flame_option(option, &r->o);
}

static bool is_text(const struct request *r)
{
	return r->text || (!r->json && !r->o.format && (!strcmp(r->o.output, "-") || !strchr(r->o.output, '.')));
}

static struct error *check_core(const struct request *r)
{
	if (r->root && !r->core)
		return error_new(ERROR_USAGE, "--root takes --core");
	if (r->core && (r->o.run.npids || r->o.selection.nrules || r->repeat > 1))
		return error_new(ERROR_USAGE, "--core excludes %s", r->repeat > 1 ? "--repeat" : "-p and --select");
	return NULL;
}

static struct error *check(struct request *r)
{
	struct error *err = check_core(r);

	if (err)
		return err;
	if (r->json && r->o.format)
		return error_new(ERROR_USAGE, "--json and --format exclude each other");
	if (!r->json && !is_text(r) && !format_find(r->o.format, r->o.output))
		return error_hint(
		        error_new(ERROR_USAGE, "no output format for %s", r->o.format ? r->o.format : r->o.output),
		        "--help lists the formats and their extensions; a name without extension is text");
	return r->core ? NULL : flame_check_targets(&r->o);
}

static struct error *parse(struct request *r, int argc, char **argv)
{
	struct manual_getopt g;
	struct error *err = NULL;
	int option;

	flame_defaults(&r->o);
	r->o.run.sampler.collect.names.inlines = true;
	r->o.run.sampler.collect.names.lines = true;
	r->o.output = "-";
	manual_getopt(&dump_manual, &g);
	optind = 1;
	while (!err && (option = getopt_long(argc, argv, g.shorts + 1, g.longs, NULL)) != -1)
		err = parse_option(r, option);
	if (!err && optind < argc)
		err = error_hint(error_new(ERROR_USAGE, "unexpected argument \"%s\"", argv[optind]),
		        "processes are given by -p PID");
	if (!err && !r->o.help)
		err = check(r);
	return err;
}

/* Only what the language itself has on the stacks: names of native code, which cost most, are not needed then. */
static struct error *set_view(struct request *r, const struct command_line *self)
{
	struct collect_options *c = &r->o.run.sampler.collect;

	c->names.view = view_of_command(self->name);
	if (!c->names.view)
		return NULL;
	if (r->o.run.sampler.no_user)
		return error_hint(error_new(ERROR_USAGE, "-K and %s together leave no frames", self->name),
		        "`yrt dump -K` shows kernel frames");
	c->scripts_only = c->no_kernel = true;
	c->names.inlines = false;
	return NULL;
}

static void warn(void *ctx, struct error *err)
{
	struct request *r = ctx;

	if (r->o.quiet)
		error_free(err);
	else
		say_note_error(err);
}

/* Of several processes those that can be are dumped; *code: why one was not. */
static struct error *add_all(struct dump *d, const struct request *r, int *code)
{
	int added = 0;

	for (int i = 0; i < r->o.run.npids; i++) {
		struct error *err = dump_add(d, r->o.run.pids[i]);

		if (err && r->o.run.npids == 1)
			return err;
		added += !err;
		if (err && err->kind == ERROR_NO_PROCESS)
			say_note_error(err);
		else if (err)
			*code = report_error(err);
	}
	return added ? NULL : error_new(ERROR_NO_PROCESS, "none of the processes can be read");
}

static void wait_for_next(const struct request *r)
{
	struct timespec ts = {.tv_sec = (time_t)r->interval_s,
	        .tv_nsec = (long)((r->interval_s - (double)(time_t)r->interval_s) * 1e9)};

	nanosleep(&ts, NULL);
}

/* Takes all dumps. Only the last one is kept whole; of earlier ones, the state of each thread. After Ctrl-C, or when
 * the target has ended, the latest dump is the last. */
static struct error *take(struct dump *d, const struct request *r, struct history *h, struct dump_list *ret)
{
	struct error *err = dump_take(d, ret);

	for (u32 i = 1; !err && i < r->repeat && !stop_sampling; i++) {
		struct dump_list next;
		struct error *gone;

		wait_for_next(r);
		if (stop_sampling)
			break;
		gone = dump_take(d, &next);
		if (gone && gone->kind == ERROR_NO_PROCESS) {
			warn((void *)r, gone);
			break;
		}
		if (!gone)
			err = history_add(h, ret);
		dump_list_free(ret);
		*ret = gone ? (struct dump_list){0} : next;
		err = gone ? gone : err;
	}
	return err;
}

static struct error *write_dump(
        const struct request *r, struct dump *d, const struct dump_view *v, const char *command, FILE *out)
{
	struct profile *p = dump_profile(d);

	if (r->json)
		return dump_write_json(v, out);
	if (is_text(r))
		return dump_write_text(v, out);
	p->meta = (struct profile_meta){.title = command, .command = command, .target = v->target, .unit = "threads"};
	return format_write(format_find(r->o.format, r->o.output), p, out);
}

/* Threads of some languages wait only for work: what the program waits for has none. */
static void note_tasks(const struct dump_list *list)
{
	u64 seen = 0;

	for (u32 i = 0; i < list->n; i++) {
		const struct process *p = list->items[i].process;

		for (u32 k = 0; p && k < p->ninstances; k++) {
			const struct runtime_ops *ops = p->instances[k].ops;

			if (!ops->tasks || !ops->tasks->all || seen & 1ull << ops->id)
				continue;
			seen |= 1ull << ops->id;
			say_note("%s that have no thread are not shown: --logical shows them", ops->tasks->kinds);
		}
	}
}

static struct error *show(const struct request *r, struct dump *d, struct dump_list *list, const struct history *h,
        const char *command, struct output *out)
{
	struct dump_view v = {0};
	struct crash crash;
	struct error *err = dump_name(d, list);

	if (!err)
		err = view_make(d, list, h, &v);
	if (!err) {
		v.target = dump_target(d);
		v.core = dump_core(d);
		for (u32 i = 0; i < list->n && !v.crash; i++)
			v.crash = dump_crash(d, list, &list->items[i], &crash) ? &crash : NULL;
		v.logical = r->logical;
		v.language = r->o.run.sampler.collect.names.view ? r->o.run.sampler.collect.names.view->language : NULL;
		err = view_verdict(&v);
		if (!v.ntasks && !r->logical && !r->json)
			note_tasks(list);
	}
	if (!err)
		err = output_error(out, write_dump(r, d, &v, command, out->file));
	if (!err)
		err = output_close(out, true);
	view_free(&v);
	return err;
}

/* The core is cut, and with it the stack that matters most. */
static bool is_lost(const struct dump *d, const struct dump_list *list)
{
	const struct core_file *core = dump_core(d);

	for (u32 i = 0; core && (core->missing || core->unpacked_cut) && i < list->n; i++)
		if (list->items[i].at.flags & THREAD_KILLED && !stop_is_complete(list->items[i].stop))
			return true;
	return false;
}

static int run(const struct request *r, const char *command)
{
	struct dump_options options = {.collect = r->o.run.sampler.collect,
	        .depth = r->o.run.sampler.depth,
	        .no_user = r->o.run.sampler.no_user,
	        .logical = r->logical,
	        .core = r->core,
	        .root = r->root,
	        .no_kernel = r->o.run.sampler.collect.no_kernel,
	        .cache_dir = r->o.run.sampler.cache_dir,
	        .warn = warn,
	        .ctx = (void *)r,
	        .stop = &stop_sampling};
	struct history *h = history_create();
	struct dump_list list = {0};
	struct dump *d = NULL;
	struct output out;
	int code = 0;
	struct error *err = output_open(strdup(r->o.output), &out);

	if (!err && !h)
		err = &error_no_memory;
	if (!err)
		err = dump_create(&options, &d);
	if (!err && !r->core)
		err = add_all(d, r, &code);
	if (!err)
		err = take(d, r, h, &list);
	stop_sampling = 0;
	if (!err)
		err = show(r, d, &list, h, command, &out);
	if (!err && is_lost(d, &list))
		code = ERROR_LOST;
	if (err)
		code = report_error(err);
	error_free(output_close(&out, false));
	dump_list_free(&list);
	dump_destroy(d);
	history_free(h);
	return code;
}

int dump_once(const struct flame_options *o, const char *output)
{
	struct request r = {.o = *o, .text = true, .repeat = 1, .interval_s = 1};

	r.o.output = output;
	r.o.run.sampler.collect.names.inlines = true;
	r.o.run.sampler.collect.names.lines = true;
	return run(&r, "dump");
}

int dump_main(const struct command_line *self, int argc, char **argv)
{
	struct request r = {.repeat = 1, .interval_s = 1};
	struct error *err = parse(&r, argc, argv);
	int code = 0;

	if (!err && !r.o.help)
		err = set_view(&r, self);
	if (!err && r.o.help) {
		manual_help(stdout, self);
	} else if (!err) {
		err = run_add_children(&r.o.run);
		catch_signals();
		if (!err)
			code = run(&r, self->name);
	}
	flame_free(&r.o);
	return err ? report_error(err) : code;
}
