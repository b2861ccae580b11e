/* SPDX-License-Identifier: Apache-2.0 */
#include "rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cleanup.h"

#define CAUSE 0.4 /* of the CPU time */

static bool is_cause(const struct finding *f)
{
	return f->view && !strcmp(f->view->name, "clock") && f->severity <= SEVERITY_WASTE && !f->rule->general &&
	       !f->rule->consequence && f->low > CAUSE;
}

void findings_put_behind_causes(struct finding *all, u32 n)
{
	bool caused = false;

	for (u32 i = 0; i < n; i++)
		caused |= is_cause(&all[i]);
	for (u32 i = 0; i < n; i++)
		all[i].behind = caused && all[i].rule->consequence;
}

/* The lower, the earlier. */
static int rank(const struct finding *f)
{
	enum severity s = f->behind && f->severity < SEVERITY_WASTE ? SEVERITY_WASTE : f->severity;

	return 4 * (int)s + (f->rule->last ? 3 : f->rule->general ? 2 : f->behind);
}

int findings_by_weight(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (rank(x) != rank(y))
		return rank(x) - rank(y);
	return (x->share < y->share) - (x->share > y->share);
}

static bool names(const struct rule *rule, const char *name)
{
	for (char *const *at = rule->replaces; *at; at++)
		if (!strcmp(*at, name))
			return true;
	return false;
}

/* What replaces a rule that is said of any program replaces what that one would, too. */
static bool replaces(const struct rules *rules, const struct rule *by, const struct rule *rule)
{
	if (names(by, rule->name))
		return true;
	for (char *const *at = by->replaces; by != rule && *at; at++) {
		const struct rule *general = rules_find(rules, *at);

		if (general && general->general && names(general, rule->name))
			return true;
	}
	return false;
}

bool findings_replace(const struct rules *rules, const struct finding *all, u32 n, const struct rule *rule)
{
	for (u32 i = 0; i < n; i++)
		if (replaces(rules, all[i].rule, rule))
			return true;
	return false;
}

static bool is_same_place(const struct finding *a, const struct finding *b)
{
	return a->view && b->view && a->nsites && b->nsites && !strcmp(a->site[0].function, b->site[0].function) &&
	       !strcmp(a->site[0].file, b->site[0].file);
}

/* A rule that names a place, and can only say what its functions are known for. */
static bool names_place_only(const struct rule *r)
{
	return (r->general && !r->last) || strstr(r->why, "{about}");
}

/*
 * What is said of any program is not said of a place of which another finding says more: in the same view, or of a
 * fault that makes threads wait there as well as compute.
 */
static bool says_better(const struct finding *by, const struct finding *f)
{
	bool more =
	        by->view == f->view ? by->share >= f->share / 2 : by->severity < f->severity && by->share >= CAUSE / 2;

	return names_place_only(f->rule) && !names_place_only(by->rule) && more && is_same_place(f, by);
}

/* The first that says better what f does, and is not replaced itself; NULL: none does. */
static struct finding *said_better(const struct rules *rules, struct finding *all, u32 n, const struct finding *f)
{
	for (u32 i = 0; i < n; i++)
		if (says_better(&all[i], f) && !findings_replace(rules, all, n, all[i].rule))
			return &all[i];
	return NULL;
}

/* What f says beyond that goes with it. */
static struct error *say_also(struct finding *by, const struct finding *f)
{
	/* of the place, which is named last then */
	const char *text = strstr(f->title, ", mostly in ") ? NULL : f->site[0].text;
	char *also = NULL;

	by->severity = by->severity < f->severity ? by->severity : f->severity;
	if ((by->view == f->view || by->seen == f->view) && f->rule->general)
		return NULL;
	if (asprintf(&also, "%s%s%s%s%s\n", by->also ? by->also : "", f->title, text ? ": `" : "", text ? text : "",
	            text ? "`" : "") < 0)
		return &error_no_memory;
	free(by->also);
	by->also = also;
	return NULL;
}

struct error *findings_drop_replaced(const struct rules *rules, struct finding *all, u32 *n)
{
	cleanup(free) bool *dropped = calloc(*n + 1, sizeof(*dropped));
	struct error *err = dropped ? NULL : &error_no_memory;
	u32 kept = 0;

	for (u32 i = 0; !err && i < *n; i++) {
		bool replaced = findings_replace(rules, all, *n, all[i].rule);
		struct finding *by = replaced ? NULL : said_better(rules, all, *n, &all[i]);

		dropped[i] = replaced || by;
		if (by)
			err = say_also(by, &all[i]);
	}
	for (u32 i = 0; !err && i < *n; i++) {
		if (!dropped[i])
			all[kept++] = all[i];
		else
			finding_free(&all[i]);
	}
	*n = err ? *n : kept;
	return err;
}

bool findings_leave_unexplained(const struct rules *rules, struct finding *all, u32 n, const struct rule *rule)
{
	for (u32 i = 0; rule->nstacks && i < n; i++)
		for (u32 v = 0; all[i].view && rule->views[v]; v++)
			if (!strcmp(all[i].view->name, rule->views[v]) && names_place_only(all[i].rule) &&
			        !findings_replace(rules, all, n, all[i].rule) && !said_better(rules, all, n, &all[i]))
				return true;
	return false;
}
