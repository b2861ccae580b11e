/* SPDX-License-Identifier: Apache-2.0 */
/* A report as Markdown, which is also what a terminal gets, and as JSON. */
#include <errno.h>
#include <string.h>

#include "crash_stack.h"
#include "finding_tree.h"
#include "frontends/format/format.h"
#include "frontends/format/text.h"
#include "probes/event.h"
#include "unwind/clean_text.h"
#include "unwind/cleanup.h"
#include "unwind/runtime.h"
#include "write.h"

#define HEALTHY_SHOWN 3 /* of each group */

const char *report_severity(enum severity s)
{
	static const char *const words[] = {"problem", "waste", "remark"};

	return words[s];
}

/* What the shares of a view are shares of. */
static const char *whole_of(const struct evidence_view *v)
{
	static const struct {
		const char *view, *whole;
	} wholes[] = {{"clock", "of CPU time"}, {"wall", "of the time of threads that are not idle"},
	        {"wait", "of the time off the CPU"}, {"lock", "of the time spent waiting for locks"},
	        {"io", "of the time in file I/O"}, {"net", "of the time in calls on sockets"},
	        {"fault", "of page faults"}};

	for (size_t i = 0; i < sizeof(wholes) / sizeof(*wholes); i++)
		if (!strcmp(v->name, wholes[i].view))
			return wholes[i].whole;
	return "of what was counted";
}

const char *report_healthy_group(enum healthy_group group)
{
	static const char *const names[] = {"CPU time", "Waiting", "Memory", "The language's runtime", "The system"};

	return names[group];
}

u32 report_healthy(const struct findings *f, enum healthy_group group)
{
	u32 n = 0;

	for (u32 i = 0; i < f->nhealthy; i++)
		n += f->healthy[i].group == group;
	return n;
}

#define SAMPLED "100 % of CPU time are the {clock.cpus:2} CPUs that the program used while that was sampled"
#define COUNTED " while the counters were read, before, it used {cpu:2}."
#define WAITED                                                                                                         \
	"100 % of the time of threads are the {wall.threads:1} that were not idle, on average: {wall.running:1} ran, " \
	"{wall.queued:1} waited for a CPU, and {wall.waiting:1} for something else."

char *report_wholes(const struct evidence *e)
{
	const struct facts *f = &e->facts;
	cleanup(free) char *cpu = NULL, *wall = NULL;
	char *ret = NULL;

	if (evidence_view(e, "clock") && facts_find(f, "clock.cpus"))
		cpu = finding_text(
		        facts_find(f, "cpu") && facts_find(f, "seconds") ? SAMPLED ";" COUNTED : SAMPLED ".", f);
	if (evidence_view(e, "wall") && facts_find(f, "wall.threads"))
		wall = finding_text(WAITED, f);
	if (asprintf(&ret, "%s%s%s", cpu ? cpu : "", cpu && wall ? " " : "", wall ? wall : "") < 0)
		return NULL;
	return ret;
}

void report_weight(const struct finding *f, char *ret, size_t size)
{
	double half = 50 * (f->high - f->low);
	int decimals = finding_decimals(f->share);

	if (!f->view)
		snprintf(ret, size, "%.*f %%", decimals, 100 * f->share);
	else if (!strcmp(f->view->name, "crash"))
		snprintf(ret, size, "of the thread that died");
	else if (half < 0.5)
		snprintf(ret, size, "%.*f %% %s", decimals, 100 * f->share, whole_of(f->view));
	else
		snprintf(ret, size, "%.*f ± %.0f %% %s", decimals, 100 * f->share, half, whole_of(f->view));
}

/* --- Markdown --- */

/* Names of targets may contain what Markdown takes for markup. */
static void put_code(FILE *out, const char *s)
{
	char clean[TEXT_CLEAN];
	const char *quote;

	text_clean(s, clean);
	quote = strchr(clean, '`') ? "``" : "`";
	fprintf(out, "%s%s%s%s%s", quote, quote[1] ? " " : "", clean, quote[1] ? " " : "", quote);
}

static void put_text(FILE *out, const char *s)
{
	char clean[TEXT_CLEAN];

	text_clean(s, clean);
	fputs(clean, out);
}

static void put_site(FILE *out, const struct finding_site *s)
{
	put_code(out, s->function);
	if (*s->file) {
		fputs(" in ", out);
		put_code(out, s->file);
		if (s->line)
			fprintf(out, ", line %u", s->line);
	}
	if (s->share > 0)
		fprintf(out, " (%.1f %%)", 100 * s->share);
	if (s->text) {
		fputs(": ", out);
		put_code(out, s->text);
	}
	fputc('\n', out);
}

static void put_sites(FILE *out, const struct finding *f)
{
	for (u32 i = 0; i < f->nsites; i++) {
		fputs(i ? "  - " : "- where: ", out);
		put_site(out, &f->site[i]);
	}
	for (u32 i = 0; i < f->ncallers; i++) {
		fputs(i ? "  - which is called by " : "- called by ", out);
		put_site(out, &f->caller[i]);
	}
}

static struct error *put_stacks(FILE *out, const struct finding *f)
{
	struct error *err;

	if (!f->stacks)
		return NULL;
	fputs("\n```\n", out);
	if (f->seen && !strcmp(f->seen->name, CRASH_VIEW))
		err = crash_stack_write(f->stacks, f->rule->libraries, out);
	else
		err = finding_tree_write(f->stacks, f->nsites ? f->site[0].function : "", f->part, out);
	fputs("```\n", out);
	return err;
}

static void put_lines(FILE *out, const char *what, const char *lines)
{
	while (*lines) {
		size_t n = strcspn(lines, "\n");

		fprintf(out, "- %s: %.*s\n", what, (int)n, lines);
		lines += n + (lines[n] == '\n');
	}
}

static struct error *put_finding(FILE *out, const struct finding *f, u32 number)
{
	char weight[128];

	report_weight(f, weight, sizeof(weight));
	fprintf(out, "\n## %u. ", number);
	put_text(out, f->title);
	fprintf(out, "\n\n%s, %s", report_severity(f->severity), weight);
	if (f->compared)
		fprintf(out, f->was > 0 ? "; before: %.1f %%" : "; not there before", 100 * f->was);
	fputs("\n\n", out);
	put_text(out, f->why);
	fputs("\n\n", out);
	put_sites(out, f);
	put_lines(out, "also", f->also ? f->also : "");
	fputs("- change: ", out);
	put_text(out, f->change);
	fputc('\n', out);
	put_lines(out, "but", f->against);
	fputs("- shown alone by: ", out);
	put_code(out, f->show);
	fprintf(out, "\n- rule: `%s`\n", f->rule->name);
	return put_stacks(out, f);
}

static void put_changes(FILE *out, const struct comparison *c)
{
	fputs("\n## What changed beyond chance\n\n", out);
	for (u32 i = 0; i < c->n; i++) {
		fputs("- ", out);
		put_code(out, c->change[i].function);
		fprintf(out, " itself: %.1f %% before, %.1f %% after, ± %.1f (%s)\n", 100 * c->change[i].before,
		        100 * c->change[i].after, 100 * c->change[i].error, c->change[i].view);
	}
	if (!c->n)
		fputs("- nothing\n", out);
	for (u32 i = 0; i < c->ngone; i++)
		fprintf(out, "- gone: %s\n", c->gone[i]);
}

/* What is said of any program first; the rest is what only those who look for it want to know. */
static void put_healthy(FILE *out, const struct findings *f, enum healthy_group group)
{
	u32 n = report_healthy(f, group), shown = 0;

	if (n)
		fprintf(out, "- %s, %u looked at:", report_healthy_group(group), n);
	for (u32 general = 2; general-- > 0;)
		for (u32 i = 0; i < f->nhealthy && shown < HEALTHY_SHOWN; i++)
			if (f->healthy[i].group == group && f->healthy[i].general == general) {
				fprintf(out, " %s", f->healthy[i].text);
				shown++;
			}
	if (n > shown)
		fprintf(out, " And %u more (`-o report.html` and `-f json` have all).", n - shown);
	if (n)
		fputc('\n', out);
}

static void put_lists(FILE *out, const struct findings *f, const struct evidence *e)
{
	fputs(f->nseen ? "\n## Also seen: small, or a part of the above\n\n" : "", out);
	for (u32 i = 0; i < f->nseen; i++)
		fprintf(out, "- %s\n", f->seen[i]);
	fputs("\n## Looked at and found healthy\n\n", out);
	for (enum healthy_group group = 0; group < HEALTHY_GROUPS; group++)
		put_healthy(out, f, group);
	if (!f->nhealthy)
		fputs("- nothing\n", out);
	fputs("\n## How it was measured\n\n", out);
	for (u32 i = 0; i < e->nsteps; i++)
		fprintf(out, "- %s%s\n", e->step[i].missing ? "NOT LOOKED AT: " : "", e->step[i].text);
	if (f->unmeasured)
		fprintf(out, "- %u rules could not be decided by what was measured\n", f->unmeasured);
	if (f->more)
		fprintf(out, "- %u lighter findings were left out\n", f->more);
}

struct error *report_write_markdown(
        const struct findings *f, const struct evidence *e, const struct report_meta *meta, FILE *out)
{
	cleanup(free) char *wholes = NULL;
	struct error *err = NULL;

	fputs("# ", out);
	put_text(out, f->verdict);
	fprintf(out, "\n\n%s; `%s`\n", e->target ? e->target : "recordings", meta->command);
	wholes = report_wholes(e);
	if (f->n && wholes && *wholes)
		fprintf(out, "\n%s\n", wholes);
	for (u32 i = 0; !err && i < f->n; i++)
		err = put_finding(out, &f->all[i], i + 1);
	if (!err && meta->changes)
		put_changes(out, meta->changes);
	put_lists(out, f, e);
	return err ? err : text_finish(out, "report");
}

/* --- JSON --- */

static json_t *text(const char *s)
{
	cleanup(free) char *clean = clean_text(s);

	return clean ? json_string(clean) : json_null();
}

static json_t *sites_json(const struct finding_site *sites, u32 n)
{
	json_t *ret = json_array();

	for (u32 i = 0; i < n; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "function", text(sites[i].function));
		json_object_set_new(o, "file", text(sites[i].file));
		json_object_set_new(o, "line", json_integer(sites[i].line));
		json_object_set_new(o, "share", json_real(sites[i].share));
		if (sites[i].text)
			json_object_set_new(o, "text", text(sites[i].text));
		json_array_append_new(ret, o);
	}
	return ret;
}

static json_t *lines_json(const char *lines)
{
	json_t *ret = json_array();

	while (*lines) {
		size_t n = strcspn(lines, "\n");
		cleanup(free) char *line = strndup(lines, n);

		json_array_append_new(ret, text(line));
		lines += n + (lines[n] == '\n');
	}
	return ret;
}

static json_t *finding_json(const struct finding *f)
{
	json_t *o = json_object();

	json_object_set_new(o, "rule", text(f->rule->name));
	json_object_set_new(o, "severity", text(report_severity(f->severity)));
	json_object_set_new(o, "title", text(f->title));
	json_object_set_new(o, "view", f->view ? text(f->view->name) : json_null());
	json_object_set_new(o, "share", json_real(f->share));
	json_object_set_new(o, "share_low", json_real(f->low));
	json_object_set_new(o, "share_high", json_real(f->high));
	if (f->compared)
		json_object_set_new(o, "share_before", json_real(f->was));
	json_object_set_new(o, "value", json_integer((json_int_t)f->value));
	json_object_set_new(o, "where", sites_json(f->site, f->nsites));
	json_object_set_new(o, "called_by", sites_json(f->caller, f->ncallers));
	json_object_set_new(o, "also", lines_json(f->also ? f->also : ""));
	json_object_set_new(o, "why", text(f->why));
	json_object_set_new(o, "change", text(f->change));
	json_object_set_new(o, "against", lines_json(f->against));
	json_object_set_new(o, "command", text(f->show));
	return o;
}

static json_t *views_json(const struct evidence *e)
{
	json_t *ret = json_array();

	for (u32 i = 0; i < e->nviews; i++) {
		const struct profile_meta *m = &e->view[i].profile->meta;
		json_t *o = json_object();

		json_object_set_new(o, "name", text(e->view[i].name));
		json_object_set_new(o, "unit", text(text_unit(m)));
		json_object_set_new(o, "total", json_integer((json_int_t)e->view[i].profile->nodes[0].total));
		json_object_set_new(o, "seconds", json_real((double)m->duration_ns / 1e9));
		json_object_set_new(o, "loss", text(m->loss));
		json_array_append_new(ret, o);
	}
	return ret;
}

static json_t *changes_json(const struct comparison *c)
{
	json_t *ret = json_array();

	for (u32 i = 0; i < c->n; i++) {
		const struct change *x = &c->change[i];
		json_t *o = json_object();

		json_object_set_new(o, "view", text(x->view));
		json_object_set_new(o, "function", text(x->function));
		json_object_set_new(o, "before", json_real(x->before));
		json_object_set_new(o, "after", json_real(x->after));
		json_object_set_new(o, "error", json_real(x->error));
		json_object_set_new(o, "p", json_real(x->p));
		json_array_append_new(ret, o);
	}
	return ret;
}

static json_t *gone_json(const struct comparison *c)
{
	json_t *ret = json_array();

	for (u32 i = 0; i < c->ngone; i++)
		json_array_append_new(ret, text(c->gone[i]));
	return ret;
}

static json_t *steps_json(const struct evidence *e, bool missing)
{
	json_t *ret = json_array();

	for (u32 i = 0; i < e->nsteps; i++)
		if (e->step[i].missing == missing)
			json_array_append_new(ret, text(e->step[i].text));
	return ret;
}

struct error *report_write_json(
        const struct findings *f, const struct evidence *e, const struct report_meta *meta, FILE *out)
{
	json_t *root = json_object(), *findings = json_array(), *healthy = json_array(), *seen = json_array(),
	       *names = json_array();
	bool failed;

	for (u32 i = 0; i < f->n; i++)
		json_array_append_new(findings, finding_json(&f->all[i]));
	for (u32 i = 0; i < f->nseen; i++)
		json_array_append_new(seen, text(f->seen[i]));
	for (u32 i = 0; i < f->nhealthy; i++)
		json_array_append_new(healthy, text(f->healthy[i].text));
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (e->runtimes & 1u << (*r)->id)
			json_array_append_new(names, text((*r)->name));
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "verdict", text(f->verdict));
	json_object_set_new(root, "target", text(e->target));
	json_object_set_new(root, "command", text(meta->command));
	json_object_set_new(root, "runtimes", names);
	json_object_set_new(root, "findings", findings);
	json_object_set_new(root, "findings_left_out", json_integer(f->more));
	if (meta->changes) {
		json_object_set_new(root, "changes", changes_json(meta->changes));
		json_object_set_new(root, "gone", gone_json(meta->changes));
	}
	json_object_set_new(root, "seen", seen);
	json_object_set_new(root, "healthy", healthy);
	json_object_set_new(root, "rules_not_decided", json_integer(f->unmeasured));
	json_object_set_new(root, "steps", steps_json(e, false));
	json_object_set_new(root, "not_looked_at", steps_json(e, true));
	json_object_set_new(root, "views", views_json(e));
	json_object_set_new(root, "facts", facts_to_json(&e->facts));
	failed = json_dumpf(root, out, JSON_INDENT(2)) || fputc('\n', out) == EOF || fflush(out);
	json_decref(root);
	return failed ? error_new(ERROR_OUTPUT, "cannot write the report: %s", strerror(errno)) : NULL;
}
