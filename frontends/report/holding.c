/* SPDX-License-Identifier: Apache-2.0 */
#include "holding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "about.h"
#include "callers.h"
#include "findings.h"
#include "frontends/format/text.h"
#include "holder.h"
#include "place.h"
#include "unwind/cleanup.h"
#include "woken.h"

#define WORKS     0.05 /* threads: what a holder does in less is nothing to speak of */
#define UNSEEN    "Who holds it was not seen."
#define OWN_WORK  "its own work"
#define MUCH_PART 0.5 /* a title says what more than half of a holder's time goes to */
#define MUCH_MORE 2   /* a caller does so much more with what it was given */

/* ", which sorts", of what it goes through; "" if nothing is known of that. *ret is malloc'd. */
static struct error *known_of(
        const struct rule *r, const struct evidence *e, const struct profile *p, const struct match *m, char **ret)
{
	cleanup(free) char *what = NULL;
	struct about_found a;
	struct error *err = about_find(r->libraries, p, m, &a);

	if (err)
		return err;
	if (!a.about || a.above || (p->functions[a.function].kind == KIND_KERNEL && m->wall)) {
		*ret = strdup("");
		return *ret ? NULL : &error_no_memory;
	}
	what = finding_text(a.about->what, &e->facts);
	if (what && *what && what[strlen(what) - 1] == '.')
		what[strlen(what) - 1] = '\0';
	return what && asprintf(ret, ", which %s", what) >= 0 ? NULL : &error_no_memory;
}

/* Of the holder's stacks, those for which it was taken. */
static struct error *used_part(const struct rule *r, const struct profile *p, const struct match *m, double *ret)
{
	struct rule those = {.stacks = r->used, .nstacks = r->nused, .libraries = r->libraries};
	struct match used = {0};
	struct error *err = match_stacks(&those, p, &used);
	u64 sum = 0;

	for (u32 i = 1; !err && i < p->nnodes; i++)
		sum += used.nodes[i] && m->nodes[i] ? p->nodes[i].self : 0;
	*ret = m->value ? (double)sum / (double)m->value : 0;
	match_free(&used);
	return err;
}

/* With a 95 % interval (Agresti and Coull, The American Statistician 52, 1998), which few samples make wide. */
static void set_used(struct evidence *e, double part, double count)
{
	double n = count + 4, middle = (part * count + 2) / n, half = 2 * sqrt(middle * (1 - middle) / n);

	facts_set(&e->facts, "holder.used", part);
	facts_set(&e->facts, "holder.used.low", fmax(0, middle - half));
	facts_set(&e->facts, "holder.used.high", fmin(1, middle + half));
}

/* Where it does what it does besides: the holder's line, or who calls that on its behalf. */
static struct error *set_work(const struct rule *r, struct evidence *e, const struct profile *p, const struct match *m,
        const struct profile_function *holder)
{
	u32 caller[CALLERS_MAX], n = 0;
	char name[NAME_LENGTH], plain[NAME_LENGTH], site[NAME_LENGTH], text[NAME_LENGTH + 32];
	const struct profile_function *f = &p->functions[m->site[0].function];
	struct error *err = callers_find(m, p, r->libraries, caller, &n);
	double used = 0;
	bool own;

	if (!err && r->nused)
		err = used_part(r, p, m, &used);
	if (err)
		return err;
	text_plain_name(holder, plain, sizeof(plain));
	own = !strcmp(text_plain_name(f, site, sizeof(site)), plain);
	for (u32 i = 0; i < n; i++)
		if (!strcmp(text_plain_name(&p->functions[caller[i]], site, sizeof(site)), plain))
			holder = &p->functions[caller[i]];
	facts_set(&e->facts, "holder.same", own);
	facts_set(&e->facts, "holder.part", (double)m->site[0].value / (double)m->value);
	facts_set(&e->facts, "holder.threads", (double)m->value / (double)p->meta.duration_ns);
	if (r->nused)
		set_used(e, used, m->count);
	facts_set_text(&e->facts, "holder.line", place_name(r->libraries, own ? f : holder, name, sizeof(name)));
	if (own && m->callee)
		f = &p->functions[m->callee];
	else if (own)
		f = NULL;
	facts_set_text(&e->facts, "holder.work", f ? place_name(r->libraries, f, name, sizeof(name)) : OWN_WORK);
	if (f && facts_number(&e->facts, "holder.part") > MUCH_PART) {
		snprintf(text, sizeof(text), ", while one is in %s", name);
		facts_set_text(&e->facts, "holder.meanwhile", text);
	}
	return NULL;
}

/*
 * " Apart from these waits, on average 2.0 of them are in F (f.py:7), 94 % of that time in G (f.py:3), mostly in H,
 * which asks a database." Who ends waits is none of those who wait.
 */
static struct error *say_work(
        const struct rule *r, const struct evidence *e, const struct profile *p, const struct match *m, char **ret)
{
	const struct facts *f = &e->facts;
	cleanup(free) char *known = NULL;
	char callee[NAME_LENGTH] = "";
	struct error *err = known_of(r, e, p, m, &known);
	const char *work = facts_find(f, "holder.work")->text;
	bool site = strcmp(work, OWN_WORK) != 0;

	if (err)
		return err;
	if (m->callee && facts_number(f, "holder.same") <= 0)
		place_name(r->libraries, &p->functions[m->callee], callee, sizeof(callee));
	if (asprintf(ret,
	            r->waker ? " On average %.1f threads are in %s, %.0f %% of that time %s%s%s%s%s."
	                     : " Apart from these waits, on average %.1f of them are in %s, %.0f %% of that time "
	                       "%s%s%s%s%s.",
	            facts_number(f, "holder.threads"), facts_find(f, "holder.line")->text,
	            100 * facts_number(f, "holder.part"), site ? "in " : "with ", work, *callee ? ", mostly in " : "",
	            callee, known) >= 0)
		return NULL;
	*ret = NULL;
	return &error_no_memory;
}

static struct error *name_work(const struct rule *r, struct evidence *e, const struct profile *p,
        const struct profile_function *holder, char **ret)
{
	struct match m = {0};
	struct error *err = p ? holder_works(r, p, holder, &m) : NULL;

	*ret = NULL;
	if (!err && m.nsites && (double)m.value > WORKS * (double)p->meta.duration_ns) {
		err = set_work(r, e, p, &m, holder);
		if (!err)
			err = say_work(r, e, p, &m, ret);
	} else if (!err) {
		*ret = strdup("");
		err = *ret ? NULL : &error_no_memory;
	}
	match_free(&m);
	return err;
}

static struct error *find_computing(
        const struct rule *r, struct evidence *e, const struct profile_function *holder, struct holding *ret)
{
	const struct evidence_view *v = NULL;
	struct error *err;

	for (u32 i = 0; i < e->nviews; i++)
		if (!strcmp(e->view[i].name, "clock"))
			v = &e->view[i];
	err = v ? holder_works(r, v->profile, holder, &ret->match) : NULL;
	if (err || !ret->match.nsites)
		return err;
	ret->view = v;
	facts_set(&e->facts, "holder.cpu", ret->match.share);
	return NULL;
}

/* Who released the lock that is waited for in the rule's site, how often, and what that does besides. */
static struct error *set_holder(const struct rule *r, struct evidence *e, const struct profile *waits,
        const struct match *m, struct holding *ret)
{
	const struct profile *p = evidence_view(e, "lock");
	const struct profile_function *f;
	cleanup(free) char *text = NULL, *work = NULL;
	struct holders h = {0};
	char name[NAME_LENGTH] = "";
	struct error *err = NULL;

	if (waits && m->nsites)
		text_plain_name(&waits->functions[m->site[0].function], name, sizeof(name));
	if (p)
		err = holders_find(p, r->libraries, name, &h);
	if (err)
		return err;
	if (!h.n && (!waits || !m->nsites)) {
		facts_set_text(&e->facts, "holder", UNSEEN);
		return NULL;
	}
	f = h.n ? &p->functions[h.all[0].function] : &waits->functions[m->site[0].function];
	err = name_work(r, e, evidence_view(e, "wall"), f, &work);
	if (!err)
		err = find_computing(r, e, f, ret);
	if (err)
		return err;
	if ((h.n ? asprintf(&text, "In %.0f %% of the time of these waits it was %s that released it.%s",
	                   100 * (double)h.all[0].value / (double)h.total,
	                   place_name(r->libraries, f, name, sizeof(name)), work)
	         : asprintf(&text, UNSEEN "%s", work)) < 0) {
		text = NULL;
		return &error_no_memory;
	}
	facts_set_text(&e->facts, "holder", text);
	if (h.n)
		facts_set_text(&e->facts, "lock.name", p->functions[h.lock].name);
	return NULL;
}

/* ", which waits for G (g.py:7), and that for H (h.py:1)". */
static void say_others(const struct rule *r, const struct profile *p, const struct woken *w, char *ret, size_t size)
{
	char name[NAME_LENGTH];
	size_t n = 0;

	*ret = '\0';
	for (u32 i = 1; i < w->n && n < size; i++)
		n += (size_t)snprintf(ret + n, size - n, i > 1 ? ", and that for %s" : ", which waits for %s",
		        place_name(r->libraries, &p->functions[w->by[i]], name, sizeof(name)));
}

/* Whose threads end the waits in the rule's site, whom these wait for, and what the last of them does. */
static struct error *set_waker(const struct rule *r, struct evidence *e, const struct profile *waits,
        const struct match *m, struct holding *ret)
{
	const struct profile *p = evidence_view(e, "wakers"), *wall = evidence_view(e, "wall");
	cleanup(free) char *text = NULL, *work = NULL;
	char name[NAME_LENGTH] = "", others[WOKEN_MOST * NAME_LENGTH];
	const struct profile_function *last;
	struct woken w = {0};
	struct error *err = NULL;

	if (waits && m->nsites)
		text_plain_name(&waits->functions[m->site[0].function], name, sizeof(name));
	if (p && *name)
		err = woken_find(r, p, wall, name, &w);
	if (err || !w.n)
		return err;
	last = &p->functions[w.by[w.n - 1]];
	err = name_work(r, e, wall, last, &work);
	if (!err)
		err = find_computing(r, e, last, ret);
	if (err)
		return err;
	say_others(r, p, &w, others, sizeof(others));
	if (asprintf(&text, "%.0f %% of the time of these waits was ended by %s%s.%s", 100 * w.part,
	            place_name(r->libraries, &p->functions[w.by[0]], name, sizeof(name)), others, work) < 0) {
		text = NULL;
		return &error_no_memory;
	}
	facts_set_text(&e->facts, "holder", text);
	return NULL;
}

static struct error *works_of(
        const struct rule *r, const struct profile *p, const struct profile_function *f, double *ret)
{
	struct match m = {0};
	struct error *err = p ? holder_works(r, p, f, &m) : NULL;

	*ret = (double)m.value;
	match_free(&m);
	return err;
}

/*
 * Of these functions of waits, the first; or one that does much more: what gives connections out may ask whether they
 * live. mutex: who locks it has it, unless it does nothing but that.
 */
static struct error *find_holder(const struct rule *r, const struct profile *p, const struct profile *waits,
        const u32 *candidate, u32 n, bool mutex, const struct profile_function **ret)
{
	const double hardly = p ? WORKS * (double)p->meta.duration_ns : 0;
	struct error *err = NULL;
	double most = 0, value;

	*ret = NULL;
	for (u32 i = 0; !err && i < n; i++) {
		err = works_of(r, p, &waits->functions[candidate[i]], &value);
		if (*ret && (value <= MUCH_MORE * most || (mutex && most > hardly)))
			continue;
		*ret = &waits->functions[candidate[i]];
		most = value;
	}
	return err;
}

/* What those do with it who have waited for it: the site, or if that only gives it out, who calls that. */
static struct error *set_own_work(const struct rule *r, struct evidence *e, const struct evidence_view *v,
        const struct match *m, struct holding *ret)
{
	/* what waits may have no thread: then it is not in the view of threads */
	static const char *const views[] = {"wall", "wait"};
	const struct profile *waits = v ? v->profile : NULL;
	cleanup(free) char *work = NULL;
	const struct profile_function *holder = NULL;
	u32 candidate[1 + CALLERS_MAX], n = 0;
	struct error *err = NULL;

	if (waits && m->nsites) {
		candidate[0] = m->site[0].function;
		err = callers_find(m, waits, r->libraries, candidate + 1, &n);
		n++;
	}
	for (size_t i = 0; !err && n && i < sizeof(views) / sizeof(*views) && (!work || !*work); i++) {
		const struct profile *p = evidence_view(e, views[i]);

		free(work);
		work = NULL;
		err = find_holder(r, p, waits, candidate, n, !strcmp(v->name, "lock"), &holder);
		if (!err)
			err = name_work(r, e, p, holder, &work);
	}
	if (!err && holder)
		err = find_computing(r, e, holder, ret);
	if (!err)
		facts_set_text(&e->facts, "holder", work && *work ? work + 1 : "What is done with it was not seen.");
	return err;
}

struct error *holding_facts(const struct rule *r, struct evidence *e, const struct evidence_view *v,
        const struct match *m, struct holding *ret)
{
	facts_set_text(&e->facts, "holder.line", "");
	facts_set_text(&e->facts, "holder.work", "");
	facts_set_text(&e->facts, "holder.meanwhile", "");
	facts_set_text(&e->facts, "holder", "");
	if (r->holder_self)
		return set_own_work(r, e, v, m, ret);
	return (r->waker ? set_waker : set_holder)(r, e, v ? v->profile : NULL, m, ret);
}

void holding_forget(struct evidence *e)
{
	static const char *const names[] = {"holder", "holder.line", "holder.work", "holder.meanwhile", "holder.part",
	        "holder.used", "holder.threads", "holder.same", "holder.cpu", "lock.name"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		facts_forget(&e->facts, names[i]);
}
