/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines as text: groups with what they wait for, each by itself, and what grew. */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "go_goroutines.h"
#include "go_text.h"

#define SHOWN 4 /* creators, states of a group */

struct count {
	u64 what;           /* a pc, or a pointer to text */
	const char *manner; /* go_goroutine_manner() */
	u32 n;
};

/* What is counted of a group: the most frequent ones, of the first few kinds that were met. */
struct counts {
	struct count kinds[16];
	u32 n, others;
};

static void count(struct counts *c, u64 what, const char *manner)
{
	u32 i = 0;

	while (i < c->n && (c->kinds[i].what != what || strcmp(c->kinds[i].manner, manner) != 0))
		i++;
	if (i == sizeof(c->kinds) / sizeof(*c->kinds)) {
		c->others++;
		return;
	}
	if (i == c->n)
		c->kinds[c->n++] = (struct count){.what = what, .manner = manner};
	c->kinds[i].n++;
}

static int more_first(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	return (x->n < y->n) - (x->n > y->n);
}

/* Takes the most frequent; what is not listed goes to others. */
static u32 sort_counts(struct counts *c)
{
	u32 shown = c->n < SHOWN ? c->n : SHOWN;

	qsort(c->kinds, c->n, sizeof(*c->kinds), more_first);
	for (u32 i = shown; i < c->n; i++)
		c->others += c->kinds[i].n;
	return shown;
}

static void print_states(struct counts *states, u64 longest, FILE *out)
{
	u32 n = sort_counts(states);

	fputs("# state: ", out);
	for (u32 i = 0; i < n; i++)
		fprintf(out, "%s%s%s %u", i ? ", " : "", (const char *)states->kinds[i].what, states->kinds[i].manner,
		        states->kinds[i].n);
	if (states->others)
		fprintf(out, ", others %u", states->others);
	if (longest)
		fprintf(out, ", longest %lu minutes", longest);
	fputc('\n', out);
}

static void print_creators(const struct go_places *p, struct counts *creators, FILE *out)
{
	u32 n = sort_counts(creators), k;

	for (u32 i = 0; i < n; i++) {
		const struct go_place *at = go_places_at(p, creators->kinds[i].what, &k);

		if (creators->kinds[i].what && at)
			fprintf(out, "# created by: %s %s:%u %u\n", go_place_name(p, at + k - 1), go_place_file(p, at),
			        at->line, creators->kinds[i].n);
	}
	if (creators->others)
		fprintf(out, "# created by: others %u\n", creators->others);
}

struct group {
	u32 chain;
	u32 first; /* in go_goroutine_snapshot.order */
	s64 n;
};

static int larger_first(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : (x->first > y->first) - (x->first < y->first);
}

/* As runtime/pprof has them: a line of their own. */
static void print_labels(const struct go_goroutine_snapshot *s, u32 labels, FILE *out)
{
	if (!labels)
		return;
	fputs("# labels: ", out);
	go_labels_print(&s->goroutines.labels.sets[labels - 1], out);
	fputc('\n', out);
}

static void print_group(const struct go_goroutine_snapshot *s, const struct group *group, FILE *out)
{
	struct counts states = {0}, creators = {0};
	const struct go_chain *c = &s->stacks.chains[group->chain];
	u32 labels = s->goroutines.all[s->order[group->first]].labels;
	u64 longest = 0;

	for (u32 i = group->first; i < group->first + group->n; i++) {
		const struct go_goroutine *g = &s->goroutines.all[s->order[i]];
		u64 minutes = go_goroutine_minutes(s, g);

		count(&states, (u64)go_goroutine_state(s, g), go_goroutine_manner(s, g));
		if (g->id != 1) /* the first was created by assembly */
			count(&creators, g->creator, "");
		longest = minutes > longest ? minutes : longest;
	}
	fprintf(out, "%ld @", group->n);
	go_print_pcs(&s->places, &s->stacks, c, out);
	fputc('\n', out);
	print_labels(s, labels, out);
	print_states(&states, longest, out);
	print_creators(&s->places, &creators, out);
	if (c->cut)
		fprintf(out, "# deeper than %u frames: the outermost are missing\n", GO_DEPTH_MAX);
	go_print_lines(&s->places, &s->stacks, c, out);
	fputc('\n', out);
}

/* Those that have no stack. */
static void print_others(const struct go_goroutine_snapshot *s, FILE *out)
{
	u32 n[GO_UNWALKED + 1] = {0};

	for (u32 i = 0; i < s->goroutines.n; i++)
		n[s->goroutines.all[i].seen]++;
	if (n[GO_ON_CPU])
		fprintf(out, "# running: %u, whose stacks are not told from outside: yrt go-flame samples them\n",
		        n[GO_ON_CPU]);
	if (n[GO_TORN])
		fprintf(out, "# torn: %u, which moved while they were read\n", n[GO_TORN]);
	if (n[GO_UNWALKED])
		fprintf(out, "# not walked: %u, whose stacks did not lead to where goroutines begin\n", n[GO_UNWALKED]);
}

static u32 labels_at(const struct go_goroutine_snapshot *s, u32 i)
{
	return s->goroutines.all[s->order[i]].labels;
}

/* Those with the same stack and the same labels together. */
static struct error *print_groups(const struct go_goroutine_snapshot *s, FILE *out)
{
	cleanup(free) struct group *groups = calloc((size_t)s->first[s->nchains] + 1, sizeof(*groups));
	u32 n = 0;

	if (!groups)
		return &error_no_memory;
	for (u32 i = 0; i < s->nchains; i++)
		for (u32 k = s->first[i]; k < s->first[i + 1]; k++) {
			if (k == s->first[i] || labels_at(s, k) != labels_at(s, k - 1))
				groups[n++] = (struct group){.chain = i, .first = k};
			groups[n - 1].n++;
		}
	qsort(groups, n, sizeof(*groups), larger_first);
	fprintf(out, "goroutine profile: total %u\n", s->goroutines.n);
	print_others(s, out);
	for (u32 i = 0; i < n; i++)
		print_group(s, &groups[i], out);
	return NULL;
}

static int by_id(const void *a, const void *b)
{
	const struct go_goroutine *x = *(const struct go_goroutine *const *)a,
	                          *y = *(const struct go_goroutine *const *)b;

	return (x->id > y->id) - (x->id < y->id);
}

/* As a panic does, not of what the runtime itself started; system: that, too. */
static void print_creator(const struct go_goroutine_snapshot *s, const struct go_goroutine *g, bool system, FILE *out)
{
	u32 n;
	const struct go_place *at = g->creator && g->id != 1 ? go_places_at(&s->places, g->creator, &n) : NULL;
	const char *name = at ? go_place_name(&s->places, at + n - 1) : NULL;

	if (!name || (!system && !go_is_traced(name, true)))
		return;
	fprintf(out, "created by %s", name);
	if (g->parent)
		fprintf(out, " in goroutine %lu", g->parent);
	fprintf(out, "\n\t%s:%u +0x%lx\n", go_place_file(&s->places, at), at->line, at->pc - at->entry);
}

static void print_one(const struct go_goroutine_snapshot *s, const struct go_goroutine *g, bool system, FILE *out)
{
	static const char *const without[] = {[GO_ON_CPU] = "running on another thread; stack unavailable",
	        [GO_TORN] = "moved while it was read; stack unavailable",
	        [GO_UNWALKED] = "stack could not be walked to its beginning"};
	u64 minutes = go_goroutine_minutes(s, g);

	fprintf(out, "goroutine %lu [%s%s", g->id, go_goroutine_state(s, g), go_goroutine_manner(s, g));
	if (minutes)
		fprintf(out, ", %lu minutes", minutes);
	fputs(g->locked ? ", locked to thread" : "", out);
	if (g->bubble)
		fprintf(out, ", synctest bubble %lu", g->bubble);
	fputc(']', out);
	if (g->labels) {
		fputc(' ', out);
		go_labels_print_trace(&s->goroutines.labels.sets[g->labels - 1], out);
	}
	fputs(":\n", out);
	if (g->seen == GO_STANDS)
		go_print_trace(&s->places, &s->stacks, &s->stacks.chains[g->walked], out);
	else
		fprintf(out, "\tgoroutine %s\n", without[g->seen]);
	print_creator(s, g, system, out);
	fputc('\n', out);
}

static struct error *print_each(const struct go_goroutine_snapshot *s, bool system, FILE *out)
{
	cleanup(free) const struct go_goroutine **sorted = calloc((size_t)s->goroutines.n + 1, sizeof(*sorted));

	if (!sorted)
		return &error_no_memory;
	for (u32 i = 0; i < s->goroutines.n; i++)
		sorted[i] = &s->goroutines.all[i];
	qsort(sorted, s->goroutines.n, sizeof(*sorted), by_id);
	for (u32 i = 0; i < s->goroutines.n; i++)
		print_one(s, sorted[i], system, out);
	return NULL;
}

/* What there are more of now, then what there are less of. */
static struct error *print_growth(
        const struct go_goroutine_snapshot *before, struct go_goroutine_snapshot *s, FILE *out)
{
	cleanup(free) u32 *had = go_goroutines_before(before, s);
	cleanup(free) struct group *groups = calloc((size_t)s->stacks.nchains + 1, sizeof(*groups));
	u32 n = 0;

	if (!had || !groups)
		return &error_no_memory;
	for (u32 i = 0; i < s->stacks.nchains; i++) {
		u32 has = i < s->nchains ? s->first[i + 1] - s->first[i] : 0;

		if (has != had[i])
			groups[n++] = (struct group){.chain = i, .first = i, .n = (s64)has - had[i]};
	}
	qsort(groups, n, sizeof(*groups), larger_first);
	fprintf(out, "# goroutines: %u, %+ld in %.1f s; stacks that there are more of come first\n", s->goroutines.n,
	        (s64)s->goroutines.n - before->goroutines.n,
	        (double)(s->goroutines.now - before->goroutines.now) / 1e9);
	for (u32 i = 0; i < n; i++) {
		const struct go_goroutine_snapshot *whose = groups[i].chain < s->nchains ? s : before;
		const struct go_chain *c = &s->stacks.chains[groups[i].chain];

		fprintf(out, "%+ld, from %u to %ld @", groups[i].n, had[groups[i].chain],
		        had[groups[i].chain] + groups[i].n);
		go_print_pcs(&whose->places, &s->stacks, c, out);
		fputc('\n', out);
		go_print_lines(&whose->places, &s->stacks, c, out);
		fputc('\n', out);
	}
	return NULL;
}

struct error *go_goroutines_print(const void *before, void *after, u32 flags, FILE *out)
{
	if (before)
		return print_growth(before, after, out);
	return flags & GO_EACH ? print_each(after, flags & GO_SYSTEM, out) : print_groups(after, out);
}
