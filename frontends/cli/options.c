/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of the flame commands. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "flame_rows.h"
#include "frontends/format/format.h"
#include "processes.h"
#include "probes/select_find.h"
#include "unwind/cfi/cfi.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

#define FREQUENCY_MAX 20000
#define DEPTH_MAX     8192
#define PIDS_MAX      1024

/* Of record, which takes any event. */
static const struct manual_option record_options[] = {
        TARGET_ROWS{FLAME_EVENT, "event", "NAME",
                "clock (time on the CPU, the default), fault (page faults), wait (time off the CPU), wall (both), io "
                "(file "
                "I/O)\n"
                "or net (sockets)",
                COMPLETE_NOTHING},
        RATE_ROWS OUTPUT_ROWS{0},
};

static const struct manual_option flame_options[] = {
        TARGET_ROWS RATE_ROWS OUTPUT_ROWS{
                FLAME_AS_ALWAYS, "native", NULL, "as in py-spy: native frames are always there", COMPLETE_NOTHING},
        {FLAME_AS_ALWAYS, "nonblocking", NULL, "as in py-spy: targets are never paused", COMPLETE_NOTHING},
        {'e', "event", "NAME", "as in asprof: cpu, the default; for others it names the command", COMPLETE_NOTHING},
        {0},
};

static const struct manual_option event_options[] = {
        TARGET_ROWS OUTPUT_ROWS{0},
};

#define IDLE_ROWS                                                                                                      \
	{FLAME_NO_IDLE, "no-idle", NULL,                                                                               \
	        "hide waits by design: event loops without events, pools without work (views of a language do)",       \
	        COMPLETE_NOTHING},                                                                                     \
	        {FLAME_IDLE, "idle", NULL, "show them", COMPLETE_NOTHING},

static const struct manual_option off_options[] = {
        TARGET_ROWS{FLAME_MIN, "min", "USECS", "only waits that last at least so long", COMPLETE_NOTHING},
        {FLAME_MAX, "max", "USECS", "only waits that last at most so long", COMPLETE_NOTHING},
        {FLAME_WAKERS, "wakers", NULL, "inside each wait the stack of who ended it, from its leaf to its root",
                COMPLETE_NOTHING},
        {FLAME_LOGICAL, "logical", NULL,
                "also what waits without a thread, by looking at it some times a second: goroutines, virtual threads, "
                "tasks of asyncio, coroutines of LuaJIT",
                COMPLETE_NOTHING},
        IDLE_ROWS OUTPUT_ROWS{0},
};

static const struct manual_option wall_options[] = {
        TARGET_ROWS RATE_ROWS IDLE_ROWS OUTPUT_ROWS{0},
};

const char *const flame_usage[] = {
        "-p PID[,PID...] [options]", "--select RULE | -a [options]", "[options] -- COMMAND [ARGS...]", NULL};

static const struct manual_example flame_examples[] = {
        {"yrt @ -p 4242 -d 10 -o flame.html", "ten seconds of a process as a page for a browser"},
        {"yrt @ -p 4242 -s -t -o flame.html", "with its children, a stack for each thread"},
        {"yrt @ -p 4242 -F 999 -f txt -o - | less", "as a tree in the terminal"},
        {"yrt @ --select exe=envoy -d 60", "all processes of a program, also those that start meanwhile"},
        {"yrt @ -a -d 10 -o machine.html", "the whole machine"},
        {"yrt @ -o flame.html -- ./program args", "a program from its start to its end"},
        {NULL, NULL},
};

static const struct manual_example record_examples[] = {
        {"yrt record -p 4242 -d 10 -o x.yrt", "ten seconds of a process"},
        {"yrt render x.yrt -o x.html", "and a page of them"},
        {NULL, NULL},
};

const struct manual record_manual = {
        .usage = flame_usage,
        .text = "A recording keeps all threads, the kernel, what every file was (build-ids), and what was lost. yrt "
                "render draws it in any\n"
                "format, on any machine; yrt diff compares two. They need neither root nor the programs that were "
                "recorded.",
        .options = record_options,
        .examples = record_examples,
};

const struct manual flame_manual = {
        .usage = flame_usage,
        .text = "Ctrl-C ends sampling early and keeps the whole result. The last line on stderr says what was seen and "
                "what was lost,\n"
                "by cause. -I and -X take POSIX extended regular expressions. Debug files that are not installed are "
                "fetched from the\n"
                "servers in DEBUGINFOD_URLS when sampling is over; Ctrl-C skips that. If a command behind -- fails, "
                "yrt prints its exit\n"
                "status; the exit code of yrt is about sampling alone. With several processes the graph has a level of "
                "processes: each\n"
                "apart if a program has up to 8, else one for each program; --processes changes that.",
        .options = flame_options,
        .examples = flame_examples,
};

static const struct manual_example event_examples[] = {
        {"yrt @ -p 4242 -d 10 -o event.html", "ten seconds of a process as a page for a browser"},
        {"yrt @ -p 4242 -s -t -f txt -o - | less",
                "with its children, a stack for each thread, as a tree in the terminal"},
        {"yrt @ -o event.html -- ./program args", "a program from its start to its end"},
        {NULL, NULL},
};

const struct manual event_manual = {
        .usage = flame_usage,
        .text = "Ctrl-C ends it early and keeps the whole result. The last line on stderr says what was seen and what "
                "was lost, by\n"
                "cause. -I and -X take POSIX extended regular expressions.",
        .options = event_options,
        .examples = event_examples,
};

static const struct manual_example off_examples[] = {
        {"yrt @ -p 4242 -d 10 -o off.html", "what a process waited for in ten seconds"},
        {"yrt @ -p 4242 -t -U -f txt -o - | less", "a tree for each thread, without the kernel"},
        {"yrt @ -p 4242 --min 10000 -o off.html", "only waits of 10 ms and more"},
        {"yrt @ -p 4242 --no-idle -o off.html", "without event loops and pools that have no work"},
        {"yrt @ -p 4242 --wakers -o off.html", "and who ended each wait"},
        {"yrt @ -p 4242 --no-idle --logical -o off.html", "and what coroutines, goroutines, tasks wait for"},
        {NULL, NULL},
};

const struct manual off_manual = {
        .usage = flame_usage,
        .text = "Each stack ends in what the thread waits for: [futex], [epoll], [sleep], [read of a socket], [page "
                "fault], [run queue]\n"
                "(it could run, but others had the CPU) and so on. Time is exact, summed over threads, including "
                "threads that sleep all\n"
                "the time; where threads wait so often that taking each stack would slow them down, waits shorter than "
                "50 ms are\n"
                "sampled at random and weighted. The last line on stderr says whether time on and off the CPU add up "
                "to the time that\n"
                "threads existed, what was truncated and what was lost. Views of a language hide waits by design "
                "(event loops without\n"
                "events, pools without work) and say how much that was: --idle shows them, --no-idle hides them in "
                "other commands, too.",
        .options = off_options,
        .examples = off_examples,
};

static const struct manual_example wall_examples[] = {
        {"yrt @ -p 4242 -d 10 -o wall.html", "where the time of all threads goes, on and off the CPU"},
        {"yrt @ -p 4242 --timeline -o wall.html", "and when: a strip a thread"},
        {"yrt @ -p 4242 --no-idle -t -U -f txt -o - | less", "a tree for each thread, without its idle time"},
        {NULL, NULL},
};

const struct manual wall_manual = {
        .usage = flame_usage,
        .text = "Each stack ends in the state of its thread: [running], [run queue] (it could run, but others had the "
                "CPU), or what it\n"
                "waits for, as in off-flame. Time off the CPU is exact; time on the CPU is sampled (--freq). The last "
                "line on stderr\n"
                "says whether both add up to the time that threads existed. Views of a language hide waits by design: "
                "--idle shows\n"
                "them, --no-idle hides them in other commands, too. With --timeline the page has a strip for each "
                "thread.",
        .options = wall_options,
        .examples = wall_examples,
};

static const struct manual_option probe_options[] = {
        {'e', "event", "WHAT",
                "FILE:FUNCTION, FUNCTION, FILE+0xADDRESS, PROVIDER:PROBE (USDT) or CATEGORY:TRACEPOINT; up to 16",
                COMPLETE_NOTHING},
        TARGET_ROWS OUTPUT_ROWS{0},
};

static const char *const probe_usage[] = {
        "-e WHAT [-e WHAT...] -p PID[,PID...] [options]", "-e WHAT [options] -- COMMAND [ARGS...]", NULL};

static const struct manual_example probe_examples[] = {
        {"yrt @ -e libc:malloc -p 4242 -d 10 -o malloc.html", "who calls malloc()"},
        {"yrt @ -e nginx:ngx_http_finalize_request -p 4242", "a function of the program; a tracepoint:"},
        {"yrt @ -e sched:sched_process_exec -s -p 4242", "who starts programs"},
        {"yrt @ -e python:gc__start -p 4242", "a USDT probe, by its provider and name"},
        {"yrt @ -e nginx+0x51340 -p 4242", "code without a symbol, as stacks show it"},
        {NULL, NULL},
};

const struct manual probe_manual = {
        .usage = probe_usage,
        .text = "Each hit counts one for its stack: user, language and kernel frames. FILE is a program or library "
                "that is mapped, by the\n"
                "beginning of its name (libc: libc.so.6) or the end of its path; C++ functions go by their names "
                "without arguments. Of\n"
                "what a JIT or an interpreter runs there is no function to probe. uprobe:, usdt: and tracepoint: "
                "before WHAT decide\n"
                "where it could be either. A hit costs the target 1 to 3 us; past --max-cpu every second one has "
                "no stack and the\n"
                "others count twice, and so on: the last line says so. Ctrl-C ends it early and keeps the result.",
        .options = probe_options,
        .examples = probe_examples,
};

static const struct manual_option latency_options[] = {
        {'e', "event", "FUNCTION", "FILE:FUNCTION, FUNCTION or FILE+0xADDRESS", COMPLETE_NOTHING},
        {FLAME_OVER, "over", "TIME", "stacks only of calls that take at least so long: 100ms, 5us (all)",
                COMPLETE_NOTHING},
        TARGET_ROWS OUTPUT_ROWS{0},
};

static const char *const latency_usage[] = {
        "-e FUNCTION [--over TIME] -p PID [options]", "-e FUNCTION [options] -- COMMAND [ARGS...]", NULL};

static const struct manual_example latency_examples[] = {
        {"yrt @ -e libc:fsync -p 4242 -d 10", "how long each fsync() took"},
        {"yrt @ -e nginx:ngx_http_process_request --over 100ms -p 4242 -o slow.html", "the stacks of slow ones"},
        {NULL, NULL},
};

const struct manual latency_manual = {
        .usage = latency_usage,
        .text = "The histogram comes on stderr, in the page, and with --stats as JSON; stacks count the time of slow "
                "calls. "
                "Each call costs the target\n"
                "two hits, 1 to 3 us each. Where a function returns is found in its code: one that jumps through a "
                "table or a register\n"
                "is refused. Ctrl-C ends it early and keeps the result.",
        .options = latency_options,
        .examples = latency_examples,
};

bool flame_add_pid(struct flame_options *o, int pid)
{
	for (int i = 0; i < o->npids; i++)
		if (o->pids[i] == pid)
			return true;
	if (grow(&o->pids, o->npids, sizeof(*o->pids)))
		return false;
	o->pids[o->npids++] = pid;
	return true;
}

/* "42", or the name of one process. */
static struct error *find_pid(const char *word, int *ret)
{
	char *end;
	long pid = strtol(word, &end, 10);

	if (*word && *end && !strchr("-+", *word))
		return find_by_name(word, "/proc", ret);
	if (!*word || *end || pid <= 0 || pid > 1 << 30)
		return error_new(ERROR_USAGE, "--pid takes pids or names separated by commas, not \"%s\"", word);
	*ret = (int)pid;
	return NULL;
}

struct error *flame_add_pids(struct flame_options *o, const char *list)
{
	int pid;

	while (*list) {
		size_t n = strcspn(list, ",");
		cleanup(free) char *word = strndup(list, n);
		struct error *err = word ? find_pid(word, &pid) : &error_no_memory;

		if (err)
			return err;
		if (o->npids == PIDS_MAX)
			return error_new(ERROR_USAGE, "--pid takes %d pids at most; --select takes rules", PIDS_MAX);
		if (!flame_add_pid(o, pid))
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
        NUMBER('d', sampler.duration_s, "--duration", 0, 1e7),
        NUMBER('F', sampler.frequency, "--freq", 0.1, FREQUENCY_MAX),
        NUMBER('r', sampler.frequency, "--freq", 0.1, FREQUENCY_MAX),
        NUMBER(FLAME_CPU, sampler.cpu_percent, "--max-cpu", 0, 1e6),
        NUMBER(FLAME_DEPTH, sampler.depth, "--depth", 1, DEPTH_MAX),
        NUMBER(FLAME_MIN, min_us, "--min", 0, 1e12),
        NUMBER(FLAME_MAX, max_us, "--max", 0.001, 1e12),
        TEXT(FLAME_EVENT, event),
        TEXT(FLAME_OVER, over),
        TEXT('o', output),
        TEXT('f', format),
        TEXT('I', sampler.collect.include),
        TEXT('X', sampler.collect.exclude),
        TEXT(FLAME_STATS, stats_file),
        TEXT(FLAME_NO_CACHE, sampler.cache_dir),
        ON('t', sampler.collect.threads),
        BITS('t', sampler.features, FEATURE_TASKS),
        BITS(FLAME_CREATORS, sampler.features, FEATURE_CREATORS),
        BITS(FLAME_LABELS, sampler.features, FEATURE_LABELS),
        ON(FLAME_TIMELINE, sampler.collect.times),
        ON('s', sampler.follow),
        ON('U', sampler.no_kernel),
        ON('U', sampler.collect.no_kernel),
        ON('K', sampler.no_user),
        ON('q', quiet),
        ON('h', help),
        ON('a', sampler.everyone),
        ON(FLAME_WAIT, awaits),
        ON('g', sampler.collect.lock_only),
        ON(FLAME_ASYNC, async),
        OFF(FLAME_ASYNC, no_async),
        ON(FLAME_NO_ASYNC, no_async),
        OFF(FLAME_NO_ASYNC, async),
        ON(FLAME_WAKERS, wait.wakers),
        ON(FLAME_LOGICAL, wait.tasks),
        ON(FLAME_BYTES, second),
        OFF(FLAME_BYTES, io.calls),
        OFF(FLAME_LATENCY, second),
        OFF(FLAME_LATENCY, io.calls),
        ON(FLAME_CALLS, second),
        ON(FLAME_CALLS, io.calls),
        ON(FLAME_FILES, io.objects),
        ON(FLAME_PEERS, io.objects),
        OFF(FLAME_NO_PEERS, io.objects),
        ON(FLAME_HOLDERS, wait.wakers),
        ON(FLAME_ALL_WAITS, sampler.collect.all_waits),
        ON(FLAME_NO_IDLE, sampler.no_idle),
        OFF(FLAME_NO_IDLE, idle),
        ON(FLAME_IDLE, idle),
        OFF(FLAME_IDLE, sampler.no_idle),
        ON(FLAME_LINES, sampler.collect.names.lines),
        ON(FLAME_ADDRESSES, sampler.collect.names.addresses),
        ON(FLAME_SIGNATURES, sampler.collect.names.signatures),
        ON(FLAME_NO_DEMANGLE, sampler.collect.names.mangled),
        OFF(FLAME_NO_INLINE, sampler.collect.names.inlines),
        ON(FLAME_ANNOTATE, annotate),
        ON(FLAME_SOURCE, source),
        BITS(FLAME_TRACES, sampler.collect.names.expand, EXPAND_TRACES),
        BITS(FLAME_NO_JIT_INLINE, sampler.collect.names.expand, EXPAND_MERGE),
        BITS(FLAME_CARRIERS, sampler.collect.names.expand, EXPAND_CARRIERS),
        {0},
};

/* -e of async-profiler and perf: only what these commands sample anyway. */
static struct error *parse_event(const char *name)
{
	static const char *const same[] = {"cpu", "cpu-clock", "itimer", "ctimer"};

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		if (!strcmp(name, same[i]))
			return NULL;
	return error_hint(error_new(ERROR_USAGE, "flame samples CPU time (-e cpu), not \"%s\"", name),
	        !strcmp(name, "alloc") ? "`yrt java-alloc` shows where memory is allocated"
	                               : "`yrt wall-flame` shows time on and off the CPU, `yrt off-flame` where "
	                                 "threads wait, `yrt dump` "
	                                 "the stacks of all of them once");
}

struct error *flame_option(int option, struct flame_options *o)
{
	struct error *err;
	bool taken;

	if (option == 'p')
		return flame_add_pids(o, optarg);
	if (option == FLAME_AS_ALWAYS)
		return NULL;
	if (option == 'e')
		return o->sampler.event == &hit_event || o->sampler.event == &latency_event ? hit_add(&o->hit, optarg)
		                                                                            : parse_event(optarg);
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
	return error_hint(error_new(ERROR_USAGE, "see the line above"), "--help lists all options");
}

/* "100ms", "5us", "2s". */
static bool parse_time(const char *text, u64 *ret)
{
	static const struct {
		const char *word;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (end != text && value >= 0 && value < 1e9 && !strcmp(end, units[i].word)) {
			*ret = (u64)(value * units[i].ns);
			return true;
		}
	return false;
}

static struct error *set_latency(struct flame_options *o)
{
	if (o->hit.n != 1 || o->hit.spec[0].kind == HIT_TRACEPOINT || o->hit.spec[0].kind == HIT_USDT)
		return error_hint(
		        error_new(ERROR_USAGE, "latency takes one function"), "yrt latency -e libc:malloc -p PID");
	if (o->over && !parse_time(o->over, &o->hit.over_ns))
		return error_new(ERROR_USAGE, "--over takes a time such as 100ms, 5us or 2s, not \"%s\"", o->over);
	o->hit.spec[0].kind = HIT_FUNCTION;
	o->hit.returns = true;
	return NULL;
}

struct error *flame_set_event(struct flame_options *o)
{
	const struct event_ops *event = o->event ? event_find(o->event) : o->sampler.event;

	if (!event || (o->event && !event->command))
		return error_hint(error_new(ERROR_USAGE, "there is no event \"%s\"", o->event),
		        "clock, fault, wait, wall, io and net are events");
	if (o->sampler.collect.times && !event->timed)
		return error_hint(
		        error_new(ERROR_USAGE, "--timeline goes with time on the CPU and wall-clock time only"),
		        "`yrt wall-flame --timeline` shows when threads wait");
	if (event == &latency_event && !o->help) {
		struct error *err = set_latency(o);

		if (err)
			return err;
	}
	if (event == &hit_event && !o->hit.n && !o->help)
		return error_hint(error_new(ERROR_USAGE, "no probe was given"),
		        "yrt probe -e libc:malloc -p PID; -o x.yrt makes a recording");
	o->sampler.event = event;
	o->io.objects |= o->event && (event == &io_event || event == &net_event); /* a recording keeps all */
	if (o->max_us && o->max_us < o->min_us)
		return error_new(ERROR_USAGE, "no wait is at least %g and at most %g us", o->min_us, o->max_us);
	o->wait.min_ns = (u64)(o->min_us * 1e3);
	o->wait.max_ns = (u64)(o->max_us * 1e3);
	return NULL;
}

struct error *flame_select(struct flame_options *o)
{
	cleanup(free) pid_t *pids = NULL;
	struct error *err;
	u32 n = 0;

	if (!o->selection.nrules)
		return NULL;
	err = selection_find(&o->selection, "/proc", &pids, &n);
	if (!err && !n)
		return o->awaits ? selection_hidden(&o->selection, "/proc") : selection_missed(&o->selection, "/proc");
	for (u32 i = 0; !err && i < n; i++)
		err = flame_add_pid(o, pids[i]) ? NULL : &error_no_memory;
	return err;
}

void flame_free(struct flame_options *o)
{
	free(o->pids);
	selection_free(&o->selection);
	free(o->send.labels);
}

struct error *flame_check_targets(struct flame_options *o)
{
	bool chosen = o->npids || o->selection.nrules;

	if (o->sampler.no_user && o->sampler.no_kernel)
		return error_new(ERROR_USAGE, "-U and -K together leave nothing to show");
	if (!chosen && !o->command && !o->sampler.everyone)
		return error_hint(error_new(ERROR_USAGE, "no process was given"),
		        "give -p PID, --select exe=NAME, -a for all, or a command behind --; --help lists all options");
	if (chosen + !!o->command + o->sampler.everyone > 1)
		return error_new(ERROR_USAGE, "%s and %s exclude each other", chosen ? "-p or --select" : "-a",
		        o->command ? "a command behind --" : "-a");
	if (o->sampler.everyone && o->sampler.event != events[0])
		return error_hint(error_new(ERROR_USAGE, "-a goes with time on the CPU only"), "give -p or --select");
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
		        "leave -o out, or give -o NAME.yrt: it stays there; `yrt render` draws it");
	if (!err)
		err = send_check(&o->send);
	if (!err && !format_find(o->format, o->output))
		err = error_hint(error_new(ERROR_USAGE, "no output format for %s", o->format ? o->format : o->output),
		        "--help lists the formats and their extensions");
	return err;
}

void flame_defaults(struct flame_options *ret)
{
	*ret = (struct flame_options){.sampler = {.event = events[0],
	                                      .frequency = 99,
	                                      .duration_s = -1,
	                                      .depth = 1024,
	                                      .cpu_percent = 10,
	                                      .cache_dir = cfi_default_cache()},
	        .send = SEND_DEFAULTS};
}

struct error *flame_operands(int argc, char **argv, struct flame_options *o)
{
	if (optind >= argc)
		return NULL;
	if (strcmp(argv[optind - 1], "--") != 0)
		return error_hint(
		        error_new(ERROR_USAGE, "what is \"%s\"?", argv[optind]), "a command to run goes behind --");
	o->command = argv + optind;
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
		o.sampler.event = self->event;
	o.sampler.collect.names.inlines = true;
	o.second = o.io.objects = o.sampler.event == &net_event;
	optind = 1;
	snprintf(name, sizeof(name), "%s.%s", argv[0], strcmp(argv[0], "record") ? "html" : "yrt");
	o.output = name;
	manual_getopt(self->manual, &g);
	while (!err && (option = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1)
		err = flame_option(option, &o);
	if (!err)
		err = flame_operands(argc, argv, &o);
	if (o.sampler.duration_s < 0)
		o.sampler.duration_s = o.command ? 0 : 30;
	if (!err)
		err = flame_set_event(&o);
	if (!err && !o.help)
		err = flame_check(&o);
	if (err) {
		flame_free(&o);
		return err;
	}
	*ret = o;
	return NULL;
}
