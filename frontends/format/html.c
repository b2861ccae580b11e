/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph page: page/page.html with the style and the scripts beside it put in (page/embed.cmake), and the
 * profile as JSON in a script element that is data, not code. Only the text in that element comes from the target.
 *
 *	meta       title (headed: by the user), command, target, unit, more (a second one), loss, why (nothing was
 *	           seen); start (ms), duration (s), frequency
 *	kinds      names of enum profile_kind, as in the page's address
 *	labels     what people call each, of all functions of the kind
 *	words      what they call script, baseline and jit of a module that is a runtime: {module: [word, word, word]}
 *	strings    names, modules, files
 *	functions  six numbers each, in the order of siblings: name, module, file (strings), line, flags, kind
 *	tiers      of functions that were seen in several ways, in percent:
 *	           {number: [script, baseline, jit, inlined, approximate]}
 *	chance     of a difference's functions that were tested: {number: [p of self, p of total]}, adjusted
 *	fn, up, self     of each node in preorder; up: levels above a child of the node before it
 *	more       with meta.more, but of a difference: what else was counted at each node
 *	base, baseScale  of a difference: each node's self in the profile compared with, and its factor
 *	times      when samples were taken (--timeline): step (ms), and in order of time runs of samples:
 *	           after (steps since the run before), node (in preorder), count
 *	histograms of calls (latency): [[function, [from, to, calls], ...], ...]
 *	requests   of a server, by route, and the slowest (requests.h)
 *	longest    of them, with arguments and waits: [[ns, at, thread, call, reason, ns, ...], ...]
 *	source     lines of functions' files
 */
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format.h"
#include "html.h"
#include "order.h"
#include "requests.h"
#include "text.h"
#include "unwind/cleanup.h"
#include "unwind/process/module.h"
#include "unwind/profile/profile.h"
#include "unwind/runtime.h"
#include "words.h"

/*
 * Source lines of a profile's functions, from files that can be read where it is drawn. The target chooses the names of
 * these files, so files that others may not read stay out: only regular files are read, and as root only files that
 * everybody may read.
 */

#define SOURCE_BEFORE 5u         /* lines shown before a function's line */
#define SOURCE_AFTER  60u        /* and behind it */
#define SOURCE_FILE   (4u << 20) /* bytes; larger files stay out */
#define SOURCE_ALL    (2u << 20) /* bytes of all lines, roughly */
#define SOURCE_LINE   400u       /* bytes of a line */

struct place {
	const char *file;
	u32 line;
};

/* Strings of a profile are there once: equal ones have equal addresses. */
static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static bool is_open_to_all(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size > 0 && st->st_size <= SOURCE_FILE &&
	       (geteuid() || st->st_mode & S_IROTH);
}

/* All of a text file, ended by a 0; NULL: not here, not to be read, or no text. */
static char *read_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char *text = NULL;
	struct stat st;
	ssize_t n = -1;

	if (fd >= 0 && !fstat(fd, &st) && is_open_to_all(&st) && (text = malloc(st.st_size + 1)))
		n = read(fd, text, st.st_size);
	if (fd >= 0)
		close(fd);
	if (n <= 0 || memchr(text, 0, n)) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

/* Where line starts; at is where line *now does, from where the search goes on. */
static const char *find_line(const char *at, u32 *now, u32 line)
{
	while (*now < line && *at) {
		at += strcspn(at, "\n");
		at += *at == '\n';
		++*now;
	}
	return at;
}

/* Lines first to last; returns the bytes written. */
static size_t put_block(FILE *out, const char *at, u32 first, u32 last)
{
	cleanup(free) char *block = NULL;
	size_t size = 0;
	FILE *lines = open_memstream(&block, &size);

	if (!lines)
		return 0;
	for (u32 i = first; i <= last && *at; i++) {
		size_t n = strcspn(at, "\n");

		fprintf(lines, "%s%.*s", i > first ? "\n" : "", (int)(n < SOURCE_LINE ? n : SOURCE_LINE), at);
		at += n + (at[n] == '\n');
	}
	if (fclose(lines))
		return 0;
	fprintf(out, "[%u,", first);
	text_json(out, block);
	putc(']', out);
	return size;
}

/* The n places of one file; returns the bytes written. */
static size_t put_file(FILE *out, const struct place *places, u32 n, bool any)
{
	cleanup(free) char *text = read_text(places[0].file);
	const char *at = text;
	size_t bytes = 0;
	u32 now = 1;

	if (!text)
		return 0;
	putc(any ? ',' : '{', out);
	text_json(out, places[0].file);
	fputs(":[", out);
	for (u32 i = 0, next; i < n; i = next) {
		u32 first = places[i].line > SOURCE_BEFORE ? places[i].line - SOURCE_BEFORE : 1;
		u32 last = places[i].line + SOURCE_AFTER;

		for (next = i + 1; next < n && places[next].line <= last + SOURCE_BEFORE; next++)
			last = places[next].line + SOURCE_AFTER;
		at = find_line(at, &now, first);
		if (i)
			putc(',', out);
		bytes += put_block(out, at, first, last);
	}
	putc(']', out);
	return bytes;
}

/* {"FILE": [[FIRST LINE, "LINES"], …], …}: files as functions name them, blocks of lines in ascending order. */
static struct error *source_put(const struct profile *p, FILE *out)
{
	cleanup(free) struct place *places = calloc(p->nfunctions + 1, sizeof(*places));
	size_t bytes = 0;
	u32 n = 0;

	if (!places)
		return &error_no_memory;
	for (u32 i = 0; i < p->nfunctions; i++)
		if (*p->functions[i].file && p->functions[i].line && p->functions[i].kind != KIND_PROCESS)
			places[n++] = (struct place){p->functions[i].file, p->functions[i].line};
	qsort(places, n, sizeof(*places), compare_places);
	for (u32 i = 0, next; i < n && bytes < SOURCE_ALL; i = next) {
		for (next = i + 1; next < n && places[next].file == places[i].file; next++)
			;
		bytes += put_file(out, &places[i], next - i, bytes > 0);
	}
	fputs(bytes ? "}" : "{}", out);
	return NULL;
}

#define BUCKETS_MAX 4096
#define LONGEST_MAX 1000
#define WAITS_MAX   64

static json_int_t member(const json_t *bucket, const char *name)
{
	return json_integer_value(json_object_get(bucket, name));
}

static void put_time(const json_t *of, const char *name, FILE *out)
{
	fprintf(out, "%" JSON_INTEGER_FORMAT, member(of, name));
}

static void put_string(const json_t *of, const char *name, FILE *out)
{
	const char *text = json_string_value(json_object_get(of, name));

	text_json(out, text ? text : "");
}

/* Of a function; *several: others were put before. */
static void put_histogram(const json_t *function, bool *several, FILE *out)
{
	const json_t *list = json_object_get(function, "histogram"), *bucket;
	json_int_t before = 0;
	size_t i, n = 0;

	json_array_foreach(list, i, bucket)
	{
		json_int_t from = member(bucket, "from_ns"), to = member(bucket, "to_ns"),
		           calls = member(bucket, "calls");

		if (from < before || to <= from || calls <= 0 || n == BUCKETS_MAX)
			continue;
		if (!n++) {
			fputs(*several ? ",\n[" : ",\n\"histograms\":[[", out);
			put_string(function, "function", out);
			*several = true;
		}
		fprintf(out, ",[%" JSON_INTEGER_FORMAT ",%" JSON_INTEGER_FORMAT ",%" JSON_INTEGER_FORMAT "]", from, to,
		        calls);
		before = to;
	}
	if (n)
		putc(']', out);
}

static void put_call(const json_t *call, FILE *out)
{
	const char *thread = json_string_value(json_object_get(call, "thread"));
	bool raised = json_is_true(json_object_get(call, "raised"));
	char title[256];
	const json_t *wait;
	size_t i;

	snprintf(title, sizeof(title), "%s (%" JSON_INTEGER_FORMAT ")", thread ? thread : "", member(call, "tid"));
	put_time(call, "ns", out);
	putc(',', out);
	put_time(call, "at_ns", out);
	putc(',', out);
	text_json(out, title);
	putc(',', out);
	put_string(call, "call", out);
	if (raised)
		fputs(",\"left by an exception\",0", out);
	json_array_foreach(json_object_get(call, "waits"), i, wait)
	{
		if (i == WAITS_MAX)
			break;
		putc(',', out);
		put_string(wait, "reason", out);
		putc(',', out);
		put_time(wait, "ns", out);
	}
}

static void put_longest(const json_t *list, bool *several, FILE *out)
{
	const json_t *call;
	size_t i;

	json_array_foreach(list, i, call)
	{
		if (i == LONGEST_MAX)
			break;
		fputs(*several ? ",\n[" : ",\n\"longest\":[[", out);
		put_call(call, out);
		putc(']', out);
		*several = true;
	}
}

/*
 * Of calls (latency), out of what --stats says (profile_meta.stats, which a recording keeps): how many took how
 * long, as "histograms": [[function, [from, to, calls], ...], ...] in ns, by time; and the longest of each function,
 * with what they waited for, as "longest": [[ns, at, thread, call, reason, ns, ...], ...]; a reason that took 0 says
 * how the call ended. A list that is not there is not written, nor anything if stats is NULL; buckets that make no
 * sense are left out.
 */
static void histogram_put(const char *stats, FILE *out)
{
	json_t *root = stats ? json_loads(stats, 0, NULL) : NULL;
	json_t *latency = json_object_get(root, "latency"), *functions = json_object_get(latency, "functions"),
	       *function;
	json_t *all = functions ? json_incref(functions) : json_pack("[O*]", latency);
	bool several = false;
	size_t i;

	json_array_foreach(all, i, function) put_histogram(function, &several, out);
	if (several)
		putc(']', out);
	several = false;
	json_array_foreach(all, i, function) put_longest(json_object_get(function, "longest"), &several, out);
	if (several)
		putc(']', out);
	json_decref(all);
	json_decref(root);
}

extern const char page_html[], page_css[], page_js[];

#define TIMES_FINE 200000 /* samples: of more the times are to 10 ms */

enum page_flag { /* as in page/tree.js */
	PAGE_GUESS = 1,
	PAGE_APPROX = 2,
	PAGE_INLINED = 4,
};

static void put_member(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\":", name);
	text_json(out, value ? value : "");
	putc(',', out);
}

static void put_meta(const struct profile *p, FILE *out)
{
	const struct profile_meta *m = &p->meta;

	fputs("{\"meta\":{", out);
	put_member(out, "title", text_title(m, ""));
	put_member(out, "command", m->command);
	put_member(out, "target", m->target);
	put_member(out, "unit", m->unit ? m->unit : "samples");
	put_member(out, "more", text_more(m, p->base != NULL) ? m->more : "");
	put_member(out, "loss", m->loss);
	if (m->why && *m->why)
		put_member(out, "why", m->why);
	if (m->heading)
		fputs("\"headed\":true,", out);
	if (m->before)
		put_member(out, "before", m->before);
	if (m->loss_before)
		put_member(out, "lossBefore", m->loss_before);
	if (m->chance)
		put_member(out, "chance", m->chance);
	fprintf(out, "\"start\":%" PRIu64 ",\"duration\":%" PRIu64 ".%03" PRIu64 ",\"frequency\":%g}",
	        m->start_unix_ns / 1000000, m->duration_ns / 1000000000, m->duration_ns / 1000000 % 1000,
	        isfinite(m->frequency) ? m->frequency : 0.0);
}

static void put_kinds(FILE *out)
{
	for (u32 i = 0; i < KIND_MAX; i++)
		fprintf(out, "%s\"%s\"", i ? "," : ",\n\"kinds\":[", text_kind(i));
	putc(']', out);
}

static void put_words(const struct profile *p, FILE *out)
{
	char words[WORDS_LEGEND];

	for (u32 i = 0; i < KIND_MAX; i++)
		fprintf(out, "%s\"%s\"", i ? "," : ",\n\"labels\":[", words_legend(p, i, words));
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		fprintf(out, "%s\"%s\":[\"%s\",\"%s\",\"%s\"]", r == runtimes ? "],\n\"words\":{" : ",", (*r)->name,
		        words_of_runtime(*r, KIND_SCRIPT), words_of_runtime(*r, KIND_SCRIPT_BASELINE),
		        words_of_runtime(*r, KIND_SCRIPT_JIT));
	putc('}', out);
}

static u32 page_flags(u32 flags)
{
	return (flags & FRAME_GUESS ? PAGE_GUESS : 0) | (flags & FRAME_APPROX ? PAGE_APPROX : 0) |
	       (flags & FRAME_INLINED ? PAGE_INLINED : 0);
}

struct strings {
	const char **s; /* sorted, each once */
	u32 n;
};

static void cleanup_strings(struct strings *strings)
{
	free(strings->s);
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct error *collect_strings(const struct profile *p, struct strings *ret)
{
	const char **s = calloc(p->nfunctions, 3 * sizeof(*s));
	u32 n = 0;

	if (!s)
		return &error_no_memory;
	for (u32 i = 0; i < p->nfunctions; i++) {
		s[i * 3] = text_name(&p->functions[i]);
		s[i * 3 + 1] = p->functions[i].module;
		s[i * 3 + 2] = p->functions[i].file;
	}
	qsort(s, p->nfunctions * 3ul, sizeof(*s), compare_strings);
	for (u32 i = 0; i < p->nfunctions * 3; i++)
		if (!n || strcmp(s[n - 1], s[i]))
			s[n++] = s[i];
	*ret = (struct strings){s, n};
	return NULL;
}

static u32 string_index(const struct strings *strings, const char *s)
{
	return (u32)((const char **)bsearch(&s, strings->s, strings->n, sizeof(s), compare_strings) - strings->s);
}

static void put_tiers(const struct profile *p, const struct order *o, FILE *out)
{
	bool any = false;

	fputs(",\n\"tiers\":{", out);
	for (u32 i = 0; i < p->nfunctions; i++) {
		const struct profile_tiers *t = &p->functions[o->functions[i]].tiers;

		if (!t->script && !t->baseline && !t->jit)
			continue;
		fprintf(out, "%s\"%u\":[%u,%u,%u,%u,%u]", any ? "," : "", i, t->script, t->baseline, t->jit, t->inlined,
		        t->approx);
		any = true;
	}
	putc('}', out);
}

static void put_chances(const struct profile *p, const struct order *o, FILE *out)
{
	bool any = false;

	if (!p->meta.chance)
		return;
	fputs(",\n\"chance\":{", out);
	for (u32 i = 0; i < p->nfunctions; i++) {
		const struct profile_function *f = &p->functions[o->functions[i]];

		if (!f->chance_self && !f->chance_total)
			continue;
		fprintf(out, "%s\"%u\":[%.3g,%.3g]", any ? "," : "", i, f->chance_self, f->chance_total);
		any = true;
	}
	putc('}', out);
}

static struct error *put_functions(const struct profile *p, const struct order *o, FILE *out)
{
	cleanup(strings) struct strings strings = {0};
	struct error *err = collect_strings(p, &strings);

	if (err)
		return err;
	for (u32 i = 0; i < strings.n; i++) {
		fputs(i ? ",\n" : ",\n\"strings\":[", out);
		text_json(out, strings.s[i]);
	}
	for (u32 i = 0; i < p->nfunctions; i++) {
		const struct profile_function *f = &p->functions[o->functions[i]];

		fprintf(out, "%s%u,%u,%u,%u,%u,%u", i ? "," : "],\n\"functions\":[",
		        string_index(&strings, text_name(f)), string_index(&strings, f->module),
		        string_index(&strings, f->file), f->kind == KIND_PROCESS ? 0 : f->line, page_flags(f->flags),
		        f->kind);
	}
	putc(']', out);
	put_tiers(p, o, out);
	put_chances(p, o, out);
	return NULL;
}

static void put_each(const struct profile *p, const struct order *o, FILE *out, const char *name,
        u64 (*value)(const struct profile *p, const struct order *o, u32 i))
{
	fprintf(out, ",\n\"%s\":[", name);
	for (u32 i = 0; i < p->nnodes; i++) {
		if (i)
			putc_unlocked(',', out);
		text_number(out, value(p, o, i));
	}
	putc(']', out);
}

static u64 node_function(const struct profile *p, const struct order *o, u32 i)
{
	return o->rank[p->nodes[o->nodes[i]].function];
}

static u64 node_up(const struct profile *p, const struct order *o, u32 i)
{
	return i ? o->depth[o->nodes[i - 1]] + 1 - o->depth[o->nodes[i]] : 0;
}

static u64 node_self(const struct profile *p, const struct order *o, u32 i)
{
	return p->nodes[o->nodes[i]].self;
}

static u64 node_base(const struct profile *p, const struct order *o, u32 i)
{
	return p->base[o->nodes[i]];
}

static u64 node_more(const struct profile *p, const struct order *o, u32 i)
{
	return p->nodes[o->nodes[i]].more;
}

static void put_nodes(const struct profile *p, const struct order *o, FILE *out)
{
	put_each(p, o, out, "fn", node_function);
	put_each(p, o, out, "up", node_up);
	put_each(p, o, out, "self", node_self);
	if (p->base) {
		put_each(p, o, out, "base", node_base);
		fprintf(out, ",\n\"baseScale\":%.9g", p->base_scale);
	} else if (text_more(&p->meta, false)) {
		put_each(p, o, out, "more", node_more);
	}
}

/* The next run of samples that are of one step and node; *count: how many. */
static u32 next_run(const struct profile *p, u32 i, u32 step, u32 *count)
{
	u32 begin = i;

	while (i < p->ntimes && p->times[i].when / step == p->times[begin].when / step &&
	        p->times[i].node == p->times[begin].node)
		i++;
	*count = i - begin;
	return i;
}

/* Of many samples the times are coarse: what is equal then is one. */
static u32 step_of(const struct profile *p)
{
	return p->ntimes > TIMES_FINE ? 10 : 1;
}

static void put_runs(const struct profile *p, FILE *out, const char *name, const u32 *place)
{
	u32 step = step_of(p), before = 0, count;

	fprintf(out, ",\"%s\":[", name);
	for (u32 i = 0, next; i < p->ntimes; i = next) {
		next = next_run(p, i, step, &count);
		if (i)
			putc_unlocked(',', out);
		text_number(out, !strcmp(name, "node")    ? place[p->times[i].node]
		                 : !strcmp(name, "count") ? count
		                                          : p->times[i].when / step - before);
		before = p->times[i].when / step;
	}
	putc(']', out);
}

static struct error *put_times(const struct profile *p, const struct order *o, FILE *out)
{
	cleanup(free) u32 *place = p->ntimes && !p->base ? calloc(p->nnodes, sizeof(*place)) : NULL;

	if (!p->ntimes || p->base)
		return NULL;
	if (!place)
		return &error_no_memory;
	for (u32 i = 0; i < p->nnodes; i++)
		place[o->nodes[i]] = i;
	fprintf(out, ",\n\"times\":{\"step\":%.9g", (double)step_of(p) * PROFILE_TIME_STEP_NS / 1e6);
	put_runs(p, out, "after", place);
	put_runs(p, out, "node", place);
	put_runs(p, out, "count", place);
	putc('}', out);
	return NULL;
}

static struct error *put_data(const struct profile *p, FILE *out)
{
	cleanup(order) struct order *order = NULL;
	struct error *err = order_create(p, &order);

	if (err)
		return err;
	put_meta(p, out);
	put_kinds(out);
	put_words(p, out);
	err = put_functions(p, order, out);
	if (err)
		return err;
	put_nodes(p, order, out);
	if (!p->base) {
		histogram_put(p->meta.stats, out);
		requests_put(p->meta.stats, out);
	}
	err = put_times(p, order, out);
	if (!err && p->meta.source) {
		fputs(",\n\"source\":", out);
		err = source_put(p, out);
	}
	putc('}', out);
	return err;
}

void html_put_digest(FILE *out, const char *hex)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	/* 6 digits are 4 of base64. Of the 64 digits of a SHA-256 4 are left, which are 3 of base64 and a filler. */
	for (size_t i = 0; i < 64; i += 6) {
		char group[7] = "000000";
		unsigned long v;

		memcpy(group, hex + i, i < 60 ? 6 : 4);
		v = strtoul(group, NULL, 16);
		for (int shift = 18; shift >= (i < 60 ? 0 : 6); shift -= 6)
			putc(digits[v >> shift & 63], out);
	}
	putc('=', out);
}

static struct error *put_part(const struct profile *p, FILE *out, const char *part, size_t length)
{
#define IS(name) (length == sizeof(name) - 1 && !memcmp(part, name, length))
	if (IS("style"))
		fputs(page_css, out);
	else if (IS("script"))
		fputs(page_js, out);
	else if (IS("style-hash"))
		html_put_digest(out, page_css_sha256);
	else if (IS("script-hash"))
		html_put_digest(out, page_js_sha256);
	else if (IS("data"))
		return put_data(p, out);
#undef IS
	return NULL;
}

static struct error *write_html(const struct profile *p, FILE *out)
{
	const char *at = page_html, *open, *close;
	struct error *err = NULL;

	while (!err && (open = strstr(at, "{{")) && (close = strstr(open, "}}"))) {
		fwrite(at, 1, open - at, out);
		err = put_part(p, out, open + 2, close - open - 2);
		at = close + 2;
	}
	if (err)
		return err;
	fputs(at, out);
	return text_finish(out, "flame graph page");
}

const struct format format_html = {
        .name = "html",
        .extension = ".html",
        .description = "a flame graph as one page that needs nothing else",
        .compares = true,
        .processes = PROCESSES_SEVERAL,
        .write = write_html,
};
