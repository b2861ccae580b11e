/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rank.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

#define BUSY  0.5 /* CPUs */
#define WANTS 0.9

/* text is taken over. Once is enough. */
static struct error *add_text(char ***texts, u32 *n, char *text)
{
	struct error *err = text ? grow(texts, *n, sizeof(**texts)) : &error_no_memory;
	bool said = false;

	for (u32 i = 0; !err && i < *n; i++)
		said |= !strcmp((*texts)[i], text);
	if (err || said)
		free(text);
	else
		(*texts)[(*n)++] = text;
	return err;
}

/* Of a program that computes much the first thing to know is where; with full CPUs, of one that wants one always. */
static bool is_hot(const struct rule *r, const struct facts *f)
{
	return r->general && !r->last && !r->deepest && !strcmp(r->views[0] ?: "", "clock") &&
	       (facts_number(f, "cpu") > BUSY || facts_number(f, "thread.wants") > WANTS);
}

struct error *verdict_make(struct findings *f, const struct evidence *e)
{
	const char *target = e->target ? e->target : "the target";
	char all[80] = "";
	u32 missing = 0, n;

	for (u32 i = 0; i < e->nsteps; i++)
		missing += e->step[i].missing;
	if (missing)
		snprintf(all, sizeof(all), ", but not all was looked at");
	else if (f->unmeasured)
		snprintf(all, sizeof(all), " (%u rules could not be decided)", f->unmeasured);
	if (!f->n && !e->nviews && facts_find(&e->facts, "cpu"))
		n = (u32)asprintf(&f->verdict, "Counters alone say nothing of %s; more was not %s.", target,
		        e->refused ? "permitted" : "measured");
	else if (!f->n)
		n = (u32)asprintf(&f->verdict, "Nothing that a rule knows is wrong with %s%s.", target, all);
	else if (f->all[0].severity == SEVERITY_REMARK && (f->all[0].rule->last || f->all[0].rule->deepest))
		n = (u32)asprintf(&f->verdict, "No fault that a rule knows in %s%s.", target, all);
	else if (f->all[0].severity == SEVERITY_REMARK && is_hot(f->all[0].rule, &e->facts))
		n = (u32)asprintf(&f->verdict, "%s. No fault that a rule knows in %s%s.", f->all[0].title, target, all);
	else if (f->all[0].severity == SEVERITY_REMARK)
		n = (u32)asprintf(&f->verdict, "No fault that a rule knows in %s%s. %s", target, all, f->all[0].title);
	else
		n = (u32)asprintf(&f->verdict, "%s", f->all[0].title);
	if ((int)n < 0)
		f->verdict = NULL;
	return f->verdict ? NULL : &error_no_memory;
}

static bool is_of_memory(const struct rule *r)
{
	for (u32 i = 0; i < r->nblames; i++)
		if (!strcmp(r->blames[i].view, "leak") || !strcmp(r->blames[i].view, "fault") ||
		        !strcmp(r->blames[i].view, "made"))
			return true;
	return false;
}

/* Memory seemed to grow, and what keeps it was not read. */
static bool is_undecided(const struct rule *r, const struct facts *f)
{
	return is_of_memory(r) && facts_find(f, "kept.wanted") && !facts_find(f, "kept.growth");
}

static enum healthy_group group_of(const struct rule *r)
{
	if (is_of_memory(r))
		return HEALTHY_MEMORY;
	if (r->runtimes[0])
		return HEALTHY_RUNTIME;
	if (!r->views[0])
		return HEALTHY_SYSTEM;
	return strcmp(r->views[0], "clock") ? HEALTHY_WAITING : HEALTHY_CPU;
}

static struct error *add_healthy(const struct rule *r, const struct facts *f, struct findings *ret)
{
	char *text = finding_text(r->healthy, f);
	struct error *err = text ? grow(&ret->healthy, ret->nhealthy, sizeof(*ret->healthy)) : &error_no_memory;
	bool said = false;

	for (u32 i = 0; !err && i < ret->nhealthy; i++)
		said |= !strcmp(ret->healthy[i].text, text);
	if (err || said)
		free(text);
	else
		ret->healthy[ret->nhealthy++] = (struct healthy){text, group_of(r), r->general};
	return err;
}

/* Was something of a rule seen that says more than this one would? */
static bool is_seen_by_another(const struct rules *rules, char *const *seen, const struct rule *rule)
{
	for (u32 i = 0; i < rules->n; i++)
		for (char *const *name = seen[i] ? rules->all[i].replaces : NULL; name && *name; name++)
			if (!strcmp(*name, rule->name))
				return true;
	return false;
}

/* Do several rules look for the same, and one of them has seen it? */
static bool is_denied(const struct rules *rules, char *const *seen, const bool *healthy, const struct rule *rule)
{
	for (u32 i = 0; i < rules->n; i++)
		if (seen[i] && rules->all[i].healthy && !healthy[i] && !strcmp(rules->all[i].healthy, rule->healthy))
			return true;
	return false;
}

struct error *verdict_add_rest(const struct rules *rules, char *const *seen, const bool *healthy,
        const struct evidence *e, struct finding *all, u32 n, struct findings *ret)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < rules->n; i++) {
		const struct rule *r = &rules->all[i];

		if (findings_replace(rules, all, n, r))
			continue;
		if (seen[i] && !is_seen_by_another(rules, seen, r))
			err = add_text(&ret->seen, &ret->nseen, strdup(seen[i]));
		if (!err && healthy[i] && findings_leave_unexplained(rules, all, n, r))
			ret->unmeasured++;
		else if (!err && healthy[i] && !is_denied(rules, seen, healthy, r) && !is_undecided(r, &e->facts))
			err = add_healthy(r, &e->facts, ret);
	}
	return err;
}
