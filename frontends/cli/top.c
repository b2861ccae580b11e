/* SPDX-License-Identifier: Apache-2.0 */
/* top: one row per function, live. On a terminal it is redrawn each period; elsewhere it prints a table per period. */

#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli.h"
#include "colour.h"
#include "frontends/format/rows.h"
#include "frontends/format/text.h"
#include "frontends/format/words.h"
#include "output.h"
#include "say.h"

struct top {
	struct flame_options o;
	struct rows rows;
	enum rows_order order;
	bool reversed, all, held, live, json, help;
	bool processes; /* a row for each, not for each function */
	bool typing;    /* of the filter */
	char filter[48];
	u32 max_rows, skip, drawn, count;
	u64 *since; /* self of each node at the last period */
	u32 nsince;
	double period_s, elapsed_s, span_s;
	char *loss;
	char *target;       /* clean */
	int columns, lines; /* of the terminal when last drawn */
};

/* Names of enum rows_order. */
#define TOP_ORDERS 4

/* A terminal that is drawn on as a whole and read key by key. */

enum terminal_key { /* other keys are characters */
	KEY_NONE = -1,
	KEY_CTRL_Z = 26,
	KEY_UP = 256,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
};

static struct termios before;
static bool entered;

static void put(const char *sequence)
{
	if (write(STDOUT_FILENO, sequence, strlen(sequence)) < 0)
		return; /* a terminal that is gone needs nothing */
}

static void terminal_leave(void)
{
	if (!entered)
		return;
	entered = false;
	put("\033[?7h\033[?25h\033[?1049l");
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

/* Takes stdin and stdout over, until terminal_leave(); at exit that happens by itself. False: they are no terminal. */
static bool terminal_enter(void)
{
	static bool registered;
	struct termios raw;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before))
		return false;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* a stopped yrt would leave the terminal as it is: terminal_suspend() */
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw))
		return false;
	put("\033[?1049h\033[?25l\033[?7l");
	entered = true;
	if (!registered)
		registered = !atexit(terminal_leave);
	return true;
}

/* Gives it back and stops yrt, as Ctrl-Z does, until it is continued; takes it over again. */
static void terminal_suspend(void)
{
	terminal_leave();
	kill(0, SIGTSTP); /* the whole job: also a program that yrt started */
	terminal_enter();
}

/* Its size now. */
static void terminal_size(int *columns, int *rows)
{
	struct winsize size = {0};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*columns = size.ws_col ? size.ws_col : 80;
	*rows = size.ws_row ? size.ws_row : 24;
}

static int read_byte(void)
{
	struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
	unsigned char byte;

	if (poll(&wait, 1, 0) <= 0 || read(STDIN_FILENO, &byte, 1) != 1)
		return KEY_NONE;
	return byte;
}

/* A key that waits, KEY_NONE if none does. */
static int terminal_key(void)
{
	int key = read_byte();

	if (key != '\033')
		return key;
	key = read_byte();
	if (key != '[' && key != 'O')
		return '\033';
	key = read_byte();
	if (key == '5' || key == '6')
		read_byte();
	switch (key) {
	case 'A':
		return KEY_UP;
	case 'B':
		return KEY_DOWN;
	case '5':
		return KEY_PAGE_UP;
	case '6':
		return KEY_PAGE_DOWN;
	case 'H':
		return KEY_HOME;
	}
	return KEY_NONE;
}

#define KIND_COLUMNS 8

static const char *const top_orders[TOP_ORDERS] = {
        [ROWS_SELF] = "self", [ROWS_TOTAL] = "total", [ROWS_NAME] = "name", [ROWS_MODULE] = "module"};

static enum colour kind_colour(enum profile_kind kind)
{
	static const enum colour colours[KIND_MAX] = {
	        [KIND_KERNEL] = COLOUR_YELLOW,
	        [KIND_NATIVE] = COLOUR_BLUE,
	        [KIND_CXX] = COLOUR_MAGENTA,
	        [KIND_RUST] = COLOUR_RED,
	        [KIND_SCRIPT] = COLOUR_GREEN,
	        [KIND_SCRIPT_JIT] = COLOUR_CYAN,
	        [KIND_SCRIPT_BASELINE] = COLOUR_CYAN,
	        [KIND_STUB] = COLOUR_BLUE,
	        [KIND_WORK] = COLOUR_MAGENTA,
	        [KIND_CLASS] = COLOUR_MAGENTA,
	        [KIND_VM] = COLOUR_FAINT,
	        [KIND_SCRIPT_NATIVE] = COLOUR_GREEN,
	        [KIND_RUNNING] = COLOUR_RED,
	        [KIND_RUNNABLE] = COLOUR_YELLOW,
	        [KIND_WAITING] = COLOUR_BLUE,
	        [KIND_UNKNOWN] = COLOUR_RED,
	};

	return colours[kind];
}

/* A name from the target: nothing in it may steer the terminal. At most room code points, padded to width. */
static void put_name(FILE *out, const char *s, int width, int room)
{
	char bytes[4];
	int n = 0;

	for (; *s && n < room; n++) {
		u32 c = text_next(&s);

		if (text_is_control(c))
			c = ' ';
		fwrite(bytes, 1, text_encode(c, bytes), out);
	}
	fprintf(out, "%*s", n < width ? width - n : 0, "");
}

/* CPUs that ran the targets on average, by the samples. */
static double top_cpus(const struct top *t)
{
	double taken = t->o.run.sampler.frequency * t->span_s;

	return taken > 0 ? (double)t->rows.samples / taken : 0;
}

static double share(u64 part, u64 all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

/* The language's own word, where the column has room. */
static const char *kind_words(const struct profile_function *f)
{
	const char *words = words_of(f->module, f->kind);

	return strlen(words) <= KIND_COLUMNS ? words : text_kind(f->kind);
}

static void put_row(FILE *out, const struct top *t, const struct row *r)
{
	u64 all = t->rows.samples;
	int room = t->live ? t->columns - 38 - (t->o.run.sampler.collect.threads ? 25 : 0) : 1 << 20;

	fprintf(out, "%7.2f %7.2f %8lu  ", share(r->self, all), share(r->total, all), r->self);
	if (t->o.run.sampler.collect.threads) {
		put_name(out, r->thread ? r->thread->name : "", 24, 24);
		fputc(' ', out);
	}
	fputs(colour(stdout, kind_colour(r->function->kind)), out);
	fprintf(out, "%-*s", KIND_COLUMNS, kind_words(r->function));
	fputs(colour(stdout, COLOUR_NONE), out);
	fputc(' ', out);
	if (r->function->kind == KIND_PROCESS)
		fprintf(out, "%7u ", r->function->line);
	put_name(out, text_name(r->function), 0, room > 8 ? room : 8);
	if (*r->function->module && r->function->kind != KIND_PROCESS) {
		fputs(colour(stdout, COLOUR_FAINT), out);
		fputs("  ", out);
		put_name(out, r->function->module, 0, 40);
		fputs(colour(stdout, COLOUR_NONE), out);
	}
}

static void put_head(FILE *out, const struct top *t, const char *eol)
{
	fprintf(out, "%syrt top%s  %s  %.1f s  %lu samples %s %.1f s, %.2f CPUs, by %s%s%s%s",
	        colour(stdout, COLOUR_BOLD), colour(stdout, COLOUR_NONE), t->target ? t->target : "", t->elapsed_s,
	        t->rows.samples, t->all ? "in all" : "in the last", t->span_s, top_cpus(t), top_orders[t->order],
	        t->reversed ? ", reversed" : "", t->held ? "  [held]" : "", eol);
	fprintf(out, "%s%s", t->loss ? t->loss : "", eol);
	fprintf(out, "%s  SELF%%  TOTAL%%  SAMPLES  %s%-*s %s%s%s", colour(stdout, COLOUR_INVERSE),
	        t->o.run.sampler.collect.threads ? "THREAD                   " : "", KIND_COLUMNS, "KIND",
	        t->processes ? "    PID PROCESS" : "FUNCTION", colour(stdout, COLOUR_NONE), eol);
}

/* Drops the rows without what was typed; those of the next period are all again. */
static void filter_rows(struct top *t)
{
	u32 kept = 0;

	for (u32 i = 0; *t->filter && i < t->rows.n; i++)
		if (strcasestr(text_name(t->rows.row[i].function), t->filter))
			t->rows.row[kept++] = t->rows.row[i];
	t->rows.n = *t->filter ? kept : t->rows.n;
}

/* The table with its head, room rows at most; eol ends each line. */
static void top_put_table(FILE *out, struct top *t, u32 room, const char *eol)
{
	put_head(out, t, eol);
	filter_rows(t);
	if (t->skip + room > t->rows.n)
		t->skip = t->rows.n > room ? t->rows.n - room : 0;
	for (u32 i = t->skip; i < t->rows.n && i < t->skip + room; i++) {
		put_row(out, t, &t->rows.row[i]);
		fputs(eol, out);
	}
}

/* The last line of the terminal; the letter of each word is its key. */
static void top_put_keys(FILE *out, const struct top *t, int line)
{
	static const char *const words[] = {"self", "total", "name", "module", "reverse", "all", "processes"};
	const char *bold = colour(stdout, COLOUR_BOLD), *plain = colour(stdout, COLOUR_NONE);

	fprintf(out, "\033[%d;1H", line);
	if (t->typing) {
		fprintf(out, "%s/%s%s  (Enter)\033[K", bold, plain, t->filter);
		return;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		fprintf(out, "%s%c%s%s ", bold, words[i][0], plain, words[i] + 1);
	fprintf(out, "%s/%sfilter%s%s %sspace%s hold %s?%s help %sq%suit\033[K", bold, plain, *t->filter ? ": " : "",
	        t->filter, bold, plain, bold, plain, bold, plain);
}

/* What the keys do, in place of the table. */
static void top_put_help(FILE *out, const char *eol)
{
	static const char *const lines[] = {
	        "s t n m     sort by self, total, name or module",
	        "r           reverse the order",
	        "p           a row for each process, or for each function again",
	        "a           all since the start, or the last period again",
	        "/           keep rows whose name contains what you type; Enter ends it, / Enter shows all again",
	        "space       hold the picture, or go on",
	        "arrows      scroll; page keys and Home, too",
	        "Ctrl-Z      suspend; fg goes on",
	        "q           quit",
	        "",
	        "SELF%   share of the samples of the period that end in the function",
	        "TOTAL%  share with the function anywhere in the stack; recursion counts once",
	        "CPUs    how many CPUs the targets kept busy",
	        "",
	        "any key     back",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		fprintf(out, "%s%s", lines[i], eol);
}

/* A table of top as a line of JSON, for programs. */

struct top_moment {
	const char *target, *loss; /* NULL: not known yet */
	double elapsed_s, span_s, cpus;
};

static json_t *clean(const char *s)
{
	char text[TEXT_CLEAN];

	text_clean(s, text);
	return json_string(text);
}

static json_t *json_row(const struct row *r)
{
	json_t *o = json_pack("{s:I, s:I, s:o, s:s, s:o}", "self", (json_int_t)r->self, "total", (json_int_t)r->total,
	        "function", clean(text_name(r->function)), "kind", text_kind(r->function->kind), "module",
	        clean(r->function->module));

	if (r->function->kind == KIND_PROCESS)
		json_object_set_new(o, "pid", json_integer(r->function->line));
	if (r->thread)
		json_object_set_new(o, "thread", clean(r->thread->name));
	return o;
}

/*
 * {"target", "seconds", "span", "samples", "cpus", "loss", "rows": [{"self", "total", "function", "kind", "module",
 * "pid", "thread"}]}, with at most `most` rows.
 */
static struct error *top_json(FILE *out, const struct rows *rows, u32 most, const struct top_moment *m)
{
	json_t *list = json_array(), *o;
	bool failed;

	for (u32 i = 0; i < rows->n && i < most; i++)
		json_array_append_new(list, json_row(&rows->row[i]));
	o = json_pack("{s:o, s:f, s:f, s:I, s:f, s:o, s:o}", "target", clean(m->target ? m->target : ""), "seconds",
	        m->elapsed_s, "span", m->span_s, "samples", (json_int_t)rows->samples, "cpus", m->cpus, "loss",
	        clean(m->loss ? m->loss : ""), "rows", list);
	failed = !o || json_dumpf(o, out, JSON_COMPACT);
	json_decref(o);
	if (failed)
		return error_new(ERROR_OUTPUT, "cannot write the table");
	fputc('\n', out);
	return text_finish(out, "table");
}

#define PERIOD_S 2.0
#define ROWS     20

enum { OPT_ROWS = 512, OPT_JSON, OPT_PROCESSES };

static const struct manual_option options[] = {
        SELECT_OPTIONS,
        {'s', "subprocesses", NULL, "also their children, present and future", COMPLETE_NOTHING},
        {'t', "threads", NULL, "separate rows for each thread", COMPLETE_NOTHING},
        {OPT_PROCESSES, "processes", NULL, "one row per process", COMPLETE_NOTHING},
        {'d', "delay", "SECS", "time between updates, as in top(1) (2)", COMPLETE_NOTHING},
        {'n', "count", "N", "end after N updates (0: never)", COMPLETE_NOTHING},
        {'k', "sort", "KEY", "self (default), total, name or module", COMPLETE_NOTHING},
        {'A', "cumulative", NULL, "count from the start, not only the last period", COMPLETE_NOTHING},
        {OPT_ROWS, "rows", "N", "at most N rows if the output is no terminal (20)", COMPLETE_NOTHING},
        {OPT_JSON, "json", NULL, "print a line of JSON per period", COMPLETE_NOTHING},
        {'F', "freq", "HZ", "samples per second of CPU time (99)", COMPLETE_NOTHING},
        {'r', "rate", "HZ", "the same as --freq", COMPLETE_NOTHING},
        {'U', "user", NULL, "leave out kernel frames", COMPLETE_NOTHING},
        {'K', "kernel", NULL, "leave out user frames", COMPLETE_NOTHING},
        {'I', "include", "REGEX", "only stacks with a frame that matches", COMPLETE_NOTHING},
        {'X', "exclude", "REGEX", "only stacks without a frame that matches", COMPLETE_NOTHING},
        {'g', "gil", NULL, "only threads that hold the GIL of their Python", COMPLETE_NOTHING},
        {FLAME_CPU, "max-cpu", "PERCENT",
                "how much of one CPU stacks may take; if they take more, the rate is halved (10; 0: no limit)",
                COMPLETE_NOTHING},
        {FLAME_NO_CACHE, "no-cache", NULL, "do not keep compiled unwind tables on disk", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"-p PID[,PID...] [options]", "[options] -- COMMAND [ARGS...]", NULL};

static const struct manual_example examples[] = {
        {"yrt @ -p 4242", "live, until q"},
        {"yrt @ -p $(pgrep -o nginx) -s -k total", "a server and its workers, by total time"},
        {"yrt @ -p 4242 -t -d 1", "functions by thread, updated every second"},
        {"yrt @ -a --processes", "which processes use the CPUs"},
        {"yrt @ -p 4242 -d 10 -n 1 | head", "one table of ten seconds, for a script"},
        {"yrt @ -p 4242 -d 10 -n 1 --json | jq '.rows[0].function'", "for a program"},
        {NULL, NULL},
};

const struct manual top_manual = {
        .usage = usage,
        .text = "On a terminal, ? lists the keys. Self is the share of samples that end in a function, total the share "
                "of samples with the function anywhere in their stack.",
        .options = options,
        .examples = examples,
};

/*
 * Lines at most one column short of the terminal's: in the last one the cursor stays on the character, and some
 * terminals put what follows over it. Sequences that steer it take no room.
 */
static void put_clipped(FILE *out, const char *text, int columns)
{
	int n = 0;

	while (*text) {
		size_t size = 1;

		if (*text == '\033') {
			size += strcspn(text + 1, "mHJKhl");
			size += text[size] != '\0';
		} else if (*text == '\n') {
			n = 0;
		} else {
			const char *next = text;

			text_next(&next);
			size = next - text;
			n++;
		}
		if (n < columns || *text == '\033')
			fwrite(text, 1, size, out);
		text += size;
	}
}

static void draw(struct top *t)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	terminal_size(&t->columns, &t->lines);
	fputs("\033[H", out);
	if (t->help)
		top_put_help(out, "\033[K\n");
	else
		top_put_table(out, t, t->lines > 5 ? (u32)t->lines - 5 : 1, "\033[K\n");
	fputs("\033[J", out);
	top_put_keys(out, t, t->lines);
	fclose(out);
	put_clipped(stdout, text, t->columns);
	fflush(stdout);
	free(text);
}

static struct error *print(struct top *t)
{
	struct top_moment m = {t->target, t->loss, t->elapsed_s, t->span_s, top_cpus(t)};

	if (t->json)
		return top_json(stdout, &t->rows, t->max_rows, &m);
	top_put_table(stdout, t, t->max_rows, "\n");
	fputc('\n', stdout);
	return text_finish(stdout, "table");
}

static struct error *remember(struct top *t, const struct profile *p)
{
	u64 *since = reallocarray(t->since, p->nnodes, sizeof(*since));

	if (!since)
		return &error_no_memory;
	for (u32 i = 0; i < p->nnodes; i++)
		since[i] = p->nodes[i].self;
	t->since = since;
	t->nsince = p->nnodes;
	return NULL;
}

static struct error *snapshot(void *ctx, struct sampler *s)
{
	struct top *t = ctx;
	const struct profile *p = sampler_profile(s);
	struct sampler_stats st;
	struct error *err;

	if (t->held)
		return NULL;
	sampler_stats(s, &st);
	free(t->loss);
	t->loss = loss_line(&st);
	free(t->target);
	t->target = clean_text(sampler_target(s));
	t->span_s = t->all ? st.duration_s : st.duration_s - t->elapsed_s;
	t->elapsed_s = st.duration_s;
	rows_free(&t->rows);
	err = rows_create(p, t->since, t->all ? 0 : t->nsince, t->processes, &t->rows);
	if (!err)
		err = remember(t, p);
	if (err)
		return err;
	rows_sort(&t->rows, t->order, t->reversed);
	if (t->live)
		draw(t);
	else
		err = print(t);
	if (t->count && ++t->drawn >= t->count)
		stop_sampling = 1;
	return err;
}

static void set_order(struct top *t, enum rows_order order)
{
	t->order = order;
	t->reversed = false;
	t->skip = 0;
}

static void scroll(struct top *t, int by)
{
	t->skip = by < 0 && t->skip < (u32)-by ? 0 : t->skip + by;
}

static void type_filter(struct top *t, int key)
{
	size_t n = strlen(t->filter);

	if (key == '\n' || key == '\r' || key == '\033')
		t->typing = false;
	else if ((key == 127 || key == '\b') && n)
		t->filter[n - 1] = 0;
	else if (key >= ' ' && key < 127 && n + 1 < sizeof(t->filter))
		t->filter[n] = (char)key;
}

static void on_key(struct top *t, int key)
{
	static const char sorts[] = {[ROWS_SELF] = 's', [ROWS_TOTAL] = 't', [ROWS_NAME] = 'n', [ROWS_MODULE] = 'm'};

	if (t->typing) {
		type_filter(t, key);
		return;
	}
	if (t->help) {
		t->help = false;
		return;
	}
	for (u32 i = 0; i < TOP_ORDERS; i++)
		if (key == sorts[i])
			set_order(t, i);
	switch (key) {
	case 'q':
	case 'Q':
		stop_sampling = 1;
		break;
	case KEY_CTRL_Z:
		terminal_suspend();
		break;
	case 'r':
		t->reversed = !t->reversed;
		break;
	case 'a':
		t->all = !t->all;
		break;
	case 'p':
		t->processes = !t->processes;
		break;
	case '?':
	case 'h':
		t->help = true;
		break;
	case '/':
		t->typing = true;
		memset(t->filter, 0, sizeof(t->filter));
		break;
	case ' ':
		t->held = !t->held;
		break;
	case KEY_UP:
	case KEY_DOWN:
		scroll(t, key == KEY_DOWN ? 1 : -1);
		break;
	case KEY_PAGE_UP:
	case KEY_PAGE_DOWN:
		scroll(t, (key == KEY_PAGE_DOWN ? 1 : -1) * (t->lines - 6));
		break;
	case KEY_HOME:
		t->skip = 0;
		break;
	}
}

/* Ten times a second: keys, and a terminal that changed its size. */
static void tick(void *ctx, double elapsed_s, u64 samples)
{
	struct top *t = ctx;
	int key, columns, lines;
	bool changed = false;

	while ((key = terminal_key()) != KEY_NONE) {
		on_key(t, key);
		changed = true;
	}
	terminal_size(&columns, &lines);
	if (!t->loss || stop_sampling || (!changed && columns == t->columns && lines == t->lines))
		return;
	rows_sort(&t->rows, t->order, t->reversed);
	draw(t);
}

static struct error *parse_sort(const char *text, enum rows_order *ret)
{
	for (u32 i = 0; i < TOP_ORDERS; i++)
		if (!strcmp(text, top_orders[i])) {
			*ret = i;
			return NULL;
		}
	return error_new(ERROR_USAGE, "--sort takes self, total, name or module, not \"%s\"", text);
}

static const struct setting settings[] = {
        {'d', SETTING_OF(struct top, period_s), .name = "--delay", .min = 0.1, .max = 86400, .seconds = true},
        {'n', SETTING_OF(struct top, count), .name = "--count", .max = 1e9},
        {OPT_ROWS, SETTING_OF(struct top, max_rows), .name = "--rows", .min = 1, .max = 1e9},
        {'A', SETTING_OF(struct top, all), .on = true},
        {OPT_PROCESSES, SETTING_OF(struct top, processes), .on = true},
        {OPT_JSON, SETTING_OF(struct top, json), .on = true},
        {0},
};

static struct error *parse_option(struct top *t, int option)
{
	struct error *err;
	bool taken;

	if (option == 'k')
		return parse_sort(optarg, &t->order);
	err = settings_apply(settings, option, optarg, t, &taken);
	return err || taken ? err : flame_option(option, &t->o);
}

static struct error *parse(struct top *t, int argc, char **argv)
{
	struct manual_getopt g;
	struct error *err = NULL;
	int option;

	manual_getopt(&top_manual, &g);
	optind = 1;
	while (!err && (option = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1)
		err = parse_option(t, option);
	if (!err)
		err = flame_operands(argc, argv, &t->o);
	return err || t->o.help ? err : flame_check_targets(&t->o);
}

/* A note in the middle of the picture would be overwritten, and would scroll it. */
static void warn_live(void *ctx, struct error *err)
{
	error_free(err);
}

static void warn(void *ctx, struct error *err)
{
	say_note_error(err);
}

/* Of several targets, those that can be are sampled. */
static void refused(void *ctx, struct error *err, bool asked)
{
	const struct top *t = ctx;

	if (t->live || !asked)
		error_free(err);
	else if (err->kind == ERROR_NO_PROCESS)
		say_note_error(err);
	else
		report_error(err);
}

static struct error *run(struct top *t)
{
	struct sampler *s = NULL;
	enum error_kind failed = 0;
	struct error *err = run_add_children(&t->o.run);

	if (!err)
		err = sampler_create(&t->o.run.sampler, &s);
	if (!err)
		err = run_attach(s, &t->o.run, &failed);
	if (!err) {
		if (t->live)
			terminal_enter();
		err = output_unread(stdout, sampler_run(s, &stop_sampling));
		terminal_leave();
	}
	if (!err && t->live && t->loss)
		fprintf(stderr, "yrt: %s\n", t->loss);
	sampler_destroy(s);
	return err;
}

int top_main(const struct command_line *self, int argc, char **argv)
{
	struct top t = {.max_rows = ROWS, .period_s = PERIOD_S, .order = ROWS_SELF};
	struct error *err;

	flame_defaults(&t.o);
	t.o.run.sampler.collect.processes = true;
	err = parse(&t, argc, argv);
	if (!err && t.o.help) {
		manual_help(stdout, self);
	} else if (!err) {
		t.live = isatty(STDIN_FILENO) && colour_escapes(stdout) && !t.json;
		flame_set_view(self, &t.o);
		t.o.run.sampler.duration_s = 0;
		t.o.run.sampler.selection = t.o.selection.nrules ? &t.o.selection : NULL;
		t.o.run.sampler.snapshot_s = t.period_s;
		t.o.run.sampler.snapshot = snapshot;
		t.o.run.sampler.progress = t.live ? tick : NULL;
		t.o.run.sampler.warn = t.live ? warn_live : warn;
		t.o.run.sampler.ctx = &t;
		t.o.run.refused = refused;
		catch_signals();
		err = run(&t);
	}
	rows_free(&t.rows);
	free(t.since);
	free(t.loss);
	free(t.target);
	flame_free(&t.o);
	return err ? report_error(err) : 0;
}
