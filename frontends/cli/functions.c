/* SPDX-License-Identifier: Apache-2.0 */
/* `yrt functions`: what `yrt probe` can be asked for in a process, of languages whose calls are seen from outside. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cli.h"
#include "manual.h"
#include "output.h"
#include "say.h"
#include "probes/hit/hit_callee_match.h"
#include "probes/hit/hit_find.h"
#include "probes/hit/hit_name.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/process/alone.h"
#include "unwind/process/view.h"
#include "unwind/runtime.h"
#include "unwind/symbols/symbols.h"

static const struct manual_option options[] = {PID_OPTIONS, {0}};

static const char *const usage[] = {"-p PID[,PID...] [PATTERN...]", NULL};

static const struct manual_example examples[] = {
        {"yrt functions -p 4242 'python:orders.*'", "those of a package, by module and name"},
        {"yrt functions -p 4242 '*checkout*'", "of any language"},
        {"yrt functions -p 4242 'libc:mall*'", "of a library"},
        {"yrt functions -p 4242 'sched:*'", "tracepoints of the kernel"},
        {NULL, NULL},
};

const struct manual functions_manual = {
        .usage = usage,
        .text = "Prints functions of Python, Lua, Perl and Java by the names that `yrt probe -e` and `yrt latency -e` "
                "take, with the place of their definition. PATTERN is compared with the whole name: * stands for any "
                "characters. Without a language in front, it is looked for in each. FILE:PATTERN lists functions of a "
                "mapped program or library, go:PATTERN those of Go, PROVIDER:PATTERN USDT probes, CATEGORY:PATTERN "
                "tracepoints. The process "
                "keeps running.",
        .options = options,
        .examples = examples,
};

struct line {
	char *text;
};

struct list {
	const struct view *view;
	const char *pattern;
	struct line *lines;
	u32 n;
};

static struct error *add(void *ctx, const struct runtime_callee *c)
{
	struct list *list = ctx;
	cleanup(free) char *name = clean_text(c->name), *file = clean_text(c->file);
	struct error *err;

	if (!hit_name_fits(list->pattern, c->name))
		return NULL;
	err = grow(&list->lines, list->n, sizeof(*list->lines));
	if (err || !name || !file)
		return err ? err : &error_no_memory;
	if (asprintf(&list->lines[list->n].text, "%s:%s\t%s:%u%s%s", list->view->name, name, file, c->line,
	            c->makes ? "\t" : "", c->makes ? c->makes : "") < 0)
		return &error_no_memory;
	list->n++;
	return NULL;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

/* One that exists several times is printed once. */
static void print(struct list *list)
{
	if (list->n)
		qsort(list->lines, list->n, sizeof(*list->lines), by_text);
	for (u32 i = 0; i < list->n; i++)
		if (!i || strcmp(list->lines[i - 1].text, list->lines[i].text) != 0)
			puts(list->lines[i].text);
	for (u32 i = 0; i < list->n; i++)
		free(list->lines[i].text);
	free(list->lines);
	*list = (struct list){.view = list->view};
}

/* pattern: with its language in front, or of each. *n: how many were printed. */
static struct error *list_process(const struct process *p, const char *pattern, u32 *n)
{
	struct error *err = NULL;

	for (const struct view *v = views(); !err && v->name; v++) {
		size_t len = strlen(v->name);
		bool named = !strncmp(pattern, v->name, len) && pattern[len] == ':';
		struct list list = {.view = v, .pattern = named ? pattern + len + 1 : pattern};

		if (!callee_form(v->name))
			continue;
		err = callee_each(p, v->name, list.pattern, add, &list);
		*n += list.n;
		print(&list);
	}
	return err;
}

/* "libc:mall*": of files, USDT probes and tracepoints. */
struct native {
	struct hit_spec spec;
	const struct image *image;
	struct list *list;
	struct error *err;
};

static void add_native(struct native *n, const char *head, const char *name, const char *kind)
{
	cleanup(free) char *clean = clean_text(name);

	if (!n->err)
		n->err = grow(&n->list->lines, n->list->n, sizeof(*n->list->lines));
	if (n->err)
		return;
	if (!clean || asprintf(&n->list->lines[n->list->n].text, "%s%s%s\t%s", head, *head ? ":" : "", clean, kind) < 0)
		n->err = &error_no_memory;
	n->list->n += !n->err;
}

static bool see_function(void *ctx, const struct symbol_function *f)
{
	struct native *n = ctx;
	const char *slash = strrchr(n->image->path, '/');
	cleanup(free) char *name = NULL;

	if (f->indirect || !hit_matches(n->spec.name, f->name))
		return false;
	name = symbol_is_mangled(f->name) ? symbol_demangle_whole(f->name) : NULL;
	add_native(n, slash ? slash + 1 : n->image->path, name ? name : f->name, "function");
	return n->err != NULL;
}

static struct error *see_of_table(void *ctx, u64 start, u64 end, const char *name)
{
	struct native *n = ctx;
	struct error *err;

	if (end > start)
		see_function(n, &(struct symbol_function){.addr = start, .name = name});
	err = n->err;
	n->err = NULL;
	return err;
}

/* Functions of a stripped file, as -e finds them. view: only of this language; NULL: of any. */
static void list_tables(struct native *n, struct image *image, const char *view)
{
	for (const struct runtime_ops *const *r = runtimes; !n->err && *r; r++)
		if ((*r)->functions && (!view || !strcmp((*r)->view, view)))
			n->err = (*r)->functions(image, see_of_table, n);
}

static void see_usdt(void *ctx, const char *name)
{
	struct native *n = ctx;
	const char *colon = strchr(name, ':');
	size_t len = (size_t)(colon - name);

	if (strlen(n->spec.file) == len && !strncmp(name, n->spec.file, len) && hit_name_fits(n->spec.name, colon + 1))
		add_native(n, "", name, "USDT probe");
}

static const char *const event_lists[] = {
        "/sys/kernel/tracing/available_events", "/sys/kernel/debug/tracing/available_events"};

/* Their categories are not known then, and not compared by -e: of all that are asked for, those named after it. */
static void see_tracepoint(void *ctx, const char *name)
{
	struct native *n = ctx;

	if (hit_name_fits(n->spec.name, name) && !strncmp(name, n->spec.file, strlen(n->spec.file)))
		add_native(n, n->spec.file, name, "tracepoint");
}

/* The kernel lists them by category where its file system for tracing is mounted; "syscalls" can not be probed. */
static void list_tracepoints(struct native *n)
{
	cleanup(fclose) FILE *file = NULL;
	char line[256];

	for (size_t i = 0; !file && i < sizeof(event_lists) / sizeof(*event_lists); i++)
		file = fopen(event_lists[i], "re");
	if (!file)
		hit_each_tracepoint(see_tracepoint, n);
	while (file && !n->err && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		line[strcspn(line, "\n")] = '\0';
		if (!colon || !strncmp(line, "syscalls:", 9) || !hit_name_fits(n->spec.name, colon + 1))
			continue;
		*colon = '\0';
		if (strcmp(n->spec.file, line) != 0)
			continue;
		*colon = ':';
		add_native(n, "", line, "tracepoint");
	}
}

static struct error *list_native(const struct process *p, const char *pattern, u32 *count)
{
	const char *colon = strchr(pattern, ':');
	struct list list = {0};
	struct native n = {.list = &list};
	char root[64];
	u32 listed;

	if (!colon || colon == pattern || colon[1] == ':' || colon - pattern >= HIT_NAME_MAX)
		return NULL;
	snprintf(n.spec.file, sizeof(n.spec.file), "%.*s", (int)(colon - pattern), pattern);
	snprintf(n.spec.name, sizeof(n.spec.name), "%s", colon + 1);
	snprintf(root, sizeof(root), "/proc/%d/root", p->pid);
	for (u32 i = 0; i < p->maps.nlines && !n.err; i++) {
		struct image *image = p->mappings[i].image;

		if (!image || image == n.image || !(p->mappings[i].prot & PROT_EXEC))
			continue;
		n.image = image;
		listed = list.n;
		if (hit_is_file(&n.spec, image->path) && !(n.err = symbols_load(image, root)))
			symbols_each(image, see_function, &n);
		if (!hit_is_file(&n.spec, image->path))
			list_tables(&n, image, n.spec.file);
		else if (listed == list.n)
			list_tables(&n, image, NULL);
		if (!n.err)
			hit_each_usdt(image, see_usdt, &n);
	}
	list_tracepoints(&n);
	*count += list.n;
	print(&list);
	return n.err;
}

static struct error *list_all(pid_t pid, char *const *patterns, u32 *n)
{
	static char *const any[] = {"*", NULL};
	struct process_alone a = {0};
	struct error *err = process_alone_open(&a, pid, NULL, NULL, NULL);

	for (char *const *pattern = *patterns ? patterns : any; !err && *pattern; pattern++) {
		err = list_process(a.p, *pattern, n);
		if (!err && *patterns)
			err = list_native(a.p, *pattern, n);
	}
	process_alone_close(&a);
	return err;
}

static struct error *parse(int argc, char **argv, struct flame_options *o)
{
	struct manual_getopt table;
	struct error *err = NULL;
	int c;

	manual_getopt(&functions_manual, &table);
	optind = 1;
	while (!err && (c = getopt_long(argc, argv, table.shorts + 1, table.longs, NULL)) != -1) {
		if (c == 'p')
			err = flame_add_pids(o, optarg);
		else if (c == FLAME_SELECT)
			err = selection_add(&o->selection, optarg);
		else if (c == 'h')
			o->help = true;
		else
			err = manual_bad_option();
	}
	if (!err && !o->help)
		err = flame_select_now(o);
	return err;
}

static struct error *finish(u32 n)
{
	if (!n)
		return error_hint(error_new(ERROR_USAGE, "no function of that name was found"),
		        "`yrt inspect -p PID` shows what languages were recognised; FILE:PATTERN looks into a file");
	if (fflush(stdout) || ferror(stdout))
		return output_unread(stdout, error_new(ERROR_OUTPUT, "cannot write the result: %s", strerror(errno)));
	return NULL;
}

int functions_main(const struct command_line *self, int argc, char **argv)
{
	struct flame_options o = {0};
	struct error *err = parse(argc, argv, &o);
	u32 n = 0;

	if (!err && o.help) {
		manual_help(stdout, self);
	} else {
		for (int i = 0; !err && i < o.run.npids; i++)
			err = list_all(o.run.pids[i], argv + optind, &n);
		err = err ? err : finish(n);
	}
	flame_free(&o);
	return err ? report_error(err) : 0;
}
