/* SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/format/diff.h"
#include "frontends/format/diff_test.h"
#include "unwind/clean_text.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

static double size_of(const struct change *c)
{
	return fabs(c->after - c->before);
}

static void change_free(struct change *c)
{
	free(c->view);
	free(c->function);
}

/* Keeps the greatest. Takes the texts over. */
static void add(struct comparison *to, struct change c)
{
	u32 at = to->n;

	if (to->n == CHANGES_MAX && size_of(&c) <= size_of(&to->change[CHANGES_MAX - 1])) {
		change_free(&c);
		return;
	}
	if (to->n == CHANGES_MAX)
		change_free(&to->change[--at]);
	else
		to->n++;
	for (; at > 0 && size_of(&c) > size_of(&to->change[at - 1]); at--)
		to->change[at] = to->change[at - 1];
	to->change[at] = c;
}

static struct error *take_changes(
        const char *view, const struct profile *difference, const struct diff_tested *t, struct comparison *ret)
{
	for (u32 i = 0; i < t->nfindings; i++) {
		const struct diff_finding *f = &t->findings[i];
		struct change c = {.view = strdup(view),
		        .function = clean_text(difference->functions[f->function].name),
		        .before = f->before,
		        .after = f->after,
		        .error = f->error,
		        .p = f->p};

		if (!c.view || !c.function) {
			change_free(&c);
			return &error_no_memory;
		}
		if (f->self && difference->functions[f->function].kind < KIND_RUNNING)
			add(ret, c);
		else
			change_free(&c);
	}
	return NULL;
}

static struct error *compare_view(
        const char *view, const struct profile *before, const struct profile *after, struct comparison *ret)
{
	const struct diff_options options = {.before = "before"};
	const struct diff_side sides[2] = {{&before, 1}, {&after, 1}};
	struct profile *difference = NULL;
	struct diff_tested tested = {0};
	struct error *err = diff_create(before, after, &options, &difference);

	if (err)
		return err;
	err = diff_test(difference, sides, false, &tested);
	if (!err)
		err = take_changes(view, difference, &tested, ret);
	diff_tested_free(&tested);
	profile_destroy(difference);
	return err;
}

static const struct finding *same_rule(const struct findings *f, const struct finding *as)
{
	for (u32 i = 0; i < f->n; i++)
		if (f->all[i].rule == as->rule)
			return &f->all[i];
	return NULL;
}

static struct error *compare_findings(const struct findings *before, struct findings *after, struct comparison *ret)
{
	struct error *err = NULL;

	for (u32 i = 0; i < after->n; i++) {
		const struct finding *then = same_rule(before, &after->all[i]);

		after->all[i].was = then ? then->share : 0;
		after->all[i].compared = true;
	}
	for (u32 i = 0; !err && i < before->n; i++) {
		char *title;

		if (same_rule(after, &before->all[i]))
			continue;
		title = strdup(before->all[i].title);
		err = title ? grow(&ret->gone, ret->ngone, sizeof(*ret->gone)) : &error_no_memory;
		if (err)
			free(title);
		else
			ret->gone[ret->ngone++] = title;
	}
	return err;
}

static struct error *make_verdict(const struct comparison *c, struct findings *f)
{
	const struct change *grown = NULL;
	char *text = NULL;

	for (u32 i = 0; !grown && i < c->n; i++)
		grown = c->change[i].after > c->change[i].before ? &c->change[i] : NULL;
	if (grown && asprintf(&text, "%s grew from %.1f to %.1f %% (%s). %s", grown->function, 100 * grown->before,
	                     100 * grown->after, grown->view, f->verdict) < 0)
		return &error_no_memory;
	if (!grown && asprintf(&text, "Nothing grew beyond chance. %s", f->verdict) < 0)
		return &error_no_memory;
	free(f->verdict);
	f->verdict = text;
	return NULL;
}

struct error *compare(const struct evidence *before, const struct findings *found_before, const struct evidence *after,
        struct findings *found_after, struct comparison *ret)
{
	struct error *err = compare_findings(found_before, found_after, ret);
	u32 both = 0;

	for (u32 i = 0; !err && i < after->nviews; i++) {
		const struct profile *then = evidence_view(before, after->view[i].name);

		if (!then)
			continue;
		both++;
		err = compare_view(after->view[i].name, then, after->view[i].profile, ret);
	}
	if (!err && !both)
		err = error_hint(error_new(ERROR_USAGE, "the two have no view in common to compare"),
		        "give two recordings of the same event, or two folders of --keep");
	return err ? err : make_verdict(ret, found_after);
}

void comparison_free(struct comparison *c)
{
	for (u32 i = 0; i < c->n; i++)
		change_free(&c->change[i]);
	for (u32 i = 0; i < c->ngone; i++)
		free(c->gone[i]);
	free(c->gone);
	*c = (struct comparison){0};
}
