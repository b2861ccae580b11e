/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and checks the options of the commands that sample. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "frontends/format/format.h"
#include "probes/event_command.h"
#include "processes.h"
#include "probes/select_find.h"
#include "say.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/process/process_refused.h"

#define FREQUENCY_MAX 20000
#define DEPTH_MAX     8192
#define PIDS_MAX      1024

/* "42", or the name of one process. one: the command takes no more. */
static struct error *find_pid(const char *word, bool one, int *ret)
{
	char *end;
	long pid = strtol(word, &end, 10);

	if (*word && *end && !strchr("-+", *word))
		return find_by_name(word, "/proc", one, ret);
	if (!*word || *end || pid <= 0 || pid > 1 << 30)
		return error_new(ERROR_USAGE, "--pid takes %s, not \"%s\"",
		        one ? "a pid or a name" : "pids or names separated by commas", word);
	*ret = (int)pid;
	return NULL;
}

/* The process of a thread. */
static struct error *find_process_of(u32 tid, int *ret)
{
	char path[64], line[256];
	cleanup(fclose) FILE *file = NULL;

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Tgid: %d", ret) == 1)
			return NULL;
	return error_hint(error_new(ERROR_NO_PROCESS, "there is no thread %u", tid),
	        "`ls /proc/PID/task` or `yrt dump -p PID` lists those of a process");
}

static struct error *add_tid(struct flame_options *o, u32 tid)
{
	struct collect_options *c = &o->run.sampler.collect;
	int pid;
	struct error *err = find_process_of(tid, &pid);

	if (!err)
		err = grow(&o->tids, c->ntids, sizeof(*o->tids));
	if (err)
		return err;
	o->tids[c->ntids++] = tid;
	c->tids = o->tids;
	return run_add_pid(&o->run, pid) ? NULL : &error_no_memory;
}

/* Of several, those that have ended are left out. */
static struct error *add_tids(struct flame_options *o, const char *list)
{
	while (*list) {
		char *end;
		unsigned long tid = strtoul(list, &end, 10);
		struct error *err;

		if (end == list || (*end && *end != ',') || !tid || tid > 1 << 30)
			return error_new(ERROR_USAGE, "--tid takes numbers separated by commas, not \"%s\"", list);
		list = *end ? end + 1 : end;
		err = add_tid(o, (u32)tid);
		if (err && (err->kind != ERROR_NO_PROCESS || (!*list && !o->run.sampler.collect.ntids)))
			return err;
		if (err)
			say_note_error(err);
	}
	return NULL;
}

struct error *one_process(int key, const char *text, int *ret)
{
	struct selection selection = {0};
	struct error *err;

	if (key == 'p')
		return find_pid(text, true, ret);
	err = selection_add(&selection, text);
	if (!err)
		err = selection_find_one(&selection, "/proc", ret);
	selection_free(&selection);
	return err;
}

struct error *one_process_parse(const struct manual *manual, const struct setting *settings, int argc, char **argv,
        void *request, int *pid, const bool *help)
{
	struct manual_getopt g;
	struct error *err = NULL;
	bool taken;
	int key;

	manual_getopt(manual, &g);
	optind = 1;
	while (!err && (key = getopt_long(argc, argv, g.shorts + 1, g.longs, NULL)) != -1) {
		taken = key == 'p' || key == FLAME_SELECT;
		err = taken ? one_process(key, optarg, pid) : settings_apply(settings, key, optarg, request, &taken);
		if (!err && !taken)
			err = manual_bad_option();
	}
	if (err || *help || optind >= argc)
		return err;
	return error_hint(
	        error_new(ERROR_USAGE, "unexpected argument \"%s\"", argv[optind]), "a process is given by -p PID");
}

struct error *flame_add_pids(struct flame_options *o, const char *list)
{
	int pid;

	while (*list) {
		size_t n = strcspn(list, ",");
		cleanup(free) char *word = strndup(list, n);
		struct error *err = word ? find_pid(word, false, &pid) : &error_no_memory;

		if (err)
			return err;
		if (o->run.npids == PIDS_MAX)
			return error_new(ERROR_USAGE, "--pid takes %d pids at most; --select takes rules", PIDS_MAX);
		if (!run_add_pid(&o->run, pid))
			return &error_no_memory;
		list += n + (list[n] == ',');
	}
	return NULL;
}

#define MEMBER(member) SETTING_OF(struct flame_options, member)
#define ON(key, member)                                                                                                \
	{                                                                                                              \
		key, MEMBER(member), .on = true                                                                        \
	}
#define OFF(key, member)                                                                                               \
	{                                                                                                              \
		key, MEMBER(member), .on = false                                                                       \
	}
#define TEXT(key, member)                                                                                              \
	{                                                                                                              \
		key, MEMBER(member)                                                                                    \
	}
#define BITS(key, member, bits_)                                                                                       \
	{                                                                                                              \
		key, MEMBER(member), .bits = bits_                                                                     \
	}
#define NUMBER(key, member, option, min_, max_)                                                                        \
	{                                                                                                              \
		key, MEMBER(member), .name = option, .min = min_, .max = max_                                          \
	}
static const struct setting settings[] = {
        {'d', MEMBER(run.sampler.duration_s), .name = "--duration", .min = 0, .max = 1e7, .seconds = true},
        NUMBER('F', run.sampler.frequency, "--freq", 0.1, FREQUENCY_MAX),
        NUMBER('r', run.sampler.frequency, "--freq", 0.1, FREQUENCY_MAX),
        NUMBER(FLAME_CPU, run.sampler.cpu_percent, "--max-cpu", 0, 1e6),
        NUMBER(FLAME_DEPTH, run.sampler.depth, "--depth", 1, DEPTH_MAX),
        TEXT(FLAME_EVENT, event),
        TEXT('o', output),
        TEXT('f', format),
        TEXT('I', run.sampler.collect.include),
        TEXT('X', run.sampler.collect.exclude),
        TEXT(FLAME_STATS, stats_file),
        TEXT(FLAME_TITLE, title),
        TEXT(FLAME_NO_CACHE, run.sampler.cache_dir),
        ON('t', run.sampler.collect.threads),
        BITS('t', run.sampler.features, FEATURE_TASKS),
        BITS(FLAME_CREATORS, run.sampler.features, FEATURE_CREATORS),
        BITS(FLAME_LABELS, run.sampler.features, FEATURE_LABELS),
        ON(FLAME_TIMELINE, run.sampler.collect.times),
        ON('s', run.sampler.follow),
        ON('U', run.sampler.no_kernel),
        ON('U', run.sampler.collect.no_kernel),
        ON('K', run.sampler.no_user),
        ON('q', quiet),
        ON('h', help),
        ON('a', run.sampler.everyone),
        ON(FLAME_WAIT, awaits),
        ON('g', run.sampler.collect.lock_only),
        ON(FLAME_ASYNC, async),
        OFF(FLAME_ASYNC, no_async),
        ON(FLAME_NO_ASYNC, no_async),
        OFF(FLAME_NO_ASYNC, async),
        ON(FLAME_LINES, run.sampler.collect.names.lines),
        ON(FLAME_ADDRESSES, run.sampler.collect.names.addresses),
        ON(FLAME_SIGNATURES, run.sampler.collect.names.signatures),
        ON(FLAME_NO_DEMANGLE, run.sampler.collect.names.mangled),
        OFF(FLAME_NO_INLINE, run.sampler.collect.names.inlines),
        ON(FLAME_ANNOTATE, annotate),
        ON(FLAME_SOURCE, source),
        BITS(FLAME_TRACES, run.sampler.collect.names.expand, EXPAND_TRACES),
        BITS(FLAME_NO_JIT_INLINE, run.sampler.collect.names.expand, EXPAND_MERGE),
        BITS(FLAME_CARRIERS, run.sampler.collect.names.expand, EXPAND_CARRIERS),
        {0},
};

/* The command for an event of async-profiler or perf. */
static const char *instead_of(const char *event)
{
	static const struct {
		const char *event, *hint;
	} all[] = {{"alloc", "`yrt alloc` shows who calls malloc, `yrt java-alloc` where a JVM allocates objects"},
	        {"malloc", "`yrt alloc` shows who calls malloc"},
	        {"io", "`yrt io-flame` shows time and bytes of file I/O"},
	        {"net", "`yrt net-flame` shows bytes sent and received"},
	        {"mutex", "`yrt lock-flame` shows where threads wait for locks"},
	        {"lock", "`yrt lock-flame` shows where threads wait for locks"},
	        {"wall", "`yrt wall-flame` shows time on and off the CPU"},
	        {"page-faults", "`yrt fault-flame` shows page faults by stack"},
	        {"minor-faults", "`yrt fault-flame` shows page faults by stack"},
	        {"major-faults", "`yrt fault-flame` shows page faults by stack"},
	        {"context-switches", "`yrt off-flame` shows where threads leave the CPU"},
	        {"cycles", "yrt reads no counters of the processor; leave -e out for time on the CPU"},
	        {"instructions", "yrt reads no counters of the processor; leave -e out for time on the CPU"},
	        {"cache-misses", "yrt reads no counters of the processor; leave -e out for time on the CPU"},
	        {"branch-misses", "yrt reads no counters of the processor; leave -e out for time on the CPU"}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(event, all[i].event))
			return all[i].hint;
	return strpbrk(event, ":.") ? "`yrt probe -e EVENT` counts calls of functions, USDT probes and tracepoints"
	                            : "`yrt wall-flame` shows time on and off the CPU, `yrt off-flame` where threads "
	                              "wait, `yrt probe` who calls a function";
}

/* The event of `record` for the name that async-profiler or perf has; NULL: none. */
static const char *own_name(const char *event)
{
	static const struct {
		const char *theirs, *own;
	} all[] = {{"cpu", "clock"}, {"cpu-clock", "clock"}, {"itimer", "clock"}, {"page-faults", "fault"},
	        {"minor-faults", "fault"}, {"major-faults", "fault"}, {"context-switches", "wait"}, {"malloc", "alloc"},
	        {"mutex", "lock"}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(event, all[i].theirs))
			return all[i].own;
	return NULL;
}

/* -e of async-profiler and perf: only what these commands sample anyway. */
static struct error *parse_event(const char *name)
{
	static const char *const same[] = {"cpu", "cpu-clock", "itimer", "ctimer"};

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		if (!strcmp(name, same[i]))
			return NULL;
	return error_hint(
	        error_new(ERROR_USAGE, "flame samples CPU time (-e cpu), not \"%s\"", name), "%s", instead_of(name));
}

struct error *flame_option(int option, struct flame_options *o)
{
	struct error *err;
	bool taken;

	if (option == 'p')
		return flame_add_pids(o, optarg);
	if (option == FLAME_TID)
		return add_tids(o, optarg);
	if (option == FLAME_AS_ALWAYS)
		return NULL;
	err = run_option(&o->run, option, optarg, &taken);
	if (err || taken)
		return err;
	if (option == 'e')
		return parse_event(optarg);
	if (option == FLAME_PROCESSES)
		return processes_parse(optarg, &o->processes);
	if (option == FLAME_SELECT)
		return selection_add(&o->selection, optarg);
	o->named |= option == 'o';
	err = settings_apply(settings, option, optarg, o, &taken);
	if (!err && !taken)
		err = send_option(option, optarg, &o->send, &taken);
	if (err || taken)
		return err;
	return manual_bad_option();
}

/* Those of -e, for a hint. */
static struct error *no_event(const char *name)
{
	cleanup(free) char *list = NULL;
	const char *own;
	size_t size;
	FILE *out = open_memstream(&list, &size);

	if (!out)
		return &error_no_memory;
	for (const struct event_ops *const *e = events; *e; e++)
		if ((*e)->command)
			fprintf(out, "%s%s", e == events ? "" : ", ", (*e)->name);
	fclose(out);
	own = own_name(name);
	return error_hint(error_new(ERROR_USAGE, "there is no event \"%s\"", name), "%s%s%sevents are %s",
	        own ? "it is called " : "", own ? own : "", own ? " here; " : "", list);
}

struct error *flame_set_event(struct flame_options *o)
{
	const struct event_ops *event = o->event ? event_find(o->event) : o->run.sampler.event;
	const struct event_command *c;
	struct error *err;

	if (!event || (o->event && !event->command))
		return no_event(o->event);
	if (o->run.sampler.collect.times && !event->timed)
		return error_hint(
		        error_new(ERROR_USAGE, "--timeline works for time on the CPU and wall-clock time only"),
		        "`yrt wall-flame --timeline` shows when threads wait");
	err = run_choose(&o->run, event);
	c = event->command_line;
	return err || o->help || !c || !c->check ? err : c->check(&o->run, o->event != NULL);
}

struct error *flame_leave_out_gone(struct flame_options *o)
{
	cleanup(free) struct error **gone = calloc((size_t)o->run.npids + 1, sizeof(*gone));
	int left = 0, ngone = 0;
	bool fails;

	if (!gone)
		return &error_no_memory;
	for (int i = 0; i < o->run.npids; i++) {
		pid_t pid = o->run.pids[i];
		struct error *err = living_thread(pid) ? NULL : process_explain_empty(pid);

		if (err && err->kind == ERROR_NO_PROCESS) {
			gone[ngone++] = err;
			continue;
		}
		error_free(err);
		o->run.pids[left++] = pid;
	}
	o->run.npids = left;
	fails = ngone && !left && !o->selection.nrules;
	for (int i = 0; i < ngone - fails; i++) {
		say_note("%s%s", gone[i]->message, left ? "; only the others are shown" : "");
		error_free(gone[i]);
	}
	return fails ? gone[ngone - 1] : NULL;
}

struct error *flame_select(struct flame_options *o)
{
	cleanup(free) pid_t *pids = NULL;
	struct error *err = flame_leave_out_gone(o);
	u32 n = 0;

	if (err || !o->selection.nrules)
		return err;
	err = selection_find(&o->selection, "/proc", &pids, &n);
	if (!err && !n)
		return o->awaits ? selection_hidden(&o->selection, "/proc") : selection_missed(&o->selection, "/proc");
	for (u32 i = 0; !err && i < n; i++)
		err = run_add_pid(&o->run, pids[i]) ? NULL : &error_no_memory;
	return err;
}

struct error *flame_select_now(struct flame_options *o)
{
	struct error *err = flame_select(o);

	if (!err && !o->run.npids)
		err = error_hint(error_new(ERROR_USAGE, "no process was given"), "give -p PID or --select exe=NAME");
	return err;
}

void flame_free(struct flame_options *o)
{
	run_free(&o->run);
	selection_free(&o->selection);
	free(o->send.labels);
	free(o->tids);
}

struct error *flame_check_targets(struct flame_options *o)
{
	bool chosen = o->run.npids || o->selection.nrules;

	if (o->run.sampler.no_user && o->run.sampler.no_kernel)
		return error_new(ERROR_USAGE, "-U and -K together leave no frames");
	if (!chosen && !o->run.command && !o->run.sampler.everyone)
		return error_hint(error_new(ERROR_USAGE, "no process was given"),
		        "give -p PID, --select exe=NAME, -a for all, or a command behind --; --help lists all options");
	if (chosen + !!o->run.command + o->run.sampler.everyone > 1)
		return error_new(ERROR_USAGE, "%s and %s exclude each other", chosen ? "-p or --select" : "-a",
		        o->run.command ? "a command behind --" : "-a");
	if (o->run.sampler.everyone && o->run.sampler.event != events[0])
		return error_hint(error_new(ERROR_USAGE, "-a works for time on the CPU only"), "give -p or --select");
	if (o->run.sampler.collect.ntids && o->run.sampler.event->stack)
		return error_new(ERROR_USAGE, "--tid does not work for this command: -t separates threads");
	if (o->awaits && !o->selection.nrules)
		return error_new(ERROR_USAGE, "--wait takes --select");
	return flame_select(o);
}

struct error *flame_check(struct flame_options *o)
{
	struct error *err = flame_check_targets(o);

	if (!err && o->send.url && !o->named)
		o->output = "%t.yrt";
	if (!err && o->send.url && format_find(o->format, o->output) != &format_recording)
		err = error_hint(error_new(ERROR_USAGE, "--push sends a recording, not %s", o->output),
		        "leave out -o, or give -o NAME.yrt to keep the recording; `yrt render` converts it");
	if (!err)
		err = send_check(&o->send);
	if (!err && !format_find(o->format, o->output))
		err = error_hint(error_new(ERROR_USAGE, "no output format for %s", o->format ? o->format : o->output),
		        "--help lists the formats and their extensions");
	return err;
}

void flame_defaults(struct flame_options *ret)
{
	*ret = (struct flame_options){.send = SEND_DEFAULTS};
	run_defaults(&ret->run);
}

struct error *flame_operands(int argc, char **argv, struct flame_options *o)
{
	if (optind >= argc)
		return NULL;
	if (strcmp(argv[optind - 1], "--") != 0)
		return error_hint(error_new(ERROR_USAGE, "unexpected argument \"%s\"", argv[optind]),
		        "a command to run goes behind --");
	o->run.command = argv + optind;
	return NULL;
}

struct error *flame_parse(const struct command_line *self, int argc, char **argv, struct flame_options *ret)
{
	static char name[64];
	struct flame_options o;
	struct manual_getopt g;
	struct error *err = NULL;
	int option;

	flame_defaults(&o);
	if (self->event)
		err = run_choose(&o.run, self->event);
	o.run.sampler.collect.names.inlines = true;
	if (!err && self->event && self->event->command_line && self->event->command_line->defaults)
		self->event->command_line->defaults(&o.run);
	optind = 1;
	snprintf(name, sizeof(name), "%s.%s", argv[0], strcmp(argv[0], "record") ? "html" : "yrt");
	o.output = name;
	manual_getopt(self->manual, &g);
	while (!err && (option = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1)
		err = flame_option(option, &o);
	if (!err)
		err = flame_operands(argc, argv, &o);
	if (o.run.sampler.duration_s < 0)
		o.run.sampler.duration_s = o.run.command ? 0 : 30;
	if (!err)
		err = flame_set_event(&o);
	if (!o.format && !strcmp(o.output, "-") && !strcmp(argv[0], "record"))
		o.format = format_recording.name;
	if (!err && !o.help)
		err = flame_check(&o);
	if (err) {
		flame_free(&o);
		return err;
	}
	*ret = o;
	return NULL;
}
