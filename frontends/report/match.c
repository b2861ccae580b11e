/* SPDX-License-Identifier: Apache-2.0 */
#include "match.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "copies.h"
#include "frontends/format/text.h"
#include "idle_waits.h"
#include "own.h"
#include "unwind/cleanup.h"
#include "unwind/hash_text.h"
#include "unwind/table.h"

#define PICTURE_DEPTH 4096
#define NEVER         UINT32_MAX
#define Z95           1.96
#define MATCH_NAME    1024
#define SITES_LEAST   0.1 /* of what matches: then functions that are sites come first */

/* What each function is to the terms of a pattern: bit i of terms, bit i of without. */
struct traits {
	u8 *terms, *without;
	u8 named; /* those terms that ask for a name, or a place */
};

/* At a node: how deep the latest match of each prefix of the terms ends; NEVER: it does not. */
struct level {
	u32 at[RULE_TERMS_MAX];
	bool spoilt;
};

static void traits_free(struct traits *t)
{
	free(t->terms);
	free(t->without);
}

static struct error *traits_make(
        const struct stack_pattern *s, const struct libraries *l, const struct profile *p, struct traits *ret)
{
	*ret = (struct traits){calloc(p->nfunctions + 1, 1), calloc(p->nfunctions + 1, 1), 0};
	if (!ret->terms || !ret->without) {
		traits_free(ret);
		return &error_no_memory;
	}
	for (u32 k = 0; k < s->n; k++)
		ret->named |= (u8)((s->term[k].name.set || s->term[k].place.set) << k);
	for (u32 i = 1; i < p->nfunctions; i++) {
		for (u32 k = 0; k < s->n; k++)
			ret->terms[i] |= (u8)(term_matches(&s->term[k], l, &p->functions[i]) << k);
		for (u32 k = 0; k < s->nwithout; k++)
			ret->without[i] |= (u8)(term_matches(&s->without[k], l, &p->functions[i]) << k);
	}
	return NULL;
}

/*
 * Of an approximate position in what a JIT compiled its outermost function is certain; those that were inlined into it
 * are what is near. So no name of theirs is evidence.
 */
static u8 terms_at(const struct traits *t, const struct profile *p, u32 node)
{
	const struct profile_function *f = &p->functions[p->nodes[node].function];
	const struct profile_function *caller = &p->functions[p->nodes[p->nodes[node].parent].function];
	bool near = f->flags & caller->flags & FRAME_APPROX && f->kind == KIND_SCRIPT_JIT;

	return t->terms[f - p->functions] & (u8) ~(near ? t->named : 0);
}

/* The later a prefix ends, the more can follow it: so the latest match is all that has to be kept. */
static struct level step(const struct stack_pattern *s, const struct traits *t, const struct profile *p, u32 node,
        const struct level *above, u32 depth)
{
	u32 function = p->nodes[node].function;
	u8 terms = terms_at(t, p, node);
	struct level now = *above;

	now.spoilt |= t->without[function] != 0;
	for (u32 k = s->n; k-- > 0;) {
		u32 before = k ? above->at[k - 1] : 0, within = s->term[k].within;

		if (terms & 1u << k && before != NEVER && (!k || !within || depth - before <= within))
			now.at[k] = depth;
	}
	return now;
}

struct walk_state {
	struct level *levels;
	u32 *depth;
};

static void walk_free(struct walk_state *w)
{
	free(w->levels);
	free(w->depth);
}

/* A parent's index is below its child's, so one pass in order sees parents first. */
static struct error *walk_all(
        const struct stack_pattern *s, const struct profile *p, const struct traits *t, struct walk_state *ret)
{
	ret->levels = calloc(p->nnodes, sizeof(*ret->levels));
	ret->depth = calloc(p->nnodes, sizeof(*ret->depth));
	if (!ret->levels || !ret->depth)
		return &error_no_memory;
	for (u32 k = 0; k < RULE_TERMS_MAX; k++)
		ret->levels[0].at[k] = NEVER;
	for (u32 i = 1; i < p->nnodes; i++) {
		u32 parent = p->nodes[i].parent;

		ret->depth[i] = ret->depth[parent] + 1;
		ret->levels[i] = step(s, t, p, i, &ret->levels[parent], ret->depth[i]);
	}
	return NULL;
}

static bool is_match(const struct stack_pattern *s, const struct walk_state *w, u32 node)
{
	const struct level *l = &w->levels[node];
	u32 at = l->at[s->n - 1];

	return at != NEVER && !l->spoilt && (!s->leaf || w->depth[node] - at < s->leaf);
}

bool match_skips(const struct rule *r, const struct profile_function *f)
{
	for (u32 i = 0; i < r->nskip; i++)
		if (term_matches(&r->skip[i], r->libraries, f))
			return true;
	return false;
}

bool match_is_language(const struct profile_function *f)
{
	return f->kind != KIND_NATIVE && f->kind != KIND_CXX && f->kind != KIND_RUST;
}

static bool is_site(const struct rule *r, const struct profile_function *f)
{
	return r->has_site ? term_matches(&r->site, r->libraries, f) : is_own(r->libraries, f);
}

/* The library's loop that serves requests is what a program's main part calls: that says nothing of the requests. */
bool match_is_loop(const struct libraries *l, const struct profile_function *called)
{
	for (u32 i = 0; l && i < l->nloops; i++)
		if (term_matches(&l->loops[i], NULL, called))
			return !is_own(l, called);
	return false;
}

/*
 * The function to name for the stack that ends at a node, from the first term outwards. Where nothing is a site: the
 * nearest code that is not skipped, that of a language first, and then the first term itself.
 */
static u32 site_of(const struct rule *r, const struct profile *p, const struct walk_state *w, u32 node, u32 first)
{
	u32 at_first = 0, code = 0, script = 0, native = 0, called, below = 0;
	bool languages_first = !r->has_site || r->site.own;

	for (; node; node = p->nodes[node].parent) {
		u32 function = p->nodes[node].function;
		const struct profile_function *f = &p->functions[function];

		called = below;
		below = is_code(f) ? function : below;
		if (w->depth[node] > first)
			continue;
		if (!at_first && w->depth[node] == first)
			at_first = function;
		if (match_skips(r, f))
			continue;
		if (!code && is_code(f))
			code = function;
		if (!script && languages_first && is_code(f) && match_is_language(f))
			script = function;
		if (!is_site(r, f) || (called && match_is_loop(r->libraries, &p->functions[called])))
			continue;
		if (!languages_first || match_is_language(f))
			return function;
		native = native ? native : function;
	}
	return native ? native : script ? script : code ? code : at_first;
}

/* Where the first term of the match at a node is: with several terms, at the latest place that leads to the others. */
static u32 first_of(const struct stack_pattern *s, const struct walk_state *w, u32 node, const struct profile *p)
{
	u32 at = w->levels[node].at[s->n - 1];

	for (u32 k = s->n - 1; k > 0; k--) {
		while (w->depth[node] >= at)
			node = p->nodes[node].parent;
		at = w->levels[node].at[k - 1];
	}
	return at;
}

struct sums {
	u64 *site, *last; /* by function */
	struct copies *copies;
	bool copies_sought;
};

static u32 function_at(const struct profile *p, const struct walk_state *w, u32 node, u32 depth)
{
	while (node && w->depth[node] > depth)
		node = p->nodes[node].parent;
	return p->nodes[node].function;
}

/* Nanoseconds between two looks at what has no thread; 0: there were none. */
static double look_ns(const struct profile *p)
{
	json_t *stats = p->meta.stats ? json_loads(p->meta.stats, 0, NULL) : NULL;
	double looks = json_number_value(json_object_get(json_object_get(stats, "off"), "looks")) +
	               json_number_value(json_object_get(json_object_get(stats, "lock"), "looks"));

	json_decref(stats);
	return looks > 0 ? (double)p->meta.duration_ns / looks : 0;
}

/* Samples, waits or looks that a node's value is made of. */
static double count_of(const struct profile *p, const struct profile_node *n, double look)
{
	double value = (double)n->self;

	if (!text_is_time(&p->meta))
		return value;
	if (n->more && p->meta.more && strcmp(p->meta.more, "bytes"))
		return (double)n->more;
	if (look > 0)
		return fmax(1, value / look);
	return p->meta.frequency > 0 ? fmax(1, value * p->meta.frequency / 1e9) : 1;
}

static void note(struct match *m, const struct rule *r, const struct stack_pattern *s, const struct profile *p,
        const struct walk_state *w, u32 node, struct sums *sums)
{
	u32 first = first_of(s, w, node, p), last = w->levels[node].at[s->n - 1];
	u32 site = site_of(r, p, w, node, r->from_last ? last : first);
	u64 value = p->nodes[node].self;

	m->nodes[node] = true;
	m->value += value;
	sums->site[copies_site(sums->copies, node, site)] += value;
	sums->last[function_at(p, w, node, last)] += value;
}

static u32 greatest(const u64 *sums, u32 n)
{
	u32 best = 0;

	for (u32 i = 1; i < n; i++)
		if (sums[i] > (best ? sums[best] : 0))
			best = i;
	return best;
}

/* Functions that are split by line are one: of each the first of them stands for all. */
struct error *match_unite(const struct profile *p, u32 *same)
{
	struct table seen = {0};
	struct error *err = NULL;

	for (u32 i = 1; !err && i < p->nfunctions; i++) {
		const struct profile_function *f = &p->functions[i];
		char name[MATCH_NAME];
		u64 key = hash_add_text(f->definition, text_plain_name(f, name, sizeof(name)));
		const u64 *first;

		key = hash_add_text(hash_add_text(key, f->file), f->module) | 1;
		first = table_get(&seen, key);
		same[i] = first ? (u32)*first : i;
		if (!first)
			err = table_put(&seen, key, i);
	}
	table_free(&seen);
	return err;
}

/* The sums of united functions; *line: of each the one whose line has most of it. */
static void unite(const u64 *sums, const u32 *same, u32 n, u64 *ret, u32 *line)
{
	for (u32 i = 1; i < n; i++) {
		u32 as = same[i];

		ret[as] += sums[i];
		if (!line[as] || sums[i] > sums[line[as]])
			line[as] = i;
	}
}

/* What was named in the absence of a site goes to the rest, unless there is hardly any site. */
static void split(const struct match *m, const struct rule *r, const struct profile *p, u64 *sites, u64 *rest)
{
	u64 sum = 0;

	for (u32 i = 1; i < p->nfunctions; i++)
		if (sites[i] && !match_skips(r, &p->functions[i]) && is_site(r, &p->functions[i]))
			sum += sites[i];
	for (u32 i = 1; (double)sum > SITES_LEAST * (double)m->value && i < p->nfunctions; i++)
		if (sites[i] && (match_skips(r, &p->functions[i]) || !is_site(r, &p->functions[i]))) {
			rest[i] = sites[i];
			sites[i] = 0;
		}
}

/* The greatest first; line: the function that stands for each of them. */
static void take_sites(struct match *m, u64 *sums, const u32 *line, u32 n)
{
	u32 best;

	while (m->nsites < MATCH_SITES && (best = greatest(sums, n)) != 0) {
		m->site[m->nsites++] = (struct match_site){line[best], sums[best]};
		sums[best] = 0;
	}
}

/* A function may call what has a name for those who read its source: no frames of a virtual machine. */
static bool is_callee(const struct profile_function *f, bool of_language)
{
	return f->kind == KIND_SCRIPT_NATIVE || (is_code(f) && (!of_language || match_is_language(f)));
}

/* A decorator's function, or a virtual machine's, says nothing of what is called through it. */
bool match_passes_on(const struct libraries *l, const struct profile_function *f)
{
	for (u32 i = 0; l && i < l->nwrappers; i++)
		if (term_matches(&l->wrappers[i], NULL, f))
			return true;
	return false;
}

/* The function that the site of the stack ends in, by what it calls; 0: itself, or another site is nearer. */
static u32 called_by(const struct rule *r, const struct profile *p, const u32 *same, u32 site, u32 node)
{
	bool of_language = match_is_language(&p->functions[site]);
	u32 callee = 0;

	for (; node; node = p->nodes[node].parent) {
		u32 function = p->nodes[node].function;
		const struct profile_function *f = &p->functions[function];

		if (same[function] == same[site])
			return callee;
		if (is_own(r->libraries, f) && match_is_language(f) == of_language)
			return 0;
		if (is_callee(f, of_language) && !(callee && match_passes_on(r->libraries, f)))
			callee = function;
	}
	return 0;
}

static struct error *find_callee(struct match *m, const struct rule *r, const struct profile *p, const u32 *same)
{
	cleanup(free) u64 *sums = calloc(p->nfunctions + 1, sizeof(u64));

	if (!sums)
		return &error_no_memory;
	for (u32 i = 1; m->nsites && i < p->nnodes; i++)
		if (m->nodes[i])
			sums[same[called_by(r, p, same, m->site[0].function, i)]] += p->nodes[i].self;
	sums[0] = 0;
	m->callee = greatest(sums, p->nfunctions);
	if (m->callee && 2 * sums[m->callee] < m->site[0].value)
		m->callee = 0;
	return NULL;
}

static struct error *rank(struct match *m, const struct rule *r, const struct sums *sums, const struct profile *p)
{
	u32 n = p->nfunctions;
	cleanup(free) u32 *same = calloc(n + 1, sizeof(u32));
	cleanup(free) u32 *line = calloc(n + 1, sizeof(u32));
	cleanup(free) u64 *united = calloc(n + 1, sizeof(u64));
	cleanup(free) u64 *rest = calloc(n + 1, sizeof(u64));
	struct error *err = same && line && united && rest ? match_unite(p, same) : &error_no_memory;

	if (err)
		return err;
	m->function = greatest(sums->last, n);
	unite(sums->site, same, n, united, line);
	split(m, r, p, united, rest);
	take_sites(m, united, line, n);
	take_sites(m, rest, line, n);
	return find_callee(m, r, p, same);
}

/*
 * Time on the run queue counts for itself only in rules that ask for it by name. Elsewhere it is shared out among what
 * the same code does when it has a CPU (share_queue()): what others do with the CPUs must
 * neither hide nor make findings.
 */
static bool is_left_out(const struct rule *r, const struct profile *p, const struct profile_node *n)
{
	if (p->functions[n->function].kind != KIND_RUNNABLE)
		return false;
	for (u32 i = 0; i < r->nstacks; i++)
		for (u32 k = 0; k < r->stacks[i].n; k++)
			if (r->stacks[i].term[k].kinds == 1u << KIND_RUNNABLE)
				return false;
	return true;
}

static bool counts(const struct match *m, const struct rule *r, const struct profile *p, const struct profile_node *n)
{
	return !is_left_out(r, p, n) && !(m->wall && m->idle[n - p->nodes]);
}

/* Of waits alone, those of idle threads are what there is to see. */
static bool has_running(const struct profile *p)
{
	for (u32 i = 1; i < p->nfunctions; i++)
		if (p->functions[i].kind == KIND_RUNNING)
			return true;
	return false;
}

/* Each sample counts for a value; sums of such have the variance sum of count times value squared. */
static void measure(struct match *m, const struct rule *r, const struct profile *p)
{
	double matched = 0, rest = 0, share, look = look_ns(p);

	for (u32 i = 1; i < p->nnodes; i++) {
		const struct profile_node *n = &p->nodes[i];
		double count = n->self ? count_of(p, n, look) : 0;

		if (!counts(m, r, p, n))
			continue;

		m->total += n->self;
		if (count > 0)
			*(m->nodes[i] ? &matched : &rest) += (double)n->self * (double)n->self / count;
		if (m->nodes[i])
			m->count += count;
	}
	share = m->total ? (double)m->value / (double)m->total : 0;
	m->share = share;
	m->error = m->total ? Z95 * sqrt((1 - share) * (1 - share) * matched + share * share * rest) / (double)m->total
	                    : 0;
}

/*
 * A node's time on the run queue goes to what its nearest ancestor with any other time does, in proportion; all of the
 * rule's sites grow with it. Where its caller waits, too, it came after that, and is left out: if others had not had
 * the CPUs, the thread would have waited no longer.
 */
static struct error *share_queue(struct match *m, const struct rule *r, const struct profile *p, struct sums *sums)
{
	cleanup(free) double *all = calloc(p->nnodes, sizeof(double));
	cleanup(free) double *matched = calloc(p->nnodes, sizeof(double));
	cleanup(free) bool *waits = calloc(p->nnodes, sizeof(bool));
	double more = 0, queued = 0, factor;

	if (!all || !matched || !waits)
		return &error_no_memory;
	for (u32 i = p->nnodes - 1; i > 0; i--) {
		const struct profile_node *n = &p->nodes[i];

		if (counts(m, r, p, n)) {
			all[i] += (double)n->self;
			matched[i] += m->nodes[i] ? (double)n->self : 0;
		}
		waits[n->parent] |= p->functions[n->function].kind == KIND_WAITING;
		all[n->parent] += all[i];
		matched[n->parent] += matched[i];
	}
	for (u32 i = 1; i < p->nnodes; i++) {
		u32 at = i;

		if (!p->nodes[i].self || !is_left_out(r, p, &p->nodes[i]) || waits[p->nodes[i].parent])
			continue;
		while (at && all[at] <= 0)
			at = p->nodes[at].parent;
		queued += (double)p->nodes[i].self;
		more += all[at] > 0 ? (double)p->nodes[i].self * matched[at] / all[at] : 0;
	}
	factor = m->value ? 1 + more / (double)m->value : 1;
	m->value = (u64)((double)m->value * factor);
	m->total += (u64)queued;
	m->share = m->total ? (double)m->value / (double)m->total : 0;
	for (u32 i = 1; i < p->nfunctions; i++)
		sums->site[i] = (u64)((double)sums->site[i] * factor);
	return NULL;
}

/* Nodes whose stacks match are left out of all that follows. */
static struct error *mark_excepted(
        const struct stack_pattern *s, const struct libraries *l, const struct profile *p, bool *ret)
{
	struct walk_state w = {0};
	struct traits t;
	struct error *err = traits_make(s, l, p, &t);

	if (err)
		return err;
	err = walk_all(s, p, &t, &w);
	for (u32 i = 1; !err && i < p->nnodes; i++)
		ret[i] |= p->nodes[i].self && is_match(s, &w, i);
	walk_free(&w);
	traits_free(&t);
	return err;
}

static struct error *match_one(struct match *m, const struct rule *r, const struct stack_pattern *s,
        const struct profile *p, const bool *excepted, struct sums *sums)
{
	struct walk_state w = {0};
	struct traits t;
	struct error *err = traits_make(s, r->libraries, p, &t);

	if (err)
		return err;
	err = walk_all(s, p, &t, &w);
	for (u32 i = 1; !err && i < p->nnodes; i++) {
		if (!p->nodes[i].self || m->nodes[i] || excepted[i] || !counts(m, r, p, &p->nodes[i]) ||
		        !is_match(s, &w, i))
			continue;
		if (!sums->copies_sought)
			err = copies_find(r->libraries, p, &sums->copies);
		sums->copies_sought = true;
		note(m, r, s, p, &w, i, sums);
	}
	walk_free(&w);
	traits_free(&t);
	return err;
}

struct error *match_stacks(const struct rule *rule, const struct profile *p, struct match *ret)
{
	struct sums sums = {
	        .site = calloc(p->nfunctions + 1, sizeof(u64)), .last = calloc(p->nfunctions + 1, sizeof(u64))};
	cleanup(free) bool *excepted = calloc(p->nnodes + 1, sizeof(bool));
	struct error *err = NULL;

	*ret = (struct match){.nodes = calloc(p->nnodes + 1, sizeof(bool)), .wall = has_running(p)};
	if (!sums.site || !sums.last || !ret->nodes || !excepted)
		err = &error_no_memory;
	if (!err && ret->wall)
		err = idle_waits(p, &ret->idle);
	for (u32 i = 0; !err && i < rule->nexcepts; i++)
		err = mark_excepted(&rule->excepts[i], rule->libraries, p, excepted);
	for (u32 i = 0; !err && i < rule->nstacks; i++)
		err = match_one(ret, rule, &rule->stacks[i], p, excepted, &sums);
	if (!err) {
		measure(ret, rule, p);
		err = share_queue(ret, rule, p, &sums);
	}
	if (!err)
		err = rank(ret, rule, &sums, p);
	free(sums.site);
	free(sums.last);
	copies_free(sums.copies);
	if (err)
		match_free(ret);
	return err;
}

struct error *match_share(
        const struct stack_pattern *pattern, const struct libraries *l, const struct profile *p, double *ret)
{
	struct rule rule = {.stacks = (struct stack_pattern *)pattern, .nstacks = 1, .libraries = l};
	struct match m;
	struct error *err = match_stacks(&rule, p, &m);

	if (err)
		return err;
	*ret = m.share;
	match_free(&m);
	return NULL;
}

struct error *match_part(
        const struct term *t, const struct libraries *l, const struct profile *p, const struct match *m, double *ret)
{
	cleanup(free) bool *below = calloc(p->nnodes, sizeof(*below)); /* parents come before children */
	u64 sum = 0;

	*ret = 0;
	if (!below)
		return &error_no_memory;
	for (u32 i = 1; i < p->nnodes; i++) {
		below[i] = below[p->nodes[i].parent] || term_matches(t, l, &p->functions[p->nodes[i].function]);
		sum += below[i] && m->nodes[i] ? p->nodes[i].self : 0;
	}
	*ret = m->value ? (double)sum / (double)m->value : 0;
	return NULL;
}

void match_free(struct match *m)
{
	free(m->nodes);
	free(m->idle);
	*m = (struct match){0};
}

/* Processes of one program do the same: their stacks are shown as those of one. */
static bool is_one_program(const struct profile *p)
{
	const char *first = NULL;
	size_t n = 0;

	for (u32 i = 1; i < p->nfunctions; i++) {
		const char *name = p->functions[i].name;

		if (p->functions[i].kind != KIND_PROCESS)
			continue;
		if (!first)
			n = strcspn(name, " :");
		first = first ? first : name;
		if (strncmp(name, first, n) != 0 || strcspn(name, " :") != n)
			return false;
	}
	return true;
}

static bool is_left_out_of_picture(const struct profile_function *f, bool one)
{
	return f->kind == KIND_CONTAINER || (one && f->kind == KIND_PROCESS);
}

/* Machine code that calls that of a language (an interpreter, its host): people read what it calls. */
static bool is_glue(const struct profile_function *f)
{
	return f->kind == KIND_NATIVE || f->kind == KIND_CXX || f->kind == KIND_VM || f->kind == KIND_STUB;
}

static bool is_written(enum profile_kind kind)
{
	return kind == KIND_SCRIPT || kind == KIND_SCRIPT_BASELINE || kind == KIND_SCRIPT_JIT;
}

/* The frames of a stack that are shown, the leaf first; the outermost ones of what is too long are left out. */
static u32 shown_of(const struct profile *p, u32 node, bool one, u32 *path)
{
	bool spoken = false;
	u32 n = 0;

	for (; node && n < PICTURE_DEPTH; node = p->nodes[node].parent) {
		const struct profile_function *f = &p->functions[p->nodes[node].function];

		if (!is_left_out_of_picture(f, one) && !(spoken && is_glue(f)))
			path[n++] = p->nodes[node].function;
		spoken |= is_written(f->kind);
	}
	return n;
}

static struct error *add_shown(
        struct profile *to, const struct profile *p, const u32 *path, u32 n, u32 *functions, u64 value)
{
	struct error *err = NULL;
	u32 node = 0;

	while (!err && n-- > 0) {
		if (!functions[path[n]]) {
			struct profile_function copy = p->functions[path[n]];

			copy.image = 0; /* images stay behind */
			if (is_written(copy.kind))
				copy.kind = KIND_SCRIPT; /* interpreted or compiled: the same to those who read it */
			err = profile_function(to, 0, &copy, false, &functions[path[n]]);
		}
		if (!err)
			err = profile_child(to, node, functions[path[n]], &node);
	}
	if (!err)
		profile_add(to, node, value);
	return err;
}

struct error *match_profile(const struct match *m, const struct profile *p, struct profile **ret)
{
	bool one = is_one_program(p);
	cleanup(free) u32 *functions = calloc(p->nfunctions + 1, sizeof(u32));
	cleanup(free) u32 *path = calloc(PICTURE_DEPTH, sizeof(u32));
	struct error *err = functions && path ? profile_create(ret) : &error_no_memory;

	if (err)
		return err;
	for (u32 i = 1; !err && i < p->nnodes; i++)
		if (m->nodes[i])
			err = add_shown(*ret, p, path, shown_of(p, i, one, path), functions, p->nodes[i].self);
	if (err) {
		profile_destroy(*ret);
		*ret = NULL;
		return err;
	}
	(*ret)->meta.unit = p->meta.unit;
	(*ret)->meta.frequency = p->meta.frequency;
	profile_finish(*ret);
	return NULL;
}
