/* SPDX-License-Identifier: Apache-2.0 */
#include "findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "about.h"
#include "added.h"
#include "expression.h"
#include "frontends/format/text.h"
#include "holding.h"
#include "own.h"
#include "place.h"
#include "rank.h"
#include "unwind/cleanup.h"
#include "unwind/runtime.h"
#include "verdict.h"

#define LITTLE     0.03 /* a share: less is nothing to speak of */
#define ALL        0.99
#define NOTHING    0.02 /* threads, on average */
#define SITE_LEAST 0.01 /* further places with less are not named */
#define NOWHERE    "code that was not seen"

/* --- conditions --- */

enum verdict { NO, YES, UNKNOWN };

static struct error *all_hold(char *const *when, const struct facts *f, enum verdict *ret)
{
	struct error *err = NULL;
	double value;

	*ret = YES;
	for (; !err && *when; when++) {
		err = expression_value(*when, f, &value);
		if (!err && isnan(value))
			*ret = *ret == NO ? NO : UNKNOWN;
		else if (!err && !value)
			*ret = NO;
	}
	return err;
}

static struct error *any_holds(char *const *unless, const struct facts *f, bool *ret)
{
	struct error *err = NULL;
	double value;

	*ret = false;
	for (; !err && *unless; unless++) {
		err = expression_value(*unless, f, &value);
		*ret |= !err && !isnan(value) && value;
	}
	return err;
}

static bool has_module(const struct evidence *e, const struct pattern *module)
{
	for (u32 i = 0; i < e->nviews; i++)
		for (u32 k = 0; k < e->view[i].profile->nfunctions; k++)
			if (pattern_matches(module, e->view[i].profile->functions[k].module))
				return true;
	return false;
}

static bool is_for_runtimes(const struct rule *r, u32 seen)
{
	if (!r->runtimes[0])
		return true;
	for (char *const *name = r->runtimes; *name; name++)
		for (const struct runtime_ops *const *o = runtimes; *o; o++)
			if (!strcmp(*name, (*o)->name) && seen & 1u << (*o)->id)
				return true;
	return false;
}

static bool is_for(const struct rule *r, const struct evidence *e)
{
	return is_for_runtimes(r, e->runtimes) && (!r->module.set || has_module(e, &r->module));
}

bool findings_ask_for(const struct rules *rules, u32 runtimes_seen, const char *view)
{
	for (u32 i = 0; i < rules->n; i++)
		if (is_for_runtimes(&rules->all[i], runtimes_seen) && rule_asks_for(&rules->all[i], view))
			return true;
	return false;
}

/* --- one rule --- */

static struct error *set_lets(const struct rule *r, struct evidence *e)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < r->nlets; i++) {
		const struct profile *p = evidence_view(e, r->lets[i].view);
		double share = 0;

		if (p)
			err = match_share(&r->lets[i].pattern, r->libraries, p, &share);
		facts_forget(&e->facts, r->lets[i].name);
		if (p)
			facts_set(&e->facts, r->lets[i].name, share);
	}
	return err;
}

/* ", mostly in FUNCTION", or nothing. */
static void set_callee(struct evidence *e, const struct libraries *l, const struct profile_function *f)
{
	char name[NAME_LENGTH], text[NAME_LENGTH + 16] = "";

	if (f)
		snprintf(text, sizeof(text), ", mostly in %s", place_name(l, f, name, sizeof(name)));
	facts_set_text(&e->facts, "callee", text);
}

static void set_site(struct evidence *e, const struct libraries *l, const struct profile *p, const struct match *m)
{
	const struct profile_function *f = m->nsites ? &p->functions[m->site[0].function] : NULL;
	char name[NAME_LENGTH];

	facts_set(&e->facts, "site.share", f && m->value ? (double)m->site[0].value / (double)m->total : 0);
	facts_set(&e->facts, "site.own", f && is_own(l, f));
	if (p->meta.duration_ns)
		facts_set(&e->facts, "site.threads", f ? (double)m->site[0].value / (double)p->meta.duration_ns : 0);
	facts_set_text(&e->facts, "site", f ? place_name(l, f, name, sizeof(name)) : NOWHERE);
	facts_set_text(
	        &e->facts, "frame", m->function ? place_name(l, &p->functions[m->function], name, sizeof(name)) : "");
	set_callee(e, l, m->callee ? &p->functions[m->callee] : NULL);
}

/* What was known of the stacks of another rule is not known of this one's. */
static void forget_match(struct evidence *e)
{
	static const char *const names[] = {"share", "share.low", "about", "about.change", "about.known", "threads.of",
	        "share.high", "value", "value.s", "count", "per.second", "each", "site", "site.threads", "site.share",
	        "site.own", "callee", "frame", "site.same", "site.also", "waits"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		facts_forget(&e->facts, names[i]);
	holding_forget(e);
}

static void set_match(struct evidence *e, const struct libraries *l, const struct profile *p, const struct match *m)
{
	double seconds = (double)p->meta.duration_ns / 1e9;

	facts_set(&e->facts, "share", m->share);
	facts_set(&e->facts, "share.low", fmax(0, m->share - m->error));
	facts_set(&e->facts, "share.high", fmin(1, m->share + m->error));
	facts_set(&e->facts, "value", (double)m->value);
	facts_set(&e->facts, "value.s", (double)m->value / 1e9);
	facts_set(&e->facts, "count", m->count);
	facts_set(&e->facts, "threads.of", seconds > 0 ? (double)m->value / 1e9 / seconds : 0);
	facts_set(&e->facts, "per.second", seconds > 0 ? m->count / seconds : 0);
	facts_set(&e->facts, "each", m->count > 0 ? (double)m->value / 1e9 / m->count : 0);
	set_site(e, l, p, m);
	facts_set_text(&e->facts, "waits", facts_find(&e->facts, "site")->text);
}

/* The text of the first `word` of a name that more than half of the stacks go through; "": none is. */
static struct error *set_words(const struct rule *r, struct evidence *e, const struct profile *p, const struct match *m)
{
	struct error *err = NULL;

	for (u32 i = 0; i < r->nwords; i++)
		facts_set_text(&e->facts, r->words[i].name, "");
	for (u32 i = r->nwords; !err && i-- > 0;) {
		double part = 0;

		err = match_part(&r->words[i].term, r->libraries, p, m, &part);
		if (!err && part > 0.5)
			facts_set_text(&e->facts, r->words[i].name, r->words[i].text);
	}
	return err;
}

/* What most of it goes through is known for, if a text asks for that. */
static struct error *set_about(const struct rule *r, struct evidence *e, const struct profile *p, const struct match *m)
{
	static const char *const optional[] = {"net.peers", "others"};
	cleanup(free) char *text = NULL, *what = NULL, *change = NULL;
	const struct profile_function *f;
	char name[NAME_LENGTH], part[64] = "All of that is";
	struct about_found a;
	struct error *err;
	double whole;

	for (size_t i = 0; i < sizeof(optional) / sizeof(*optional); i++)
		if (!facts_find(&e->facts, optional[i]))
			facts_set_text(&e->facts, optional[i], "");
	facts_set_text(&e->facts, "about", "");
	facts_set_text(&e->facts, "about.change", "");
	facts_set(&e->facts, "about.known", 0);
	if (!strstr(r->why, "{about}"))
		return NULL;
	err = about_find(r->libraries, p, m, &a);
	if (err || !a.about)
		return err;
	f = &p->functions[a.function];
	if (f->kind == KIND_KERNEL && m->wall)
		return NULL; /* how a thread sleeps does not say why */
	if (m->callee && strstr(f->name, "+0x"))
		f = &p->functions[m->callee]; /* without a name: as what calls it is named */
	if (f->kind != KIND_KERNEL && a.function != m->site[0].function && !a.above)
		set_callee(e, r->libraries, f);
	whole = facts_number(&e->facts, "site.share");
	what = finding_text(a.about->what, &e->facts);
	change = finding_text(a.about->change, &e->facts);
	if (!what || !change)
		return &error_no_memory;
	if (a.share < ALL)
		snprintf(part, sizeof(part), "In %.0f of these %.0f %% it is", 100 * a.share * whole, 100 * whole);
	if (asprintf(&text, " %s %s %s, which %s", part, a.above ? "called through" : "in",
	            place_name(r->libraries, f, name, sizeof(name)), what) < 0) {
		text = NULL;
		return &error_no_memory;
	}
	facts_set_text(&e->facts, "about", text);
	facts_set(&e->facts, "about.known", 1);
	/* what the kernel does says what to change only where it is the program that asks for it */
	if (f->kind != KIND_KERNEL || facts_number(&e->facts, "site.own") > 0)
		facts_set_text(&e->facts, "about.change", change);
	return NULL;
}

static const struct evidence_view *choose_view(const struct rule *r, const struct evidence *e)
{
	for (char *const *name = r->views; *name; name++)
		for (u32 i = 0; i < e->nviews; i++)
			if (!strcmp(e->view[i].name, *name))
				return &e->view[i];
	return NULL;
}

/* Who calls the first site; of scripts it may be executed in several lines: the one with most is said. */
static struct error *make_callers(
        struct finding *f, const struct profile *p, const struct match *m, const struct evidence *e)
{
	u32 function[CALLERS_MAX], n;
	struct error *err = callers_find(m, p, f->rule->libraries, function, &n);

	for (u32 i = 0; !err && i < n; i++)
		err = place_make(f->rule->libraries, &p->functions[function[i]], 0, e, &f->caller[f->ncallers++]);
	return err;
}

static struct error *make_sites(
        struct finding *f, const struct profile *p, const struct match *m, const struct evidence *e)
{
	const struct libraries *l = f->rule->libraries;
	bool own = m->nsites && is_own(l, &p->functions[m->site[0].function]);
	struct error *err = NULL;

	for (u32 i = 0; !err && i < m->nsites && f->nsites < MATCH_SITES; i++) {
		double share = m->total ? (double)m->site[i].value / (double)m->total : 0;
		bool small = own && m->site[i].value < m->site[0].value &&
		             !is_own(l, &p->functions[m->site[i].function]); /* a library's, and not the most */

		if (!i || (share >= SITE_LEAST && !small))
			err = place_make(l, &p->functions[m->site[i].function], share, e, &f->site[f->nsites++]);
	}
	return err ? err : make_callers(f, p, m, e);
}

static struct error *add_doubts(const struct rule *r, const struct facts *f, FILE *out)
{
	struct error *err = NULL;
	double value;

	for (u32 i = 0; !err && i < r->ndoubts; i++) {
		err = expression_value(r->doubts[i].when, f, &value);
		if (!err && !isnan(value) && value) {
			cleanup(free) char *text = finding_text(r->doubts[i].text, f);

			fprintf(out, "%s\n", text ? text : "");
		}
	}
	return err;
}

/* The first advice whose condition holds; else the rule's change. */
static struct error *advice_of(const struct rule *r, const struct facts *f, const char **ret)
{
	struct error *err = NULL;
	double value = 0;

	*ret = r->change;
	for (u32 i = 0; !err && i < r->nadvices; i++) {
		err = expression_value(r->advices[i].when, f, &value);
		if (!err && !isnan(value) && value) {
			*ret = r->advices[i].text;
			break;
		}
	}
	return err;
}

static struct error *make_texts(struct finding *f, const char *title, const struct facts *facts)
{
	const struct rule *r = f->rule;
	cleanup(free) char *always = finding_text(r->against ? r->against : "", facts);
	size_t size;
	FILE *out;
	const char *change;
	struct error *err = advice_of(r, facts, &change);

	if (err)
		return err;
	f->title = finding_text(title ? title : r->title, facts);
	f->why = finding_text(r->why, facts);
	f->change = finding_text(change, facts);
	f->show = finding_text(r->show, facts);
	out = open_memstream(&f->against, &size);
	if (!out || !always || !f->title || !f->why || !f->change || !f->show) {
		if (out)
			fclose(out);
		return &error_no_memory;
	}
	err = add_doubts(r, facts, out);
	if (*always)
		fprintf(out, "%s\n", always);
	fclose(out);
	return err;
}

void finding_free(struct finding *f)
{
	char **const texts[] = {&f->title, &f->why, &f->change, &f->show, &f->against, &f->also};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		free(*texts[i]);
	for (u32 i = 0; i < f->nsites; i++)
		place_free(&f->site[i]);
	for (u32 i = 0; i < f->ncallers; i++)
		place_free(&f->caller[i]);
	profile_destroy(f->stacks);
	*f = (struct finding){0};
}

/* What is said is a part of what the stacks are. */
static void scale_weight(struct finding *f, double part)
{
	f->share *= part;
	f->low *= part;
	f->high = fmin(1, f->high * part);
	f->value = (u64)((double)f->value * part);
}

static struct error *set_weight(struct finding *f, const struct match *m, const struct facts *facts)
{
	double weight = NAN;
	struct error *err = NULL;

	if (f->rule->weight)
		err = expression_value(f->rule->weight, facts, &weight);
	if (f->view) {
		f->share = m->share;
		f->low = fmax(0, m->share - m->error);
		f->high = fmin(1, m->share + m->error);
		f->value = m->value;
		if (!isnan(weight) && m->share > 0)
			scale_weight(f, fmin(1, fmax(0, weight)) / m->share);
	} else if (!isnan(weight)) {
		f->share = f->low = f->high = fmin(1, fmax(0, weight));
	}
	return err;
}

/* What a rule blames, in a view of its own: who computes while others wait, who makes what grows. */
struct blamed {
	const struct evidence_view *view; /* NULL: nothing of it was measured */
	struct match match;
	const char *title; /* NULL: the rule's */
};

/* What holders compute is the cause, if the rule's `computes` holds. That match is taken over. */
static struct error *blame_holder(const struct rule *r, struct evidence *e, struct holding *h, struct blamed *b)
{
	double value = 0;
	struct error *err = r->computes.when && h->view ? expression_value(r->computes.when, &e->facts, &value) : NULL;

	if (err || isnan(value) || !value)
		return err;
	match_free(&b->match);
	*b = (struct blamed){h->view, h->match, r->computes.text};
	h->match = (struct match){0};
	set_site(e, r->libraries, b->view->profile, &b->match);
	return NULL;
}

static bool is_same_site(const struct profile *p, u32 a, const struct profile *other, u32 b)
{
	char one[NAME_LENGTH], two[NAME_LENGTH];

	text_plain_name(&p->functions[a], one, sizeof(one));
	text_plain_name(&other->functions[b], two, sizeof(two));
	return !strcmp(one, two) && !strcmp(p->functions[a].file, other->functions[b].file);
}

/* Is it known where the program adds to what grows? Page faults say less: who took memory first may have it no more. */
static bool is_added(const struct rule *r, const struct evidence *e)
{
	const struct fact *added = facts_find(&e->facts, "kept.added");

	return strstr(r->title, "{kept.added}") && added && added->text && *added->text;
}

static bool is_by_faults(const struct evidence_view *v)
{
	return v && !strcmp(v->name, "fault");
}

/* Of what grows in a collection, where no stack is known: what has grown, by who keeps it. */
static struct error *picture_kept(const struct evidence *e, struct finding *ret)
{
	struct match all = {0};
	struct error *err = NULL;

	for (u32 i = 0; i < e->nviews; i++)
		if (!strcmp(e->view[i].name, "kept"))
			ret->seen = &e->view[i];
	if (!ret->seen)
		return NULL;
	all.nodes = malloc(ret->seen->profile->nnodes);
	if (!all.nodes)
		return &error_no_memory;
	memset(all.nodes, true, ret->seen->profile->nnodes);
	ret->part = 1;
	err = match_profile(&all, ret->seen->profile, &ret->stacks);
	match_free(&all);
	return err;
}

/* ", made in FUNCTION", if that is the program's own, and not the line that adds it. */
static void set_made(struct evidence *e, bool known)
{
	const char *site = facts_find(&e->facts, "site")->text, *place = strrchr(site, '(');
	const struct fact *added = facts_find(&e->facts, "kept.added");
	cleanup(free) char *line = place ? strndup(place + 1, strcspn(place + 1, ")")) : NULL;
	char text[NAME_LENGTH + 16];

	if (line && added && added->text && strstr(added->text, line))
		known = false;
	snprintf(text, sizeof(text), ", made in %s", site);
	facts_set_text(&e->facts, "made", known && facts_number(&e->facts, "site.own") > 0 ? text : "");
}

/* ", most of it taken in FUNCTION", if that was seen. */
static void set_taken(struct evidence *e, bool seen)
{
	char text[NAME_LENGTH + 32] = "";

	if (seen)
		snprintf(text, sizeof(text), ", most of it taken in %s", facts_find(&e->facts, "site")->text);
	facts_set_text(&e->facts, "taken", text);
}

/* The rule's sites, of other stacks. */
static struct rule with_stacks(const struct rule *r, struct stack_pattern *stacks, u32 n)
{
	return (struct rule){.stacks = stacks,
	        .nstacks = n,
	        .has_site = r->has_site,
	        .site = r->site,
	        .skip = r->skip,
	        .nskip = r->nskip,
	        .from_last = r->from_last,
	        .libraries = r->libraries};
}

/* What the first site does besides: of the whole. */
static struct error *set_also(const struct rule *r, struct evidence *e, const struct profile *p, const struct match *m)
{
	struct rule those = with_stacks(r, r->also, r->nalso);
	struct match also = {0};
	struct error *err;
	u64 value = 0;

	if (!r->nalso || !m->nsites)
		return NULL;
	err = match_stacks(&those, p, &also);
	for (u32 i = 0; !err && i < also.nsites; i++)
		if (is_same_site(p, m->site[0].function, p, also.site[i].function))
			value += also.site[i].value;
	if (!err)
		facts_set(&e->facts, "site.also", also.total ? (double)value / (double)also.total : 0);
	match_free(&also);
	return err;
}

static struct error *find_blamed(
        const struct rule *r, struct evidence *e, const struct profile *p, const struct match *m, struct blamed *ret)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < r->nblames && !ret->view; i++) {
		struct rule those = with_stacks(r, &r->blames[i].pattern, 1);

		for (u32 k = 0; k < e->nviews; k++)
			if (!strcmp(e->view[k].name, r->blames[i].view))
				ret->view = &e->view[k];
		if (ret->view)
			err = match_stacks(&those, ret->view->profile, &ret->match);
		if (!err && ret->view && !ret->match.nsites) {
			match_free(&ret->match);
			ret->view = NULL;
		}
	}
	if (!err && ret->view) {
		facts_set(&e->facts, "site.same",
		        p && m->nsites &&
		                is_same_site(p, m->site[0].function, ret->view->profile, ret->match.site[0].function));
		set_site(e, r->libraries, ret->view->profile, &ret->match);
		set_made(e, !is_added(r, e) || !is_by_faults(ret->view));
	}
	if (!err && !ret->view)
		facts_set_text(&e->facts, "made", "");
	if (!err && !ret->view && r->nblames && !r->views[0])
		facts_set_text(&e->facts, "site", NOWHERE);
	if (!err)
		set_taken(e, ret->view);
	return err;
}

/* A place that adds and makes has its function by its stacks. */
static void drop_twins(struct finding *f, u32 nadded)
{
	for (u32 i = 0; i < nadded; i++)
		for (u32 k = nadded; k < f->nsites; k++) {
			const char *file = strrchr(f->site[i].file, '/'), *other = strrchr(f->site[k].file, '/');

			if (f->site[i].line != f->site[k].line ||
			        strcmp(file ? file + 1 : f->site[i].file, other ? other + 1 : f->site[k].file) != 0)
				continue;
			place_free(&f->site[i]);
			f->site[i] = f->site[k];
			memmove(&f->site[k], &f->site[k + 1], (--f->nsites - k) * sizeof(f->site[0]));
			break;
		}
}

static struct error *make_finding(const struct rule *r, const struct evidence *e, const struct evidence_view *v,
        const struct match *m, const struct blamed *b, struct finding *ret)
{
	const struct evidence_view *where = b->view ? b->view : v;
	const struct match *named = b->view ? &b->match : m;
	struct error *err;
	double remark = 0;
	u32 nadded = 0;

	if (b->title) { /* that is what the finding is about */
		v = b->view;
		m = &b->match;
	}
	*ret = (struct finding){.rule = r,
	        .severity = r->severity,
	        .view = v,
	        .seen = where,
	        .unseen = r->holder_self && !*facts_find(&e->facts, "holder.work")->text};
	err = set_weight(ret, m, &e->facts);
	if (!err && r->remark)
		err = expression_value(r->remark, &e->facts, &remark);
	if (remark > 0)
		ret->severity = SEVERITY_REMARK;
	if (!err)
		err = make_texts(ret, b->title, &e->facts);
	if (!err && is_added(r, e)) {
		err = added_sites(e, ret->site, &nadded);
		ret->nsites = nadded;
		where = is_by_faults(where) ? NULL : where;
	}
	if (!err && where && !r->placeless)
		err = make_sites(ret, where->profile, named, e);
	drop_twins(ret, nadded);
	ret->part = where ? named->share : 0;
	if (!err && where && !r->placeless)
		err = match_profile(named, where->profile, &ret->stacks);
	if (!err && !where && is_added(r, e)) {
		ret->seen = NULL;
		err = picture_kept(e, ret);
	}
	if (err)
		finding_free(ret);
	return err;
}

/* A great share of hardly any time: of a program that does nothing all the time. */
static bool is_nothing(const struct rule *r, const struct evidence_view *v, const struct facts *f)
{
	const struct fact *threads = facts_find(f, "threads.of");

	return r->severity != SEVERITY_REMARK && !strcmp(v->name, "wall") && threads && threads->number < NOTHING;
}

/* Of CPU time: a part of what is next to nothing. */
static bool is_hardly_any(const struct match *m, const struct facts *f)
{
	const struct fact *cpus = facts_find(f, "clock.cpus");

	return cpus && m->share * cpus->number < NOTHING;
}

/*
 * What a rule asks for is there, and only its share is too small for a finding: that is no trouble, but neither is it
 * nothing. *seen: its title as it would be, malloc'd; NULL: another reason speaks against it, or there is hardly any.
 * *nothing: the report may say that this does not occur: not of what does, but was excused.
 */
static struct error *describe_little(
        const struct rule *r, const struct match *m, const struct facts *f, bool excluded, char **seen, bool *nothing)
{
	bool of_share = false, alone = !excluded, known = true;
	struct error *err = NULL;
	double value;

	for (char *const *when = r->when; !err && *when; when++) {
		bool share = !strncmp(*when, "share", strlen("share"));

		of_share |= share;
		if (!share)
			err = expression_value(*when, f, &value);
		if (!err && !share) {
			alone &= !isnan(value) && value;
			known &= !isnan(value);
		}
	}
	*nothing = !excluded && known && (!of_share || m->share < LITTLE);
	if (err || *nothing || !alone || (r->views[0] && !strcmp(r->views[0], "clock") && is_hardly_any(m, f)))
		return err;
	*seen = finding_text(r->title, f);
	return *seen ? NULL : &error_no_memory;
}

struct conclusion {
	enum verdict holds;
	struct finding finding; /* YES */
	bool nothing;           /* NO: it does not occur */
	char *seen;             /* NO: the title, where it occurs but too little; or NULL */
};

static struct error *apply(const struct rule *r, struct evidence *e, struct conclusion *ret)
{
	enum verdict *holds = &ret->holds;
	const struct evidence_view *v = choose_view(r, e);
	struct match m = {0};
	struct blamed b = {0};
	struct holding h = {0};
	struct error *err = NULL;
	bool excluded = false, idle;

	*ret = (struct conclusion){.nothing = true};
	forget_match(e);
	*holds = v || !r->views[0] ? YES : UNKNOWN;
	if (*holds == YES && v)
		err = match_stacks(r, v->profile, &m);
	if (!err && *holds == YES && v && r->deepest)
		err = about_deepest(r, v->profile, &m);
	if (!err && *holds == YES && v)
		set_match(e, r->libraries, v->profile, &m);
	if (!err && *holds == YES && v)
		err = set_also(r, e, v->profile, &m);
	if (!err && *holds == YES && v)
		err = set_about(r, e, v->profile, &m);
	if (!err && *holds == YES && v && r->nwords)
		err = set_words(r, e, v->profile, &m);
	if (!err && r->holder)
		err = holding_facts(r, e, v, &m, &h);
	if (!err)
		err = find_blamed(r, e, v ? v->profile : NULL, &m, &b);
	if (!err)
		err = blame_holder(r, e, &h, &b);
	if (!err)
		err = set_lets(r, e);
	if (!err && *holds == YES)
		err = all_hold(r->when, &e->facts, holds);
	idle = v && is_nothing(r, v, &e->facts);
	if (*holds == YES && idle)
		*holds = NO;
	if (!err && *holds == YES)
		err = any_holds(r->unless, &e->facts, &excluded);
	if (!err && excluded)
		*holds = NO;
	if (!err && *holds == YES)
		err = make_finding(r, e, v, &m, &b, &ret->finding);
	if (!err && *holds == NO && !idle)
		err = describe_little(r, &m, &e->facts, excluded, &ret->seen, &ret->nothing);
	ret->nothing &= !r->familiar || m.value;
	match_free(&m);
	match_free(&b.match);
	match_free(&h.match);
	if (!err)
		return NULL;
	error_hint(err, "the rule %s stands in %s", r->name, r->source);
	return err;
}

/* --- all --- */

struct error *findings_make(const struct rules *rules, struct evidence *e, struct findings *ret)
{
	cleanup(free) struct finding *all = calloc(rules->n + 1, sizeof(*all));
	cleanup(free) bool *healthy = calloc(rules->n + 1, sizeof(*healthy));
	char **seen = calloc(rules->n + 1, sizeof(*seen));
	struct error *err = all && healthy && seen ? NULL : &error_no_memory;
	u32 n = 0;

	*ret = (struct findings){0};
	for (u32 i = 0; !err && i < rules->n; i++) {
		struct conclusion c;

		if (!is_for(&rules->all[i], e))
			continue;
		err = apply(&rules->all[i], e, &c);
		if (!err && c.holds == YES)
			all[n++] = c.finding;
		ret->unmeasured += c.holds == UNKNOWN;
		if (err)
			break;
		seen[i] = c.seen;
		healthy[i] = !c.seen && c.holds == NO && c.nothing && rules->all[i].healthy;
	}
	if (!err)
		err = verdict_add_rest(rules, seen, healthy, e, all, n, ret);
	for (u32 i = 0; seen && i < rules->n; i++)
		free(seen[i]);
	free(seen);
	if (!err)
		err = findings_drop_replaced(rules, all, &n);
	if (!err) {
		findings_put_behind_causes(all, n);
		qsort(all, n, sizeof(*all), findings_by_weight);
		ret->n = n < FINDINGS_MAX ? n : FINDINGS_MAX;
		ret->more = n - ret->n;
		memcpy(ret->all, all, ret->n * sizeof(*all));
		err = verdict_make(ret, e);
	}
	for (u32 i = err ? 0 : ret->n; i < n; i++)
		finding_free(&all[i]);
	if (err) {
		ret->n = 0;
		findings_free(ret);
	}
	return err;
}

void findings_free(struct findings *f)
{
	for (u32 i = 0; i < f->n; i++)
		finding_free(&f->all[i]);
	for (u32 i = 0; i < f->nhealthy; i++)
		free(f->healthy[i].text);
	free(f->healthy);
	for (u32 i = 0; i < f->nseen; i++)
		free(f->seen[i]);
	free(f->seen);
	free(f->verdict);
	*f = (struct findings){0};
}
