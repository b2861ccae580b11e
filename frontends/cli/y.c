/* SPDX-License-Identifier: Apache-2.0 */
/* y: runs a program of the Y language on a process or a core file. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <types.h>
#include <unistd.h>

#include "cli.h"
#include "frontends/format/format.h"
#include "frontends/format/text.h"
#include "frontends/ylang/compile.h"
#include "frontends/ylang/emit/d.h"
#include "frontends/ylang/emit/emit.h"
#include "frontends/ylang/emit/stap.h"
#include "frontends/ylang/library.h"
#include "frontends/ylang/run/probes.h"
#include "frontends/ylang/vm.h"
#include "output.h"
#include "say.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/process/children.h"
#include "unwind/process/comm.h"
#include "unwind/profile/profile.h"

/* A Y program on several processes at once: each has its own run, as its types and addresses are its own. */

#define Y_SEVERAL_MOST 64u

#define HELD_NS   1000000000ull /* how long a text waits for the processes before */
#define HELD_MOST (4u << 20)
#define LOOK_MS   100
#define READ_ROOM 65536u

struct part {
	pid_t pid, child;
	char name[COMM_TEXT];
	int out; /* a pipe of what it prints; -1: it has ended */
	char *text;
	size_t len; /* of the text that is not shown yet */
	u64 since;  /* when it began to come */
	bool shown;
	int code;
};

static void start(struct part *p, int (*run)(void *ctx, pid_t pid), void *ctx)
{
	pid_t parent = getpid();
	int ends[2] = {-1, -1};

	comm_read(p->pid, p->name);
	p->child = pipe2(ends, O_CLOEXEC) ? -1 : fork();
	p->out = ends[0];
	if (p->child) {
		if (ends[1] >= 0)
			close(ends[1]);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || dup2(ends[1], STDOUT_FILENO) < 0)
		_exit(ERROR_INTERNAL);
	close(ends[0]);
	setvbuf(stderr, NULL, _IOLBF, 0); /* lines of several processes side by side */
	p->code = run(ctx, p->pid);
	fflush(NULL);
	_exit(p->code);
}

static void stop_all(const struct part *parts, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (parts[i].child > 0 && parts[i].out >= 0)
			kill(parts[i].child, SIGINT);
}

static void end(struct part *p)
{
	int status = 0;

	p->code = ERROR_INTERNAL;
	if (p->out >= 0)
		close(p->out);
	p->out = -1;
	if (p->child < 0)
		return;
	while (waitpid(p->child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status))
		p->code = WEXITSTATUS(status);
}

static void gather(struct part *p)
{
	char *more = realloc(p->text, p->len + READ_ROOM);
	ssize_t n = -1;

	if (more) {
		p->text = more;
		n = read(p->out, p->text + p->len, READ_ROOM);
	}
	if (n > 0 && !p->len)
		p->since = now_ns();
	if (n > 0)
		p->len += (size_t)n;
	else if (!more || n == 0 || errno != EINTR)
		end(p);
}

static void head(const struct part *p, bool json)
{
	cleanup(free) char *clean = clean_text(p->name);

	if (!json) {
		printf("==> %s (pid %d) <==\n", clean ? clean : "", (int)p->pid);
		return;
	}
	printf("{\"kind\": \"process\", \"pid\": %d, \"name\": ", (int)p->pid);
	text_json(stdout, p->name);
	puts("}");
}

/* Its whole lines, behind its name where another one spoke before. */
static void show(struct part *p, const struct part **speaker, bool json)
{
	const char *line = p->len ? memrchr(p->text, '\n', p->len) : NULL;
	size_t n = p->out < 0 || p->len > HELD_MOST ? p->len : line ? (size_t)(line + 1 - p->text) : 0;

	if (!n && (p->out >= 0 || p->shown))
		return;
	if (*speaker != p)
		head(p, json);
	*speaker = p;
	p->shown = true;
	fwrite(p->text ? p->text : "", 1, n, stdout);
	fflush(stdout);
	p->len -= n;
	if (p->len)
		memmove(p->text, p->text + n, p->len);
}

/* In the order of the processes, but what goes on for longer as it comes. */
static void show_all(struct part *parts, u32 n, const struct part **speaker, bool json)
{
	bool before = false;
	u64 now = now_ns();

	for (u32 i = 0; i < n; i++) {
		if (!before || (parts[i].len && now - parts[i].since > HELD_NS) || parts[i].len > HELD_MOST)
			show(&parts[i], speaker, json);
		before |= parts[i].out >= 0;
	}
}

static bool look(struct part *parts, u32 n)
{
	struct pollfd polled[Y_SEVERAL_MOST];
	bool any = false;

	for (u32 i = 0; i < n; i++) {
		polled[i] = (struct pollfd){.fd = parts[i].out, .events = POLLIN};
		any |= parts[i].out >= 0;
	}
	if (!any || poll(polled, n, LOOK_MS) <= 0)
		return any;
	for (u32 i = 0; i < n; i++)
		if (parts[i].out >= 0 && polled[i].revents)
			gather(&parts[i]);
	return true;
}

/*
 * Calls run() once for each process, all at the same time, each in a child of this process; prints what each wrote to
 * stdout, behind its name (json: an object of kind "process"): in the order of pids, but what has waited for a second
 * at once, in whole lines. Returns the first exit code that is not 0. SIGINT and SIGTERM end all runs.
 */
static int y_several(const pid_t *pids, u32 n, bool json, int (*run)(void *ctx, pid_t pid), void *ctx)
{
	cleanup(free) struct part *parts = calloc(n, sizeof(*parts));
	const struct part *speaker = NULL;
	bool told = false;
	int code = ERROR_NO_PROCESS; /* if none of them could be looked at */

	if (!parts)
		return report_error(&error_no_memory);
	catch_signals();
	fflush(NULL);
	for (u32 i = 0; i < n; i++) {
		parts[i].pid = pids[i];
		start(&parts[i], run, ctx);
		if (parts[i].child < 0)
			end(&parts[i]);
	}
	while (look(parts, n)) {
		if (stop_sampling && !told)
			stop_all(parts, n);
		told = stop_sampling;
		show_all(parts, n, &speaker, json);
	}
	show_all(parts, n, &speaker, json);
	for (u32 i = 0; i < n; i++) {
		free(parts[i].text);
		if ((!code || code == ERROR_NO_PROCESS) && parts[i].code != ERROR_NO_PROCESS)
			code = parts[i].code;
	}
	return code;
}

#define SOURCE_MOST (16u << 20)

enum {
	Y_CORE = 512,
	Y_ROOT,
	Y_TYPES,
	Y_CHECK,
	Y_EXPLAIN,
	Y_EMIT,
	Y_LIST,
	Y_MAX_TIME,
	Y_MAX_STEPS,
	Y_MAX_HIT,
	Y_FORMAT,
	Y_JSON
};

static const struct manual_option options[] = {
        {'e', "execute", "SOURCE", "a program in place of FILE", COMPLETE_NOTHING},
        PID_OPTIONS,
        {'s', "subprocesses", NULL, "also their children", COMPLETE_NOTHING},
        {'a', "all", NULL, "the whole machine but yrt: of programs that probe system calls, tracepoints and the clock",
                COMPLETE_NOTHING},
        {Y_CORE, "core", "FILE", "a core file in place of a process; needs no privileges", COMPLETE_FILE},
        {Y_ROOT, "root", "DIR", "where the files are that the process of the core had mapped, if not here",
                COMPLETE_FILE},
        {Y_TYPES, "types", "FILE",
                "an ELF file with the debug information of the same build as one of the target's files: types come "
                "from there",
                COMPLETE_FILE},
        {'D', "define", "NAME[=VALUE]", "defines a macro", COMPLETE_NOTHING},
        {'I', "include", "DIR", "a directory for #include, besides that of the file", COMPLETE_FILE},
        {'d', "duration", "SECS", "how long _timer handlers run; without it until Ctrl-C", COMPLETE_NOTHING},
        {Y_CHECK, "check", NULL, "compile only, and say which engines take the program", COMPLETE_NOTHING},
        {Y_EXPLAIN, "explain", NULL, "where each type, offset and address came from", COMPLETE_NOTHING},
        {Y_EMIT, "emit", "NAME",
                "print the program for another engine instead of running it: tokens, ir; bpf: what its probes are in "
                "the kernel; gdb or lldb: a script of the debugger; stap: of SystemTap; d: of DTrace",
                COMPLETE_NOTHING},
        {Y_LIST, "list", NULL, "the analysers that come with yrt", COMPLETE_NOTHING},
        {Y_MAX_TIME, "max-time", "SECS", "how long a handler may run (60)", COMPLETE_NOTHING},
        {Y_MAX_STEPS, "max-steps", "N", "rounds of loops and calls that a handler may take (100000000)",
                COMPLETE_NOTHING},
        {Y_MAX_HIT, "max-hit", "MS", "how long loops of a probe may hold the target's thread at a hit (1)",
                COMPLETE_NOTHING},
        {'o', "output", "FILE",
                "also write the map or aggregate that is by stack, as a profile; by the name's end a page (.html), a "
                "recording (.yrt), folded stacks … (see `yrt flame --help`)",
                COMPLETE_FILE},
        {Y_FORMAT, "format", "NAME", "the format of -o, if the name does not say it", COMPLETE_NOTHING},
        {Y_JSON, "json", NULL,
                "what the program prints as JSON, an object a line: {\"kind\": \"text\", \"table\" or \"histogram\", "
                "…}",
                COMPLETE_NOTHING},
        {'q', "quiet", NULL, "no last line, no notes", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {
        "FILE.y|NAME -p LIST [options]", "-e SOURCE --core FILE [options]", "-e SOURCE -a [options]", "--list", NULL};

static const struct manual_example examples[] = {
        {"yrt y ngx-requests -p 4242", "the requests that an nginx worker has now, an analyser that comes with yrt"},
        {"yrt y ngx-requests --core core.4242", "the same of a core file"},
        {"yrt y -e '_probe _oneshot { printf(\"%d\\n\", counter); }' -p 4242", "a global variable of the process"},
        {"yrt y ngx-status -s -p 4240 -d 10", "of an nginx and its workers: each process by itself"},
        {"yrt y -a -d 10 -e '_map long n[_str]; _probe syscall:openat { n[_comm]++; }'",
                "who opens files, on the whole machine"},
        {"yrt y --list", "all analysers"},
        {NULL, NULL},
};

const struct manual y_manual = {
        .usage = usage,
        .text = "Runs a program in Y: C's expressions and control flow over the types and variables of the process, "
                "which come from its debug information. It walks lists and trees, counts and prints. A program only "
                "reads the target, and does not stop it. A read that fails is an error with its address, never 0.\n"
                "docs/y.md is a tour of the language and its reference.",
        .options = options,
        .examples = examples,
        .operands = COMPLETE_FILE,
};

struct request {
	struct flame_options targets; /* of it only pids, the selection and help are used */
	const char *operand;          /* the program's file or name */
	const char *execute, *emit, *output, *format;
	struct y_target_options target;
	const char **defines, **includes;
	u32 ndefines, nincludes;
	bool check, explain, list, quiet, json;
	double duration_s, max_time_s, max_steps, max_hit_ms;
};

#define MEMBER(m) SETTING_OF(struct request, m)
static const struct setting settings[] = {
        {'e', MEMBER(execute)},
        {Y_CORE, MEMBER(target.core)},
        {Y_ROOT, MEMBER(target.root)},
        {Y_TYPES, MEMBER(target.types)},
        {Y_EMIT, MEMBER(emit)},
        {Y_CHECK, MEMBER(check), .on = true},
        {Y_EXPLAIN, MEMBER(explain), .on = true},
        {Y_LIST, MEMBER(list), .on = true},
        {'q', MEMBER(quiet), .on = true},
        {'a', MEMBER(target.machine), .on = true},
        {'s', MEMBER(targets.run.sampler.follow), .on = true},
        {Y_JSON, MEMBER(json), .on = true},
        {'o', MEMBER(output)},
        {Y_FORMAT, MEMBER(format)},
        {'d', MEMBER(duration_s), .name = "--duration", .min = 0.001, .max = 1e9, .seconds = true},
        {Y_MAX_TIME, MEMBER(max_time_s), .name = "--max-time", .min = 0.001, .max = 86400, .seconds = true},
        {Y_MAX_HIT, MEMBER(max_hit_ms), .name = "--max-hit", .min = 0.001, .max = 1000},
        {Y_MAX_STEPS, MEMBER(max_steps), .name = "--max-steps", .min = 1, .max = 1e15},
        {0},
};

/* --- options --- */

static struct error *add_text(const char ***list, u32 *n, const char *text)
{
	struct error *err = grow(list, *n, sizeof(**list));

	if (!err)
		(*list)[(*n)++] = text;
	return err;
}

static struct error *parse_option(struct request *r, int option)
{
	bool taken;
	struct error *err = settings_apply(settings, option, optarg, r, &taken);

	if (err || taken)
		return err;
	switch (option) {
	case 'D':
		return add_text(&r->defines, &r->ndefines, optarg);
	case 'I':
		return add_text(&r->includes, &r->nincludes, optarg);
	case 'p':
		return flame_add_pids(&r->targets, optarg);
	case FLAME_SELECT:
		return selection_add(&r->targets.selection, optarg);
	case 'h':
		r->targets.help = true;
		return NULL;
	default:
		return manual_bad_option();
	}
}

/* The processes of -p, --select and -s. */
static struct error *find_targets(struct request *r)
{
	struct error *err = flame_select(&r->targets);

	if (!err)
		err = run_add_children(&r->targets.run);
	if (err || r->targets.run.npids <= 1)
		return err;
	if (r->check || r->emit || r->output)
		return error_hint(error_new(ERROR_USAGE, "%s takes one process, and there are %d",
		                          r->check  ? "--check"
		                          : r->emit ? "--emit"
		                                    : "-o",
		                          r->targets.run.npids),
		        "-p %d takes the first", (int)r->targets.run.pids[0]);
	if ((u32)r->targets.run.npids > Y_SEVERAL_MOST)
		return error_new(
		        ERROR_USAGE, "%d processes; %u at most at a time", r->targets.run.npids, Y_SEVERAL_MOST);
	return NULL;
}

static struct error *check_request(struct request *r, int operands)
{
	struct error *err = r->list ? NULL : find_targets(r);
	bool target = r->targets.run.npids || r->target.core || r->target.machine;

	if (err)
		return err;
	if (r->list)
		return operands ? error_new(ERROR_USAGE, "--list takes no FILE") : NULL;
	if (operands > 1 || (operands == 1) == (r->execute != NULL))
		return error_hint(
		        error_new(ERROR_USAGE, "one program is needed: FILE.y, the NAME of an analyser, or -e SOURCE"),
		        "yrt y --list lists the analysers");
	if (r->targets.run.npids && r->target.core)
		return error_new(ERROR_USAGE, "--core and -p exclude each other");
	if (r->target.machine && (r->targets.run.npids || r->target.core || r->target.types))
		return error_new(ERROR_USAGE, "-a is all processes: it excludes -p, --select, --core and --types");
	if (r->target.root && !r->target.core)
		return error_new(ERROR_USAGE, "--root takes --core");
	r->target.only_types = !target && r->target.types && (r->check || r->emit);
	if (!target && !r->target.only_types)
		return error_hint(
		        error_new(ERROR_USAGE, "a target is needed: -p PID, --select RULE, -a or --core FILE"),
		        "--check and --emit also take the types of a file: --types FILE");
	r->target.pid = r->targets.run.npids ? r->targets.run.pids[0] : 0;
	return NULL;
}

/* Options may stand behind FILE, as users of -e expect. */
static struct error *parse(struct request *r, int argc, char **argv, const char **operand)
{
	struct manual_getopt g;
	struct error *err = NULL;
	int option, operands = 0;

	flame_defaults(&r->targets);
	manual_getopt(&y_manual, &g);
	optind = 1;
	while (!err && optind < argc) {
		option = getopt_long(argc, argv, g.shorts, g.longs, NULL);
		if (option != -1) {
			err = parse_option(r, option);
		} else if (optind < argc) {
			*operand = argv[optind++];
			operands++;
		}
	}
	if (!err)
		err = add_text(&r->defines, &r->ndefines, NULL);
	if (!err)
		err = add_text(&r->includes, &r->nincludes, NULL);
	return err || r->targets.help ? err : check_request(r, operands);
}

/* --- the program --- */

static const struct y_library_entry *find_analyser(const char *name)
{
	for (const struct y_library_entry *e = y_library; e->name; e++)
		if (!strcmp(e->name, name))
			return e;
	return NULL;
}

static struct error *no_file(const char *name, int errnum)
{
	struct error *err = error_new(ERROR_INPUT, "%s: %s", name, strerror(errnum));

	if (strchr(name, '/') || strstr(name, ".y"))
		return err;
	return error_hint(err, "nor is it an analyser that comes with yrt: yrt y --list lists them");
}

static struct error *read_source(const char *name, char **text, size_t *size)
{
	cleanup(fclose) FILE *file = fopen(name, "re");

	if (!file)
		return no_file(name, errno);
	*text = malloc(SOURCE_MOST + 1);
	if (!*text)
		return &error_no_memory;
	*size = fread(*text, 1, SOURCE_MOST + 1, file);
	if (ferror(file))
		return no_file(name, errno);
	if (*size > SOURCE_MOST)
		return error_new(ERROR_USAGE, "%s: a program has at most 16 MiB", name);
	return NULL;
}

/* *text is malloc'd. */
static struct error *load_source(
        const struct request *r, const char *operand, const char **name, char **text, size_t *size)
{
	const struct y_library_entry *e = operand ? find_analyser(operand) : NULL;
	static char file[64];

	*name = e ? e->name : operand ? operand : "-e";
	if (!e && operand)
		return read_source(operand, text, size);
	*text = strdup(e ? e->text : r->execute);
	*size = *text ? strlen(*text) : 0;
	if (e) {
		snprintf(file, sizeof(file), "%s.y", e->name);
		*name = file;
	}
	return *text ? NULL : &error_no_memory;
}

static int list_analysers(void)
{
	for (const struct y_library_entry *e = y_library; e->name; e++) {
		const char *line = strchr(e->text, '\n');
		size_t len;

		line = line ? line + 1 + strspn(line + 1, "/* ") : "";
		for (len = strcspn(line, "\n"); len && strchr("/* ", line[len - 1]); len--)
			;
		printf("%-16s %.*s\n", e->name, (int)len, line);
	}
	return 0;
}

/* --- running it --- */

static void say_failures(const struct y_program *p, const struct y_run_stats *s)
{
	for (u32 i = 0; i < s->nfailures; i++) {
		const struct y_failure *f = &s->failures[i];
		const struct y_place *place = &p->places[f->place];

		fprintf(stderr, "%s:%u:%u: error: %s", place->file, place->line, place->column,
		        y_status_name(f->status));
		if (f->at)
			fprintf(stderr, " at 0x%lx", f->at);
		fprintf(stderr, "; it ended the handler%s", f->count > 1 ? "" : "\n");
		if (f->count > 1)
			fprintf(stderr, " %lu times\n", f->count);
	}
}

/* of: the process, where there are several. */
static void say_last_line(const struct y_run_stats *s, const struct y_target *of)
{
	cleanup(free) char *name = of ? clean_text(of->comm) : NULL;

	if (name)
		fprintf(stderr, "yrt: %s (pid %d): ", name, (int)of->pid);
	else
		fputs("yrt: ", stderr);
	fprintf(stderr, "%lu handler%s, %lu ended by an error; %lu page%s read", s->handlers,
	        s->handlers == 1 ? "" : "s", s->failed, s->pages, s->pages == 1 ? "" : "s");
	if (s->pages_changed)
		fprintf(stderr, ", %lu changed meanwhile", s->pages_changed);
	if (s->lost)
		fprintf(stderr, "; %lu updates of full maps lost", s->lost);
	if (s->lost_records)
		fprintf(stderr, "; output of %lu handlers lost", s->lost_records);
	if (s->missed)
		fprintf(stderr, "; %lu hits kept from handlers by the kernel, as another BPF program ran there",
		        s->missed);
	if (s->not_ended)
		fprintf(stderr, "; %u handlers had not ended", s->not_ended);
	if (s->not_run)
		fprintf(stderr, "; %lu hits not handled, as too many threads were in handlers", s->not_run);
	fprintf(stderr, "; %.1f ms of CPU time\n", (double)s->cpu_ns / 1e6);
}

/* A program without a hit prints nothing, or zeros. Often its function runs in a process that was not asked for. */
static void say_not_reached(const struct y_program *p, const struct y_target *t)
{
	cleanup(free) char *name = clean_text(t->comm);
	char points[256];
	u32 n = t->pid ? children_count(t->pid) : 0, len = 0;

	*points = '\0';
	for (u32 i = 0; i < p->nhandlers && len < sizeof(points); i++)
		if (y_in_kernel(p->handlers[i].point))
			len += (u32)snprintf(points + len, sizeof(points) - len, "%s%s%s", len ? ", " : "",
			        p->handlers[i].spec ? p->handlers[i].spec : "_profile",
			        p->handlers[i].returns ? ":return" : "");
	if (!t->pid)
		say_note("nothing reached its probes: %s", points);
	else if (n)
		say_note("%s (pid %d) did not reach its probes (%s), but it has %u child%s: -s asks them, too",
		        name ? name : "", (int)t->pid, points, n, n == 1 ? "" : "ren");
	else
		say_note("%s (pid %d) did not reach its probes: %s", name ? name : "", (int)t->pid, points);
}

/* --- its profile --- */

struct written {
	struct y_probes *probes; /* NULL if the program has none */
	struct output out;       /* of -o */
	u32 map;                 /* what it shows */
};

/* The one map that has stacks. */
static struct error *find_stacks(const struct y_program *p, u32 *ret)
{
	u32 n = 0;

	for (u32 i = 0; i < p->nmaps; i++)
		if (p->maps[i].stack) {
			*ret = i;
			n++;
		}
	if (n == 1 && p->maps[*ret].part == Y_KERNEL_STACK)
		return error_hint(error_new(ERROR_USAGE, "-o writes whole stacks, and %s has only the kernel's frames",
		                          p->maps[*ret].name),
		        "_stack or _ustack in place of _kstack");
	if (n == 1)
		return NULL;
	return error_hint(error_new(ERROR_USAGE,
	                          n ? "-o writes one map by stack, the program has %u"
	                            : "-o writes a map by stack, and the program has none",
	                          n),
	        "_map long n[_stack]; and n[_stack]++ in a probe make one");
}

static struct error *write_profile(
        const struct request *r, const struct y_program *p, const struct y_target *t, struct written *w)
{
	struct profile *profile = y_probes_profile(w->probes);
	cleanup(free) char *target = NULL;
	struct error *err;

	if (!profile)
		return error_new(ERROR_LOST, "no stacks were gathered: %s is not written", r->output);
	if (asprintf(&target, "%s (pid %d)", t->comm, (int)t->pid) < 0)
		return &error_no_memory;
	profile->meta.title = "y";
	profile->meta.heading = p->maps[w->map].name;
	profile->meta.unit = p->maps[w->map].is_agg ? p->maps[w->map].name : "hits";
	profile->meta.target = target;
	err = output_error(&w->out, format_write(format_find(r->format, r->output), profile, w->out.file));
	profile->meta.target = NULL;
	return err;
}

static struct error *open_profile(const struct request *r, const struct y_program *p, u32 *map, struct output *ret)
{
	struct error *err = find_stacks(p, map);

	if (!err && !format_find(r->format, r->output))
		err = error_hint(error_new(ERROR_USAGE, "-o %s: no format has this name", r->output),
		        "`yrt flame --help` lists the formats");
	return err ? err : output_open(strdup(r->output), ret);
}

static struct error *close_profile(struct output *out, struct error *err)
{
	struct error *closed = output_close(out, !err);

	if (err)
		error_free(closed);
	return err ? err : closed;
}

/* --- a run --- */

static void warn(void *ctx, struct error *err)
{
	say_note_error(err);
}

/* Probes, and what is to be written of them. */
static struct error *prepare_run(
        const struct request *r, struct y_program *p, struct y_target *t, struct y_run_options *o, struct written *w)
{
	struct error *err = NULL;

	if (y_has_probes(p) && !t->core)
		err = y_probes_new(p, t, warn, NULL, &w->probes);
	if (!err && w->probes) {
		o->probes = &y_probes_ops;
		o->probes_ctx = w->probes;
	}
	return err || !r->output ? err : open_profile(r, p, &w->map, &w->out);
}

static int run_program(const struct request *r, struct y_program *p, struct y_target *t)
{
	struct y_run_options o = {
	        .out = stdout, .err = stderr, .json = r->json, .duration_s = r->duration_s, .stop = &stop_sampling};
	struct written w = {0};
	struct y_run_stats stats;
	struct error *err;
	int code;

	p->limits.time_s = r->max_time_s;
	p->limits.steps = (u64)r->max_steps;
	p->limits.hit_ns = (u64)(r->max_hit_ms * 1e6);
	catch_signals();
	err = prepare_run(r, p, t, &o, &w);
	if (err) {
		y_probes_free(w.probes);
		return report_error(err);
	}
	err = output_unread(stdout, y_run(p, t, &o, &stats));
	if (r->output)
		err = close_profile(&w.out, err ? err : write_profile(r, p, t, &w));
	y_probes_free(w.probes);
	code = err                                 ? report_error(err)
	       : stats.error                       ? ERROR_INTERNAL
	       : 2 * stats.failed > stats.handlers ? ERROR_LOST
	                                           : 0;
	say_failures(p, &stats);
	if (!r->quiet && !err && w.probes && !stats.hits && !stats.missed && r->targets.run.npids <= 1)
		say_not_reached(p, t);
	if (!r->quiet)
		say_last_line(&stats, r->targets.run.npids > 1 ? t : NULL);
	y_run_stats_free(&stats);
	return code;
}

static void say_no(const char *engine, struct error *err)
{
	cleanup(free) char *clean = clean_text(err->message);

	cleanup(free) char *hint = clean_text(err->hint ? err->hint : "");

	printf("%s: no: %s\n", engine, clean ? clean : "");
	if (err->hint)
		printf("\tinstead: %s\n", hint ? hint : "");
	error_free(err);
}

static void say_taken(const char *engine, struct error *err)
{
	if (err)
		say_no(engine, err);
	else
		printf("%s: yes\n", engine);
}

/* With a process and the right to it, the kernel is asked, too. */
static void check_probes(struct y_program *p, struct y_target *t)
{
	struct y_probes *probes = NULL;
	struct y_bpf *bpf = NULL;
	struct error *err = y_probes_make(p, t, &bpf);

	y_bpf_free(bpf);
	if (!err && t->pid)
		err = y_probes_new(p, t, warn, NULL, &probes);
	if (err && err->kind == ERROR_PERMISSION) {
		say_no("bpf: yes, but this kernel", err);
	} else if (err) {
		say_no("bpf", err);
	} else {
		printf("bpf: yes\n");
	}
	if (probes)
		y_probes_verified(probes, stdout);
	y_probes_free(probes);
}

static int check_program(struct y_program *p, struct y_target *t)
{
	bool probes = y_has_probes(p);
	struct error *err = probes ? NULL : y_vm_refuses(p, false, false);

	if (err)
		say_no("vm", err);
	else
		printf(probes ? "vm: yes, but for the probes\n" : "vm: yes\n");
	if (probes)
		check_probes(p, t);
	say_taken("core", y_vm_refuses(p, true, false));
	say_taken("gdb", y_script_refuses(p, Y_GDB));
	say_taken("lldb", y_script_refuses(p, Y_LLDB));
	say_taken("stap", y_stap_refuses(p, t));
	say_taken("d", y_d_refuses(p, t));
	return 0;
}

static struct error *emit_bpf(struct y_program *p, struct y_target *t)
{
	struct y_bpf *bpf;
	struct error *err =
	        y_has_probes(p) ? y_probes_make(p, t, &bpf)
	                        : error_new(ERROR_USAGE, "the program has no probes: nothing of it runs in the kernel");

	if (err)
		return err;
	y_bpf_print(bpf, p, stdout);
	y_bpf_free(bpf);
	return NULL;
}

static struct error *emit_program(const struct request *r, struct y_program *p, struct y_target *t)
{
	p->limits.steps = (u64)r->max_steps;
	p->limits.hit_ns = (u64)(r->max_hit_ms * 1e6);
	if (!strcmp(r->emit, "tokens"))
		return NULL; /* printed on the way */
	if (!strcmp(r->emit, "gdb") || !strcmp(r->emit, "lldb"))
		return y_emit_script(p, *r->emit == 'g' ? Y_GDB : Y_LLDB, stdout);
	if (!strcmp(r->emit, "stap"))
		return y_emit_stap(p, t, stdout);
	if (!strcmp(r->emit, "d"))
		return y_emit_d(p, t, stdout);
	if (!strcmp(r->emit, "bpf"))
		return emit_bpf(p, t);
	if (strcmp(r->emit, "ir"))
		return error_new(
		        ERROR_USAGE, "--emit takes ir, tokens, bpf, gdb, lldb, stap or d, not \"%s\"", r->emit);
	y_program_print(p, stdout);
	return NULL;
}

static int compile_and_run(const struct request *r, const char *operand)
{
	cleanup(free) char *text = NULL;
	struct y_compile_options o = {
	        .defines = r->defines, .includes = r->includes, .explain = r->explain ? stderr : NULL};
	struct y_target *t = NULL;
	struct y_program *p = NULL;
	struct error *err = load_source(r, operand, &o.name, &text, &o.size);
	int code = 0;

	o.text = text;
	o.tokens = r->emit && !strcmp(r->emit, "tokens") ? stdout : NULL;
	if (!err)
		err = y_target_open(&r->target, &t);
	if (!err)
		err = y_compile(&o, t, &p);
	if (!err && r->emit)
		err = emit_program(r, p, t);
	else if (!err)
		code = r->check ? check_program(p, t) : run_program(r, p, t);
	if (err)
		code = report_error(err);
	y_program_free(p);
	y_target_close(t);
	return code;
}

static int run_one(void *ctx, pid_t pid)
{
	struct request *r = ctx;

	r->target.pid = pid;
	return compile_and_run(r, r->operand);
}

static int run_all(struct request *r)
{
	if (r->targets.run.npids <= 1)
		return compile_and_run(r, r->operand);
	return y_several(r->targets.run.pids, (u32)r->targets.run.npids, r->json, run_one, r);
}

int y_main(const struct command_line *self, int argc, char **argv)
{
	struct request r = {.max_time_s = 60, .max_steps = 1e8, .max_hit_ms = 1};
	struct error *err = parse(&r, argc, argv, &r.operand);
	int code = 0;

	if (err)
		code = report_error(err);
	else if (r.targets.help)
		manual_help(stdout, self);
	else
		code = r.list ? list_analysers() : run_all(&r);
	free(r.defines);
	free(r.includes);
	flame_free(&r.targets);
	return code;
}
