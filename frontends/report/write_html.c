/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as one page: page/report.html with texts put in, and for each view that a finding is of the data of its
 * flame graph page. That page itself is carried once, in two parts. All text of targets is escaped.
 */
#include <stdlib.h>
#include <string.h>

#include "crash_stack.h"
#include "frontends/format/format.h"
#include "frontends/format/html.h"
#include "frontends/format/text.h"
#include "picture.h"
#include "unwind/clean_text.h"
#include "unwind/cleanup.h"
#include "write.h"

extern const char report_page_html[], report_page_css[], report_page_js[];
extern const char report_page_css_sha256[], report_page_js_sha256[];

#define DATA_BEGIN "<script id=\"data\" type=\"application/json\">"
#define DATA_END   "</script>"
#define BAR        180.0

struct page {
	const struct findings *f;
	const struct evidence *e;
	const struct report_meta *meta;
	FILE *out;
};

static void put(const struct page *w, const char *text)
{
	text_xml(w->out, text ? text : "");
}

static void put_clean(const struct page *w, const char *text)
{
	char clean[TEXT_CLEAN];

	text_clean(text, clean);
	text_xml(w->out, clean);
}

/* What stands between backticks is code. */
static void put_marked(const struct page *w, const char *text)
{
	char clean[TEXT_CLEAN];
	bool code = false;

	text_clean(text, clean);
	for (char *at = clean, *piece; (piece = strsep(&at, "`")); code = !code) {
		fputs(code ? "<code>" : "", w->out);
		text_xml(w->out, piece);
		fputs(code ? "</code>" : "", w->out);
	}
}

/* --- a finding --- */

static void put_mark(const struct page *w, const struct finding *f)
{
	char weight[128];

	report_weight(f, weight, sizeof(weight));
	fprintf(w->out, "<p class=\"mark\"><span class=\"chip\">%s</span>", report_severity(f->severity));
	fprintf(w->out,
	        "<svg class=\"weight\" viewBox=\"0 0 180 8\" aria-hidden=\"true\"><rect class=\"rail\" width=\"180\" "
	        "height=\"8\" "
	        "rx=\"4\"/><rect class=\"bar\" width=\"%.1f\" height=\"8\" rx=\"4\"/>",
	        BAR * f->share);
	if (f->high - f->low > 0.01)
		fprintf(w->out, "<path class=\"interval\" d=\"M%.1f 4H%.1f\"/>", BAR * f->low, BAR * f->high);
	fputs("</svg><span>", w->out);
	put(w, weight);
	if (f->compared)
		fprintf(w->out, f->was > 0 ? "; before: %.1f %%" : "; not there before", 100 * f->was);
	fputs("</span></p>\n", w->out);
}

static void put_places(const struct page *w, const char *what, const struct finding_site *sites, u32 n)
{
	if (!n)
		return;
	fprintf(w->out, "<dt>%s</dt><dd class=\"where\"><ul>", what);
	for (u32 i = 0; i < n; i++) {
		const struct finding_site *s = &sites[i];

		fputs("<li><code>", w->out);
		put_clean(w, s->function);
		fputs("</code>", w->out);
		if (*s->file) {
			fputs("<code class=\"file\">", w->out);
			put_clean(w, s->file);
			if (s->line)
				fprintf(w->out, ":%u", s->line);
			fputs("</code>", w->out);
		}
		if (s->share > 0)
			fprintf(w->out, "<small>%.1f %%</small>", 100 * s->share);
		if (s->text) {
			fputs("<code class=\"text\">", w->out);
			put_clean(w, s->text);
			fputs("</code>", w->out);
		}
		fputs("</li>", w->out);
	}
	fputs("</ul></dd>\n", w->out);
}

static void put_lines(const struct page *w, const char *what, const char *lines)
{
	if (!*lines)
		return;
	fprintf(w->out, "<dt>%s</dt><dd><ul>", what);
	while (*lines) {
		size_t n = strcspn(lines, "\n");
		cleanup(free) char *line = strndup(lines, n);

		fputs("<li>", w->out);
		put(w, line);
		fputs("</li>", w->out);
		lines += n + (lines[n] == '\n');
	}
	fputs("</ul></dd>\n", w->out);
}

/* Of a function's name what the page's search finds it by: without what means something to a regular expression. */
static void put_query(const struct page *w, const char *name)
{
	char clean[TEXT_CLEAN], bytes[2] = "";

	text_clean(name, clean);
	for (const char *at = clean; *at; at++) {
		if (strchr("\\^$.|?*+()[]{}/", *at))
			fputc('\\', w->out);
		bytes[0] = *at;
		if ((unsigned char)*at < 0x80)
			text_xml(w->out, bytes);
		else
			fputc(*at, w->out);
	}
}

/* Of one stack a picture says less than its lines. */
static struct error *put_crash(const struct page *w, const struct finding *f)
{
	char *text = NULL, *at, *line;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct error *err;

	if (!out)
		return &error_no_memory;
	err = crash_stack_write(f->stacks, f->rule->libraries, out);
	fclose(out);
	fputs("<pre class=\"stack\">", w->out);
	for (at = text; (line = strsep(&at, "\n")) && (at || *line);) {
		text_xml(w->out, line);
		fputs(at && *at ? "\n" : "", w->out);
	}
	fputs("</pre>\n", w->out);
	free(text);
	return err;
}

static struct error *put_graph(const struct page *w, const struct finding *f)
{
	const char *view = f->seen ? f->seen->name : "", *site = f->nsites ? f->site[0].function : "";
	bool kept = !strcmp(view, "kept"); /* no stacks, but ways to objects */
	struct error *err;

	if (!f->stacks || !f->stacks->nodes[0].total)
		return NULL;
	if (!strcmp(view, CRASH_VIEW))
		return put_crash(w, f);
	fprintf(w->out, "<figure><figcaption><span>%s</span><button type=\"button\" data-view=\"",
	        kept ? "what has grown, by what keeps it alive" : "the stacks that say so, from there on");
	put(w, view);
	fputs("\" data-query=\"", w->out);
	put_query(w, kept ? "" : site);
	fputs("\">Open in full</button></figcaption>\n", w->out);
	err = picture_write(f->stacks, kept ? "" : site, w->out);
	fputs("</figure>\n", w->out);
	return err;
}

static struct error *put_finding(const struct page *w, const struct finding *f)
{
	struct error *err;

	fprintf(w->out, "<article class=\"%s\" id=\"", report_severity(f->severity));
	put(w, f->rule->name);
	fputs("\">\n", w->out);
	put_mark(w, f);
	fputs("<h2>", w->out);
	put_clean(w, f->title);
	fputs("</h2>\n<p>", w->out);
	put_marked(w, f->why);
	fputs("</p>\n<dl>", w->out);
	put_places(w, "where", f->site, f->nsites);
	put_places(w, "called by", f->caller, f->ncallers);
	put_lines(w, "also", f->also ? f->also : "");
	fputs("<dt>change</dt><dd class=\"change\">", w->out);
	put_marked(w, f->change);
	fputs("</dd>\n", w->out);
	put_lines(w, "but", f->against);
	fputs("<dt>alone</dt><dd class=\"run\"><code>", w->out);
	put_clean(w, f->show);
	fputs("</code><button type=\"button\" data-copy=\"", w->out);
	put_clean(w, f->show);
	fputs("\">copy</button></dd></dl>\n", w->out);
	err = put_graph(w, f);
	fputs("</article>\n", w->out);
	return err;
}

/* --- parts of the page --- */

static struct error *put_findings(const struct page *w)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < w->f->n; i++)
		err = put_finding(w, &w->f->all[i]);
	return err;
}

static void put_changes(const struct page *w)
{
	const struct comparison *c = w->meta->changes;

	if (!c)
		return;
	fputs("<h2>What changed beyond chance</h2>\n<ul>", w->out);
	for (u32 i = 0; i < c->n; i++) {
		fputs("<li><code>", w->out);
		put_clean(w, c->change[i].function);
		fprintf(w->out, "</code> itself: %.1f %% before, %.1f %% after, &plusmn; %.1f (%s)</li>\n",
		        100 * c->change[i].before, 100 * c->change[i].after, 100 * c->change[i].error,
		        c->change[i].view);
	}
	for (u32 i = 0; i < c->ngone; i++) {
		fputs("<li>gone: ", w->out);
		put_clean(w, c->gone[i]);
		fputs("</li>\n", w->out);
	}
	fputs(c->n + c->ngone ? "</ul>" : "</ul><p>nothing</p>", w->out);
}

static void put_texts(const struct page *w, const char *class, char *const *texts, u32 n)
{
	fprintf(w->out, "<ul class=\"%s\">", class);
	for (u32 i = 0; i < n; i++) {
		fputs("<li>", w->out);
		put_clean(w, texts[i]);
		fputs("</li>\n", w->out);
	}
	fputs(n ? "</ul>" : "</ul><p>nothing</p>", w->out);
}

static void put_healthy(const struct page *w)
{
	for (enum healthy_group group = 0; group < HEALTHY_GROUPS; group++) {
		if (!report_healthy(w->f, group))
			continue;
		fprintf(w->out, "<details><summary>%s <small>%u looked at</small></summary><ul>",
		        report_healthy_group(group), report_healthy(w->f, group));
		for (u32 i = 0; i < w->f->nhealthy; i++) {
			if (w->f->healthy[i].group != group)
				continue;
			fputs("<li>", w->out);
			put_clean(w, w->f->healthy[i].text);
			fputs("</li>\n", w->out);
		}
		fputs("</ul></details>\n", w->out);
	}
	fputs(w->f->nhealthy ? "" : "<p>nothing</p>", w->out);
}

static void put_steps(const struct page *w)
{
	fputs("<ol>", w->out);
	for (u32 i = 0; i < w->e->nsteps; i++) {
		fputs(w->e->step[i].missing ? "<li class=\"missing\">" : "<li>", w->out);
		put_clean(w, w->e->step[i].text);
		fputs("</li>\n", w->out);
	}
	for (u32 i = 0; i < w->e->nviews; i++) {
		const char *loss = w->e->view[i].profile->meta.loss;

		if (!loss)
			continue;
		fprintf(w->out, "<li>%s: ", w->e->view[i].name);
		put_clean(w, loss);
		fputs("</li>\n", w->out);
	}
	if (w->f->unmeasured)
		fprintf(w->out, "<li>%u rules could not be decided by what was measured</li>\n", w->f->unmeasured);
	if (w->f->more)
		fprintf(w->out, "<li>%u lighter findings were left out</li>\n", w->f->more);
	fputs("</ol>", w->out);
}

static void put_facts(const struct page *w)
{
	const struct facts *f = &w->e->facts;
	cleanup(free) char *cpu = NULL, *rest = NULL;

	if (facts_find(f, "cpu"))
		cpu = finding_text(
		        "{cpu:2} of {cpus} CPUs used &middot; threads: {threads} &middot; {rss:b} resident", f);
	if (facts_find(f, "wall.threads"))
		rest = finding_text(" &middot; on average {wall.running:2} threads ran, {wall.queued:2} wanted a CPU, "
		                    "{wall.waiting:2} waited",
		        f);
	fputs(cpu ? cpu : "", w->out); /* only numbers and units are put in */
	fputs(rest ? rest : "", w->out);
}

static void put_wholes(const struct page *w)
{
	cleanup(free) char *text = w->f->n ? report_wholes(w->e) : NULL;

	put(w, text);
}

/* The page of a view, cut where its data is. */
static struct error *split_page(const struct evidence_view *v, char **text, char **data, char **rest)
{
	size_t size;
	FILE *out = open_memstream(text, &size);
	struct error *err = out ? format_write(&format_html, v->profile, out) : &error_no_memory;

	if (out)
		fclose(out);
	if (err)
		return err;
	*data = strstr(*text, DATA_BEGIN);
	*rest = *data ? strstr(*data, DATA_END) : NULL;
	if (!*rest)
		return error_new(ERROR_INTERNAL, "the page of flame graphs has no place for data");
	*data += strlen(DATA_BEGIN);
	return NULL;
}

static void put_slice(FILE *out, const char *from, const char *to)
{
	cleanup(free) char *text = strndup(from, (size_t)(to - from));

	text_json(out, text ? text : "");
}

static bool is_used(const struct page *w, const struct evidence_view *v)
{
	for (u32 i = 0; i < w->f->n; i++)
		if (w->f->all[i].view == v)
			return true;
	return false;
}

static struct error *put_views(const struct page *w)
{
	struct error *err = NULL;
	bool first = true;

	for (u32 i = 0; !err && i < w->e->nviews; i++) {
		const struct evidence_view *v = &w->e->view[i];
		cleanup(free) char *text = NULL;
		char *data, *rest;

		if (!is_used(w, v))
			continue;
		err = split_page(v, &text, &data, &rest);
		if (err)
			break;
		if (first) {
			fputs("<script id=\"page\" type=\"application/json\">[", w->out);
			put_slice(w->out, text, data);
			fputs(",", w->out);
			put_slice(w->out, rest, rest + strlen(rest));
			fputs("]</script>\n", w->out);
		}
		first = false;
		fprintf(w->out, "<script id=\"view-%s\" type=\"application/json\">%.*s</script>\n", v->name,
		        (int)(rest - data), data);
	}
	return err;
}

static struct error *put_part(const struct page *w, const char *part, size_t length)
{
	const struct findings *f = w->f;

#define IS(name) (length == sizeof(name) - 1 && !memcmp(part, name, length))
	if (IS("style"))
		fputs(report_page_css, w->out);
	else if (IS("script"))
		fputs(report_page_js, w->out);
	else if (IS("style-hash"))
		html_put_digest(w->out, report_page_css_sha256);
	else if (IS("script-hash"))
		html_put_digest(w->out, report_page_js_sha256);
	else if (IS("graph-style-hash"))
		html_put_digest(w->out, page_css_sha256);
	else if (IS("graph-script-hash"))
		html_put_digest(w->out, page_js_sha256);
	else if (IS("title") || IS("verdict"))
		put_clean(w, f->verdict);
	else if (IS("target"))
		put_clean(w, w->e->target ? w->e->target : "");
	else if (IS("state"))
		fputs(f->n ? report_severity(f->all[0].severity) : "healthy", w->out);
	else if (IS("command"))
		put_clean(w, w->meta->command);
	else if (IS("facts"))
		put_facts(w);
	else if (IS("wholes"))
		put_wholes(w);
	else if (IS("changes"))
		put_changes(w);
	else if (IS("healthy"))
		put_healthy(w);
	else if (IS("seen"))
		put_texts(w, "seen", w->f->seen, w->f->nseen);
	else if (IS("steps"))
		put_steps(w);
	else if (IS("findings"))
		return put_findings(w);
	else if (IS("views"))
		return put_views(w);
#undef IS
	return NULL;
}

struct error *report_write_html(
        const struct findings *f, const struct evidence *e, const struct report_meta *meta, FILE *out)
{
	const struct page w = {f, e, meta, out};
	const char *at = report_page_html, *open, *close;
	struct error *err = NULL;

	while (!err && (open = strstr(at, "{{")) && (close = strstr(open, "}}"))) {
		fwrite(at, 1, (size_t)(open - at), out);
		err = put_part(&w, open + 2, (size_t)(close - open - 2));
		at = close + 2;
	}
	if (err)
		return err;
	fputs(at, out);
	return text_finish(out, "report");
}
