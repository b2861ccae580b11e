/* SPDX-License-Identifier: Apache-2.0 */
/* report: measures by itself, and says what is wrong, by rules (frontends/report/). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "colour.h"
#include "frontends/report/findings.h"
#include "frontends/report/measure.h"
#include "frontends/report/write.h"
#include "output.h"
#include "say.h"
#include "unwind/cleanup.h"
#include "when.h"

/* report --watch CONDITION: the same command again, as a process of its own, whenever a condition of watch holds. */

#define LOOK_MS 500

static bool anyone_lives(const struct run_request *r)
{
	for (int i = 0; i < r->npids; i++)
		if (!kill(r->pids[i], 0) || errno == EPERM)
			return true;
	return false;
}

/* Until it has held for long enough. Of --select whoever is there by then. */
static struct error *wait_for(struct flame_options *o, struct when *w, const char *condition)
{
	bool holds = false, chosen = !o->selection.nrules;
	char value[WHEN_VALUE];
	struct error *err = NULL;

	when_restart(w);
	while (!err && !holds && !stop_sampling) {
		struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

		if (!chosen)
			error_free(flame_select(o)); /* nobody is there now */
		err = when_look(w, o->run.pids, o->run.npids, o->run.sampler.everyone, &stop_sampling, &holds);
		if (!err && !holds && chosen && !o->run.sampler.everyone && !anyone_lives(&o->run))
			err = error_new(ERROR_NO_PROCESS, "all targets have exited before %s", condition);
		if (!err && !holds)
			nanosleep(&pause, NULL);
	}
	when_show(w, value);
	if (!err && !stop_sampling && !o->quiet)
		say_note("%s: it is %s", condition, value);
	return err;
}

/* The same command, without a condition: of two --watch the later holds. */
static void report_and_exit(int argc, char **argv)
{
	char **all = calloc((size_t)argc + 3, sizeof(*all));

	if (all) {
		all[0] = "yrt";
		memcpy(all + 1, argv, (size_t)argc * sizeof(*all));
		all[argc + 1] = "--watch=";
		execv("/proc/self/exe", all);
	}
	_exit(ERROR_INTERNAL);
}

static struct error *report_once(int argc, char **argv, int *code)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child)
		report_and_exit(argc, argv);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0)
		return error_errno(errno, "cannot start a process");
	*code = WIFEXITED(status) ? WEXITSTATUS(status) : ERROR_INTERNAL;
	return NULL;
}

/*
 * Reports whenever the condition (when.h) holds, count times (0: until a signal ends it). argv: of the command, from
 * its name on. *code: the exit code of the last report.
 */
static struct error *report_watch(
        struct flame_options *o, const char *condition, u32 count, int argc, char **argv, int *code)
{
	struct when w = {0};
	struct error *err = when_parse(condition, &w);

	catch_signals();
	for (u32 done = 0; !err && !stop_sampling && (!count || done < count); done++) {
		err = wait_for(o, &w, condition);
		if (!err && !stop_sampling)
			err = report_once(argc, argv, code);
		if (!err && *code == ERROR_PERMISSION)
			break;
	}
	when_free(&w);
	return err;
}

#define PROBLEMS 10 /* exit code: there is a problem */
#define SECONDS  60

enum { REPORT_CORE = 0x700, REPORT_RULES, REPORT_EXPLAIN, REPORT_LIST, REPORT_KEEP, REPORT_WATCH };

static const struct manual_option options[] = {
        MANUAL_HEADING("Targets"),
        PID_OPTIONS,
        {REPORT_CORE, "core", "FILE", "a core file: why the program died", COMPLETE_FILE},
        {'s', "subprocesses", NULL,
                "also their children (of a process that does nothing itself they are looked at anyway)",
                COMPLETE_NOTHING},
        {'a', "all", NULL, "the processes of this machine that do something, at most 12", COMPLETE_NOTHING},
        {'d', "duration", "SECS", "for all measurements together (60; at least 5)", COMPLETE_NOTHING},
        {REPORT_WATCH, "watch", "COND",
                "a report whenever this holds: 'cpu > 80% for 5s', 'rss > 2g', 'load > 4', 'exit(COMMAND) != 0', as "
                "`yrt "
                "watch --when`",
                COMPLETE_NOTHING},
        {'n', "count", "N", "with --watch, end after N reports (0, the default: never)", COMPLETE_NOTHING},
        MANUAL_HEADING("Output"),
        {'o', "output", "FILE", "report.html, .md or .json; - is stdout (the default)", COMPLETE_FILE},
        {'f', "format", "NAME", "html, md or json, whatever the extension of FILE", COMPLETE_NOTHING},
        {REPORT_KEEP, "keep", "DIR", "keep the recordings and counters there; `yrt report DIR` reads them again",
                COMPLETE_FILE},
        {'q', "quiet", NULL, "no steps", COMPLETE_NOTHING},
        MANUAL_HEADING("Rules"),
        {REPORT_RULES, "rules", "DIR", "also the rules of DIR/*.rule; of two with a name the later holds",
                COMPLETE_FILE},
        {REPORT_LIST, "list", NULL, "list all rules", COMPLETE_NOTHING},
        {REPORT_EXPLAIN, "explain", "RULE", "print a rule as it is written", COMPLETE_NOTHING},
        MANUAL_HEADING("Cost"),
        {FLAME_CPU, "max-cpu", "PERCENT", "of one CPU: if samples take more, the rate is halved (2; 0: no limit)",
                COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"-p PID[,PID...] | --select RULE | -a [options]",
        "--core FILE | FILE.yrt... | DIR [options]", "--list | --explain RULE", NULL};

static const struct manual_example examples[] = {
        {"yrt report -p 4242 -o report.html", "what is wrong with a process, as a page"},
        {"yrt report --select exe=nginx -d 30 -f json -o -", "for programs; the exit code is 10 if there is a problem"},
        {"yrt report -a -o report.html", "what is wrong on this machine"},
        {"yrt report -p 4242 --keep /tmp/evidence", "keeps what was measured"},
        {"yrt report /tmp/evidence -o report.html", "and says it again, on any machine"},
        {"yrt report a.yrt", "what a recording tells"},
        {"yrt report a.yrt b.yrt", "what got worse from a to b"},
        {"yrt report --select exe=nginx --watch 'cpu > 150% for 5s' -o 'report-%t.html'", "whenever it is busy"},
        {"yrt report --core core.4242", "why a program died"},
        {NULL, NULL},
};

const struct manual report_manual = {
        .usage = usage,
        .text = "Reads the kernel's counters for 3 seconds, looks at where threads spend their time, and measures what "
                "that asks for: CPU time, locks, file I/O, sockets, page faults. Each step is printed as it goes. Then "
                "rules say what is wrong: each finding has its share with a 95 % interval, the function and line, the "
                "mechanism, what to change, what speaks against it, and the command that shows it alone. What was "
                "measured and is healthy is listed, too.\n"
                "The exit code is 0, or 10 if there is a problem. docs/report.md describes the JSON, and "
                "docs/report-rules.md the language of rules.",
        .options = options,
        .examples = examples,
        .operands = COMPLETE_FILE,
};

struct report_request {
	struct flame_options o;
	const char *rules, *explain, *keep, *core, *watch;
	u32 count;
	bool list;
	char **files;
	int nfiles;
};

static const struct setting settings[] = {
        {REPORT_RULES, SETTING_OF(struct report_request, rules)},
        {REPORT_EXPLAIN, SETTING_OF(struct report_request, explain)},
        {REPORT_KEEP, SETTING_OF(struct report_request, keep)},
        {REPORT_CORE, SETTING_OF(struct report_request, core)},
        {REPORT_WATCH, SETTING_OF(struct report_request, watch)},
        {'n', SETTING_OF(struct report_request, count), .name = "--count", .min = 0, .max = 1e9},
        {REPORT_LIST, SETTING_OF(struct report_request, list), .on = true},
        {'d', SETTING_OF(struct report_request, o.run.sampler.duration_s), .name = "--duration", .min = 5, .max = 3600,
                .seconds = true},
        {0},
};

typedef struct error *write_report(
        const struct findings *, const struct evidence *, const struct report_meta *, FILE *);

static write_report *writer_of(const struct flame_options *o)
{
	static const struct {
		const char *name;
		write_report *write;
	} all[] = {{"html", report_write_html}, {"md", report_write_markdown}, {"json", report_write_json}};
	const char *dot = strrchr(o->output, '.'), *name = o->format ? o->format : dot ? dot + 1 : "md";

	if (!o->format && !strcmp(o->output, "-"))
		name = "md";
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(name, all[i].name))
			return all[i].write;
	return NULL;
}

static struct error *check(struct report_request *r)
{
	bool chosen = r->o.run.npids || r->o.selection.nrules || r->o.run.sampler.everyone;

	if (!writer_of(&r->o))
		return error_hint(
		        error_new(ERROR_USAGE, "no format of reports for %s", r->o.format ? r->o.format : r->o.output),
		        "html, md and json are formats");
	if (r->list || r->explain)
		return NULL;
	if (!!r->nfiles + chosen + !!r->core > 1)
		return error_new(ERROR_USAGE, "recordings, --core, and -p, --select or -a exclude each other");
	if (r->o.run.sampler.everyone && (r->o.run.npids || r->o.selection.nrules))
		return error_new(ERROR_USAGE, "-p or --select and -a exclude each other");
	if (!r->nfiles && !chosen && !r->core)
		return error_hint(error_new(ERROR_USAGE, "no process was given"),
		        "give -p PID, --select exe=NAME, -a, --core FILE, or recordings; --help lists all options");
	if (r->watch && (r->nfiles || r->core))
		return error_new(ERROR_USAGE, "--watch is for processes, not for recordings or cores");
	return r->nfiles || r->core || r->watch ? NULL : flame_select(&r->o);
}

static struct error *parse(struct report_request *r, int argc, char **argv)
{
	struct manual_getopt g;
	struct error *err = NULL;
	bool taken;
	int option;

	flame_defaults(&r->o);
	r->o.output = "-";
	r->o.run.sampler.duration_s = SECONDS;
	r->o.run.sampler.cpu_percent = 2;
	manual_getopt(&report_manual, &g);
	optind = 1;
	while (!err && (option = getopt_long(argc, argv, g.shorts + 1, g.longs, NULL)) != -1) {
		err = settings_apply(settings, option, optarg, r, &taken);
		if (!err && !taken)
			err = flame_option(option, &r->o);
	}
	r->files = argv + optind;
	r->nfiles = argc - optind;
	if (r->watch && !*r->watch)
		r->watch = NULL;
	return err || r->o.help ? err : check(r);
}

static void say_step(void *ctx, const char *step)
{
	cleanup(free) char *clean = clean_text(step);

	fprintf(stderr, "%syrt:%s %s\n", colour(stderr, COLOUR_FAINT), colour(stderr, COLOUR_NONE), clean ? clean : "");
}

/* *temporary: a folder that is to be deleted with its files. */
static struct error *make_folder(const struct report_request *r, char *ret, size_t size, bool *temporary)
{
	const char *tmp = getenv("TMPDIR");

	*temporary = !r->keep;
	snprintf(ret, size, "%s", r->keep ? r->keep : "");
	if (r->keep)
		return mkdir(r->keep, 0777) && errno != EEXIST
		               ? error_errno(errno, "cannot make the folder %s", r->keep)
		               : NULL;
	snprintf(ret, size, "%s/yrt-report-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	return mkdtemp(ret) ? NULL : error_errno(errno, "cannot make a folder %s", ret);
}

static void delete_folder(const char *folder)
{
	static const char *const events_taken[] = {"wall", "clock", "lock", "io", "net", "fault", "wait", "tlab",
	        "wakers", "leak", "alloc", "tasks", "again", "pools", "kept", "made", "kept-0", "kept-1", "kept-2"};
	char path[4096 + 64];

	for (size_t i = 0; i < sizeof(events_taken) / sizeof(*events_taken); i++) {
		snprintf(path, sizeof(path), "%s/%s.yrt", folder, events_taken[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/dump.json", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/heap.txt", folder);
	unlink(path);
	rmdir(folder);
}

static struct error *measure_now(struct report_request *r, const struct rules *rules, struct evidence *e)
{
	char folder[4096];
	bool temporary;
	struct measure m = {.run = &r->o.run,
	        .seconds = r->o.run.sampler.duration_s,
	        .folder = folder,
	        .say = r->o.quiet ? NULL : say_step,
	        .stop = &stop_sampling,
	        .rules = rules};
	struct error *err = run_add_children(&r->o.run);

	if (!err)
		err = make_folder(r, folder, sizeof(folder), &temporary);
	if (err)
		return err;
	r->o.run.sampler.selection = r->o.selection.nrules ? &r->o.selection : NULL;
	catch_signals();
	err = r->core ? measure_core(folder, r->core, e) : measure(&m, e);
	if (!err)
		evidence_conclude(e);
	stop_sampling = 0;
	if (!err && !temporary)
		err = evidence_write_counters(e, folder);
	if (temporary)
		delete_folder(folder);
	return err;
}

static struct error *read_all(const struct report_request *r, struct evidence *e)
{
	struct error *err = NULL;

	for (int i = 0; !err && i < r->nfiles; i++)
		err = evidence_read(e, r->files[i]);
	if (!err)
		evidence_conclude(e);
	return err;
}

static int code_of(const struct findings *f, const struct evidence *e)
{
	for (u32 i = 0; i < f->n; i++)
		if (f->all[i].severity == SEVERITY_PROBLEM)
			return PROBLEMS;
	return e->refused ? ERROR_PERMISSION : 0;
}

static struct error *write_all(const struct report_request *r, const struct findings *f, const struct evidence *e,
        const struct report_meta *meta)
{
	struct output out;
	struct error *err = output_open(output_expand(r->o.output, r->o.run.npids ? r->o.run.pids[0] : 0), &out);

	if (!err)
		err = output_error(&out, writer_of(&r->o)(f, e, meta, out.file));
	if (!err)
		err = output_close(&out, true);
	error_free(output_close(&out, false));
	return err;
}

static void list_rules(const struct rules *rules)
{
	for (u32 i = 0; i < rules->n; i++)
		printf("%-32s  %-8s %s\n", rules->all[i].name, report_severity(rules->all[i].severity),
		        rules->all[i].title);
}

static struct error *explain(const struct rules *rules, const char *name)
{
	const struct rule *r = rules_find(rules, name);

	if (!r)
		return error_hint(
		        error_new(ERROR_USAGE, "there is no rule \"%s\"", name), "`yrt report --list` lists them");
	printf("# %s\n%s\n", r->source, r->text);
	return NULL;
}

/* Two recordings of one event, or two folders, are before and after. */
static struct error *is_pair(const struct report_request *r, bool *ret)
{
	struct evidence e[2] = {0};
	struct error *err = NULL;

	*ret = false;
	for (int i = 0; !err && r->nfiles == 2 && i < 2; i++)
		err = evidence_read(&e[i], r->files[i]);
	for (u32 i = 0; !err && i < e[0].nviews; i++)
		*ret |= evidence_view(&e[1], e[0].view[i].name) != NULL;
	evidence_free(&e[0]);
	evidence_free(&e[1]);
	return err;
}

/* What the earlier of two says, and what has changed since. */
static struct error *compare_with(const char *path, const struct rules *rules, const struct evidence *after,
        struct findings *found, struct comparison *ret)
{
	struct evidence e = {0};
	struct findings f = {0};
	struct error *err = evidence_read(&e, path);

	if (!err) {
		evidence_conclude(&e);
		err = findings_make(rules, &e, &f);
	}
	if (!err)
		err = compare(&e, &f, after, found, ret);
	findings_free(&f);
	evidence_free(&e);
	return err;
}

static struct error *run(struct report_request *r, const struct rules *rules, const char *command, int *code)
{
	struct evidence e = {0};
	struct findings f = {0};
	struct comparison changes = {0};
	struct report_meta meta = {.command = command};
	const char *before = NULL;
	bool pair;
	struct error *err = is_pair(r, &pair);

	if (!err && pair) {
		before = r->files[0];
		r->files++;
		r->nfiles--;
	}
	if (!err)
		err = r->nfiles ? read_all(r, &e) : measure_now(r, rules, &e);
	if (!err)
		err = findings_make(rules, &e, &f);
	if (!err && before) {
		err = compare_with(before, rules, &e, &f, &changes);
		meta.changes = &changes;
	}
	if (!err)
		err = write_all(r, &f, &e, &meta);
	if (!err)
		*code = code_of(&f, &e);
	if (!err && !r->o.quiet && strcmp(r->o.output, "-") != 0)
		fprintf(stderr, "yrt: wrote %s: %s\n", r->o.output, f.verdict);
	comparison_free(&changes);
	findings_free(&f);
	evidence_free(&e);
	return err;
}

int report_main(const struct command_line *self, int argc, char **argv)
{
	cleanup(free) char *command = join_arguments(argc, argv);
	struct report_request r = {0};
	struct rules rules = {0};
	struct error *err = parse(&r, argc, argv);
	int code = 0;

	if (!err && !r.o.help)
		err = rules_builtin(&rules);
	if (!err && r.rules && !r.o.help)
		err = rules_load(&rules, r.rules);
	if (!err && r.o.help)
		manual_help(stdout, self);
	else if (!err && r.list)
		list_rules(&rules);
	else if (!err && r.explain)
		err = explain(&rules, r.explain);
	else if (!err && r.watch)
		err = report_watch(&r.o, r.watch, r.count, argc, argv, &code);
	else if (!err)
		err = run(&r, &rules, command, &code);
	rules_free(&rules);
	flame_free(&r.o);
	return err ? report_error(err) : code;
}
