/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processed profile format of the Firefox Profiler (profiler.firefox.com), version 70: src/types/profile.ts and
 * docs-developer/CHANGELOG-formats.md of firefox-devtools/profiler. Tables are stored by column. A function is one
 * function and one frame there, a node of the profile one stack.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "format.h"
#include "samples.h"
#include "text.h"
#include "unwind/cleanup.h"
#include "unwind/table.h"
#include "words.h"

#define FORMAT_VERSION 70
#define GECKO_VERSION  36
#define NONE           UINT32_MAX

struct firefox {
	FILE *out;
	const struct profile *p;
	struct samples s;
	struct order *order;
	u32 *stack;                      /* of each node; NONE: it is no code */
	u32 *name, *file, *resource;     /* of each function: strings; resource NONE */
	struct table strings, resources; /* by hash: number */
	const char **text;               /* of each string */
	u32 *resource_name;              /* a string */
	u32 nstrings, nresources, nstacks;
	bool failed;
};

static void cleanup_firefox(struct firefox *w)
{
	samples_free(&w->s);
	order_destroy(w->order);
	free(w->stack);
	free(w->name);
	free(w->file);
	free(w->resource);
	free(w->text);
	free(w->resource_name);
	table_free(&w->strings);
	table_free(&w->resources);
}

static u32 string_of(struct firefox *w, const char *s)
{
	u64 key = XXH3_64bits(s, strlen(s)) | 1, *known = table_get(&w->strings, key);

	if (known)
		return (u32)*known;
	w->failed |= table_put(&w->strings, key, w->nstrings) != NULL;
	w->text[w->nstrings] = s;
	return w->nstrings++;
}

static u32 resource_of(struct firefox *w, const struct profile_function *f)
{
	u32 string = string_of(w, f->image ? w->p->images[f->image].path : f->module);
	u64 *known = table_get(&w->resources, string + 1ull);

	if (!f->image && !*f->module)
		return NONE;
	if (known)
		return (u32)*known;
	w->failed |= table_put(&w->resources, string + 1ull, w->nresources) != NULL;
	w->resource_name[w->nresources] = string;
	return w->nresources++;
}

/* Functions are numbered by rank: equal profiles give equal files. */
static const struct profile_function *function_at(const struct firefox *w, u32 rank)
{
	return &w->p->functions[w->order->functions[rank]];
}

static struct error *number_all(struct firefox *w)
{
	const struct profile *p = w->p;
	u32 n = p->nfunctions;

	w->stack = calloc(p->nnodes, sizeof(*w->stack));
	w->name = calloc(n, sizeof(*w->name));
	w->file = calloc(n, sizeof(*w->file));
	w->resource = calloc(n, sizeof(*w->resource));
	w->text = calloc(3 * (size_t)n + 1, sizeof(*w->text));
	w->resource_name = calloc(n, sizeof(*w->resource_name));
	if (!w->stack || !w->name || !w->file || !w->resource || !w->text || !w->resource_name)
		return &error_no_memory;
	for (u32 i = 0; i < n; i++) {
		const struct profile_function *f = function_at(w, i);

		w->name[i] = string_of(w, text_name(f));
		w->file[i] = string_of(w, f->file);
		w->resource[i] = resource_of(w, f);
	}
	for (u32 i = 0; i < p->nnodes; i++) { /* a child comes behind its parent */
		u32 node = w->order->nodes[i];

		w->stack[node] = samples_is_code(p, node) ? w->nstacks++ : NONE;
	}
	return w->failed ? &error_no_memory : NULL;
}

/* A column with a value for each of n. */
static void put_column(struct firefox *w, const char *name, u32 n, void (*value)(struct firefox *w, u32 i))
{
	fprintf(w->out, "\"%s\":[", name);
	for (u32 i = 0; i < n; i++) {
		if (i)
			putc_unlocked(',', w->out);
		value(w, i);
	}
	fputs("],", w->out);
}

static void put_null(struct firefox *w, u32 i)
{
	fputs("null", w->out);
}

static void put_zero(struct firefox *w, u32 i)
{
	putc_unlocked('0', w->out);
}

static void put_one(struct firefox *w, u32 i)
{
	putc_unlocked('1', w->out);
}

static void put_minus_one(struct firefox *w, u32 i)
{
	fputs("-1", w->out);
}

static void put_false(struct firefox *w, u32 i)
{
	fputs("false", w->out);
}

static void put_own_number(struct firefox *w, u32 i)
{
	text_number(w->out, i);
}

static void put_string(struct firefox *w, u32 i)
{
	text_json(w->out, w->text[i]);
}

static void put_name(struct firefox *w, u32 i)
{
	text_number(w->out, w->name[i]);
}

static void put_file(struct firefox *w, u32 i)
{
	text_number(w->out, w->file[i]);
}

static void put_source(struct firefox *w, u32 i)
{
	if (*function_at(w, i)->file)
		text_number(w->out, i);
	else
		put_null(w, i);
}

static void put_line(struct firefox *w, u32 i)
{
	if (function_at(w, i)->line)
		text_number(w->out, function_at(w, i)->line);
	else
		put_null(w, i);
}

static void put_resource(struct firefox *w, u32 i)
{
	if (w->resource[i] == NONE)
		put_minus_one(w, i);
	else
		text_number(w->out, w->resource[i]);
}

static void put_resource_name(struct firefox *w, u32 i)
{
	text_number(w->out, w->resource_name[i]);
}

static void put_category(struct firefox *w, u32 i)
{
	text_number(w->out, words_kind(function_at(w, i)));
}

static void put_length(struct firefox *w, u32 n, const char *end)
{
	fprintf(w->out, "\"length\":%u}%s", n, end);
}

static void put_functions(struct firefox *w)
{
	u32 n = w->p->nfunctions;

	fputs("\"frameTable\":{", w->out);
	put_column(w, "address", n, put_minus_one);
	put_column(w, "lib", n, put_minus_one);
	put_column(w, "inlineDepth", n, put_zero);
	put_column(w, "category", n, put_category);
	put_column(w, "subcategory", n, put_zero);
	put_column(w, "func", n, put_own_number);
	put_column(w, "nativeSymbol", n, put_null);
	put_column(w, "innerWindowID", n, put_null);
	put_column(w, "line", n, put_line);
	put_column(w, "column", n, put_null);
	put_column(w, "originalLocation", n, put_null);
	put_length(w, n, ",\n\"funcTable\":{");
	put_column(w, "name", n, put_name);
	put_column(w, "isJS", n, put_false);
	put_column(w, "relevantForJS", n, put_false);
	put_column(w, "resource", n, put_resource);
	put_column(w, "source", n, put_source);
	put_column(w, "lineNumber", n, put_line);
	put_column(w, "columnNumber", n, put_null);
	put_column(w, "originalLocation", n, put_null);
	put_length(w, n, ",\n");
}

/* A source for each function: their numbers are the same then. */
static void put_places(struct firefox *w)
{
	u32 n = w->p->nfunctions;

	fputs("\"sources\":{", w->out);
	put_column(w, "id", n, put_null);
	put_column(w, "filename", n, put_file);
	put_column(w, "startLine", n, put_one);
	put_column(w, "startColumn", n, put_one);
	put_column(w, "sourceMapURL", n, put_null);
	put_column(w, "content", n, put_null);
	put_length(w, n, ",\n\"resourceTable\":{");
	put_column(w, "name", w->nresources, put_resource_name);
	put_column(w, "host", w->nresources, put_null);
	put_column(w, "type", w->nresources, put_one); /* a library */
	put_length(w, w->nresources, ",\n");
	fputs("\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0},\n"
	      "\"sourceLocationTable\":{\"source\":[],\"line\":[],\"column\":[],\"length\":0},\n",
	        w->out);
}

static void put_stacks(struct firefox *w)
{
	const char *comma = "";

	fputs("\"stackTable\":{\"frame\":[", w->out);
	for (u32 i = 0; i < w->p->nnodes; i++) {
		u32 node = w->order->nodes[i];

		if (w->stack[node] == NONE)
			continue;
		fputs(comma, w->out);
		text_number(w->out, w->order->rank[w->p->nodes[node].function]);
		comma = ",";
	}
	fputs("],\"prefixOffset\":[", w->out);
	comma = "";
	for (u32 i = 0; i < w->p->nnodes; i++) {
		u32 node = w->order->nodes[i], prefix = w->stack[w->p->nodes[node].parent];

		if (w->stack[node] == NONE)
			continue;
		fputs(comma, w->out);
		text_number(w->out, prefix == NONE ? 0 : w->stack[node] - prefix);
		comma = ",";
	}
	fputs("],", w->out);
	put_length(w, w->nstacks, ",\n");
}

static void put_shared(struct firefox *w)
{
	fputs("\"shared\":{", w->out);
	put_stacks(w);
	put_functions(w);
	put_places(w);
	fputs("\"stringArray\":[", w->out);
	for (u32 i = 0; i < w->nstrings; i++) {
		fputs(i ? ",\n" : "\n", w->out);
		put_string(w, i);
	}
	fputs("]},\n", w->out);
}

static void put_categories(FILE *out)
{
	static const char *const colours[KIND_MAX] = {[KIND_KERNEL] = "orange",
	        [KIND_NATIVE] = "blue",
	        [KIND_CXX] = "lightblue",
	        [KIND_RUST] = "brown",
	        [KIND_VM] = "purple",
	        [KIND_SCRIPT] = "yellow",
	        [KIND_SCRIPT_BASELINE] = "yellow",
	        [KIND_SCRIPT_JIT] = "green",
	        [KIND_SCRIPT_NATIVE] = "magenta",
	        [KIND_WORK] = "purple",
	        [KIND_RUNNING] = "red",
	        [KIND_RUNNABLE] = "yellow",
	        [KIND_WAITING] = "lightblue"};

	fputs("\"categories\":[", out);
	for (u32 i = 0; i < KIND_MAX; i++)
		fprintf(out, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}", i ? "," : "",
		        text_kind(i), colours[i] ? colours[i] : "grey");
	fputs("],", out);
}

static void put_meta(struct firefox *w)
{
	const struct profile_meta *m = &w->p->meta;
	double start = (double)m->start_unix_ns / 1e6;

	fprintf(w->out,
	        "{\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,\"interval\":%.6f,\"startTime\":%.3f,"
	        "\"processType\":0,\"stackwalk\":1,\"platform\":\"Linux\",\"symbolicated\":true,"
	        "\"symbolicationNotSupported\":true,\"sourceCodeIsNotOnSearchfox\":true,\"markerSchema\":[],",
	        GECKO_VERSION, FORMAT_VERSION, w->s.step_ns / 1e6, start);
	put_categories(w->out);
	fputs("\"importedFrom\":\"yrt " YRT_VERSION "\",\"arguments\":", w->out);
	text_json(w->out, m->command ? m->command : "");
	fputs(",\"misc\":", w->out);
	text_json(w->out, m->loss ? m->loss : "");
	fputs(",\"product\":", w->out);
	text_json(w->out, m->target ? m->target : "yrt");
	fputs("},\"libs\":[],\n", w->out);
}

/* The viewer knows times in milliseconds only. */
static void put_weight(struct firefox *w, u64 count, bool comma, bool is_time)
{
	if (comma)
		putc_unlocked(',', w->out);
	if (is_time)
		fprintf(w->out, "%" PRIu64 ".%06" PRIu64, count / 1000000, count % 1000000);
	else
		text_number(w->out, count);
}

static void put_samples(struct firefox *w, const struct samples_thread *t)
{
	bool weighted = !w->s.timed, is_time = weighted && text_is_time(&w->p->meta);
	bool bytes = !strcmp(text_unit(&w->p->meta), "bytes");

	fputs("\"samples\":{\"stack\":[", w->out);
	for (u32 i = t->first; i < t->first + t->n; i++) {
		u32 stack = w->stack[w->s.list[i].node];

		if (i > t->first)
			putc_unlocked(',', w->out);
		if (stack == NONE)
			put_null(w, 0);
		else
			text_number(w->out, stack);
	}
	fputs("],\"time\":[", w->out);
	for (u32 i = t->first; i < t->first + t->n; i++)
		fprintf(w->out, "%s%.3f", i > t->first ? "," : "", (double)w->s.list[i].ns / 1e6);
	fputs(weighted ? "],\"weight\":[" : "],\"weight\":null", w->out);
	for (u32 i = t->first; weighted && i < t->first + t->n; i++)
		put_weight(w, w->s.list[i].count, i > t->first, is_time);
	fputs(weighted ? "],\"weightType\":" : ",\"weightType\":", w->out);
	fputs(is_time ? "\"tracing-ms\"," : bytes ? "\"bytes\"," : "\"samples\",", w->out);
	put_length(w, t->n, ",");
}

static void put_thread(struct firefox *w, const struct samples_thread *t, bool comma)
{
	char name[SAMPLES_NAME];

	fputs(comma ? ",\n{\"name\":" : "\n{\"name\":", w->out);
	text_json(w->out, samples_name(t, false, name));
	fputs(",\"processName\":", w->out);
	text_json(w->out, samples_name(t, true, name));
	fprintf(w->out,
	        ",\"pid\":\"%u\",\"tid\":\"%u\",\"isMainThread\":%s,\"processType\":\"default\",\"processStartupTime\":"
	        "0,"
	        "\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],",
	        t->pid, t->tid, t->pid == t->tid ? "true" : "false");
	put_samples(w, t);
	fputs("\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],\"category\":[],"
	      "\"length\":0}}",
	        w->out);
}

static struct error *write_firefox(const struct profile *p, FILE *out)
{
	cleanup(firefox) struct firefox w = {.p = p, .out = out};
	struct error *err = order_create(p, &w.order);
	bool any = false;

	if (!err)
		err = samples_create(p, w.order, &w.s);
	if (!err)
		err = number_all(&w);
	if (err)
		return err;
	put_meta(&w);
	put_shared(&w);
	fputs("\"threads\":[", out);
	for (u32 i = 0; i < w.s.nthreads; i++) {
		if (w.s.threads[i].n || (!any && i + 1 == w.s.nthreads)) {
			put_thread(&w, &w.s.threads[i], any);
			any = true;
		}
	}
	fputs("]}\n", out);
	return text_finish(out, "profile for the Firefox Profiler");
}

const struct format format_firefox = {
        .name = "firefox",
        .extension = ".firefox.json",
        .description = "for profiler.firefox.com",
        .threads = true,
        .processes = PROCESSES_EACH,
        .write = write_firefox,
};
