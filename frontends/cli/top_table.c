/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "colour.h"
#include "frontends/format/text.h"
#include "frontends/format/words.h"
#include "top.h"

#define KIND_COLUMNS 8

const char *const top_orders[TOP_ORDERS] = {
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

double top_cpus(const struct top *t)
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

void top_put_table(FILE *out, struct top *t, u32 room, const char *eol)
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

void top_put_keys(FILE *out, const struct top *t, int line)
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

void top_put_help(FILE *out, const char *eol)
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
