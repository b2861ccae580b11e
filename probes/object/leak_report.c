/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "probes/loss.h"
#include "unwind/cleanup.h"
#include "unwind/hash_text.h"

#define TOLD         10 /* stacks in the text */
#define CALLERS      5
#define CLASSES_TOLD 3
#define MAKERS       3 /* stacks of a class */

#define CURVE_LEAST  4        /* points */
#define GROWN_BLOCKS 16       /* fewer are no growth, */
#define GROWN_PART   100      /* nor is less than such a part (1/GROWN_PART) of what there is */
#define HEAP_UNSURE  0.1      /* of what the heap says: it is read while it changes, and at other moments than yrt's */
#define CURVE_UNSURE 0.4      /* the same of resident memory: allocators round up, and take whole pages; */
#define CURVE_SLACK  524288.0 /* bytes that were resident before they were in use, */

#define LONG   0.25 /* of the run, that blocks are looked at again for, */
#define ENOUGH 3    /* if so many are */

#define DOUBTFUL 3 /* times as much outlives, of stacks of a size, as there is more of it: not all leak */

struct judged {
	struct leak_site *site;
	struct leak_growth growth;
	struct leak_life life;    /* in windows, as the next two: */
	double age_s;             /* that blocks outlived, as it seems; for some it is proven */
	struct leak_growing heap; /* of blocks of its size, or, if that is not known, of all memory */
	bool of_size;
	u64 seen, blocks, bytes;
	bool in_doubt; /* it leaks, or another one of its size does */
};

static void describe_windows(const struct judged *j, char *text, size_t size)
{
	char low[LOSS_AMOUNT], high[LOSS_AMOUNT], age[LOSS_TIME];

	switch (j->growth.verdict) {
	case LEAK_GROWS:
		snprintf(text, size,
		        j->in_doubt ? "[it or another of its size leaks %s to %s a minute]"
		                    : "[leaks %s to %s a minute]",
		        loss_amount(j->growth.low, low), loss_amount(j->growth.high, high));
		break;
	case LEAK_LONG:
		snprintf(text, size, "[outlived %.1f s; others were freed late]", j->age_s);
		break;
	case LEAK_ENDED:
		snprintf(text, size, "[outlived %.1f s; memory of its size does not grow so]", j->age_s);
		break;
	case LEAK_SHORT:
		snprintf(text, size, "[outlived %s: not watched for longer]",
		        loss_time((double)leak_age_begin(j->life.reached), age));
		break;
	default:
		snprintf(text, size, "[outlived %.1f s: too few to tell]", j->age_s);
	}
}

void leak_describe(const struct leak_growth *growth, char *text, size_t size)
{
	static const char *const words[] = {[LEAK_FEW] = "left: too few to tell",
	        [LEAK_IN_USE] = "left: young",
	        [LEAK_ENDED] = "left: grew, then ended"};
	char low[32], high[32];

	if (growth->verdict == LEAK_GROWS)
		snprintf(text, size, "[left: grows by %s to %s a minute]", loss_amount(growth->low, low),
		        loss_amount(growth->high, high));
	else
		snprintf(text, size, "[%s]", words[growth->verdict]);
}

static void describe(const struct leak_summary *s, const struct judged *j, char *text, size_t size)
{
	if (s->in_windows)
		describe_windows(j, text, size);
	else
		leak_describe(&j->growth, text, size);
}

static void judge(const struct leak_stacks *stacks, struct leak_site *site, u64 now, struct judged *ret)
{
	struct leak_left left;

	*ret = (struct judged){.site = site};
	leak_stacks_thirds(stacks, site, now, &left);
	ret->growth = leak_judge(&left, (double)(now - stacks->began_ns) / 1e9);
	for (u32 i = 0; i < LEAK_SLOTS; i++) {
		ret->seen += site->seen[i];
		ret->blocks += site->blocks[i];
		ret->bytes += site->bytes[i];
	}
}

static double mean_size(const struct leak_site *site)
{
	return site->calls_made > 0 ? site->bytes_made / site->calls_made : 0;
}

/* How memory has grown that a stack's blocks could be: by their size, or all that is not of files. */
static void see_growth(const struct leak_site *site, struct leak_heap *heap, const struct leak_summary *s, double run_s,
        struct leak_windows *w, struct leak_growing *growth, bool *of_size)
{
	const struct leak_point *first = s->curve, *middle = &s->curve[s->npoints / 2], *last = first + s->npoints - 1;
	struct leak_heap_blocks of = {site->watch.books, site->watch.least, site->watch.most, mean_size(site)};

	*of_size = of.books != LEAK_BOOKS_NONE && heap && leak_heap_grew(heap, run_s, &of, growth);
	w->has_heap = *of_size || s->npoints >= CURVE_LEAST;
	if (!*of_size && w->has_heap)
		*growth = (struct leak_growing){.early = (double)middle->heap - (double)first->heap,
		        .late = (double)last->heap - (double)middle->heap,
		        .in_use = (double)last->heap,
		        .a_minute = ((double)last->heap - (double)first->heap) / run_s * 60};
	w->early = growth->early;
	w->late = growth->late;
	w->least = fmax(GROWN_BLOCKS * (double)site->watch.most, growth->in_use / GROWN_PART);
}

/*
 * Up to the longest age that says something. Not all that seemed to be there were so when they had registers: that part
 * of the others is none, either.
 */
static void see_life(const struct leak_site *site, const struct leak_summary *s, double run_s, struct judged *ret)
{
	u32 died[LEAK_AGES];
	double true_part;

	for (u32 i = 0; i < LEAK_AGES; i++)
		died[i] = site->all.died[i] + site->watch.died[i];
	ret->age_s = run_s * LONG;
	leak_life(died, site->watch.cut, (u64)(ret->age_s * 1e9), &ret->life);
	if (!ret->life.known || ret->life.outlived < ENOUGH) {
		ret->age_s = s->watch_s;
		leak_life(died, site->watch.cut, (u64)(ret->age_s * 1e9), &ret->life);
	}
	if (!site->watch.late)
		return;
	true_part = (double)site->watch.outlived / (site->watch.outlived + site->watch.late);
	ret->life.part *= true_part;
	ret->life.low *= true_part;
	ret->life.high *= true_part;
}

static void judge_windows(
        struct leak_site *site, struct leak_heap *heap, const struct leak_summary *s, double run_s, struct judged *ret)
{
	const struct alloc_estimate *e = &s->estimate;
	struct leak_windows w = {.life = &ret->life,
	        .watched = site->watch.watched - site->watch.busy,
	        .stayed = site->watch.outlived,
	        .gone = site->watch.late,
	        .bytes = site->bytes_made,
	        .below = e->bytes > 0 ? e->bytes_low / e->bytes : 1,
	        .above = e->bytes > 0 ? e->bytes_high / e->bytes : 1};
	double part;

	*ret = (struct judged){.site = site};
	see_life(site, s, run_s, ret);
	see_growth(site, heap, s, run_s, &w, &ret->heap, &ret->of_size);
	ret->growth = leak_judge_windows(&w, run_s);
	if (ret->growth.verdict == LEAK_IN_USE)
		return;
	for (u32 i = 0; i < LEAK_AGES; i++)
		ret->seen += site->watch.cut[i];
	part = ret->life.part;
	if (ret->heap.in_use > 0 && site->bytes_made > 0) /* there are not more */
		part = fmin(part, ret->heap.in_use / site->bytes_made);
	ret->bytes = (u64)(site->bytes_made * part);
	ret->blocks = (u64)(site->calls_made * part);
}

static bool same_size(const struct judged *a, const struct judged *b)
{
	const struct leak_seen *x = &a->site->watch, *y = &b->site->watch;

	return x->books == y->books && x->least <= leak_heap_room(y->books, y->most) &&
	       y->least <= leak_heap_room(x->books, x->most);
}

/* So much memory a block takes, of those that are left: a function may make others that are freed. */
static double room_left(const struct leak_site *site)
{
	const struct leak_seen *w = &site->watch;

	return fmax((double)leak_heap_room(w->books, (u64)(w->outlived_bytes / fmax(w->outlived, 1))), 1);
}

/* It is no more than all memory that is not of files grows by. Blocks take more room than was asked for. */
static void limit(struct judged *j, double a_minute, double run_s)
{
	double most = a_minute + CURVE_SLACK / run_s * 60, part = fmin(most * run_s / 60 / (double)j->bytes, 1);

	j->growth.low = fmin(j->growth.low, a_minute * (1 - CURVE_UNSURE));
	j->growth.high = fmin(j->growth.high, most * (1 + HEAP_UNSURE));
	j->bytes = (u64)((double)j->bytes * part);
	if (part < 1)
		j->blocks = (u64)((double)j->bytes / room_left(j->site));
}

/*
 * What leaks of a size is what the heap has more of it: exact, while windows know totals only roughly. Where several
 * stacks of a size leak, it is divided as windows say.
 */
static void scale(struct judged *all, u32 n, double run_s)
{
	for (u32 i = 0; i < n; i++) {
		struct judged *j = &all[i];
		double own = (double)j->bytes, sum = 0, part, a_minute = j->heap.a_minute;
		bool alone = true;

		if (j->growth.verdict != LEAK_GROWS || a_minute <= 0 || own <= 0)
			continue;
		if (!j->of_size) {
			limit(j, a_minute, run_s);
			continue;
		}
		for (u32 k = 0; k < n; k++)
			if (all[k].growth.verdict == LEAK_GROWS && same_size(&all[k], j)) {
				sum += all[k].site->bytes_made * all[k].life.part;
				alone &= k == i;
			}
		j->in_doubt = !alone && sum > DOUBTFUL * a_minute * run_s / 60;
		part = sum > 0 ? fmin(j->site->bytes_made * j->life.part / sum, 1) : 1;
		j->growth.low = j->heap.low * (alone ? 1 : part / 2);
		j->growth.high = j->heap.high * (alone ? 1 : fmin(part * 2, 1));
		j->bytes = (u64)(a_minute * part * run_s / 60);
		j->blocks = (u64)((double)j->bytes / room_left(j->site));
	}
}

static struct error *show(struct profile *p, const struct leak_summary *s, const struct judged *j)
{
	char text[128];
	struct profile_function fn = {.name = text, .module = "", .file = "", .kind = KIND_LABEL};
	struct error *err;
	u32 function, node;

	describe(s, j, text, sizeof(text));
	err = profile_function(p, 0, &fn, false, &function);
	if (!err)
		err = profile_child(p, j->site->node, function, &node);
	if (err)
		return err;
	profile_add(p, node, j->bytes);
	profile_add_more(p, node, j->blocks);
	return NULL;
}

/* The same for all stacks that people read as one: of a method before and after it was compiled, of calls in a line. */
static u64 name_hash(const struct profile *p, u32 node)
{
	u64 hash = 1; /* 0 is no key of a table */

	for (; node; node = p->nodes[node].parent)
		hash = hash_add_text(hash, p->functions[p->nodes[node].function].name);
	return hash;
}

static void add_site(struct leak_site *to, const struct leak_site *from)
{
	for (u32 i = 0; i < LEAK_SLOTS; i++) {
		to->seen[i] += from->seen[i];
		to->blocks[i] += from->blocks[i];
		to->bytes[i] += from->bytes[i];
	}
	for (u32 i = 0; i < LEAK_AGES; i++) {
		to->all.died[i] += from->all.died[i];
		to->watch.cut[i] += from->watch.cut[i];
		to->watch.died[i] += from->watch.died[i];
	}
	to->all.made += from->all.made;
	to->all.made_bytes += from->all.made_bytes;
	to->all.freed += from->all.freed;
	to->all.freed_bytes += from->all.freed_bytes;
	to->all.life_ns += from->all.life_ns;
	to->all.lives += from->all.lives;
	to->bytes_made += from->bytes_made;
	to->calls_made += from->calls_made;
	to->watch.watched += from->watch.watched;
	to->watch.outlived += from->watch.outlived;
	to->watch.outlived_bytes += from->watch.outlived_bytes;
	to->watch.late += from->watch.late;
	to->watch.busy += from->watch.busy;
	for (u32 i = 0; i < LEAK_CLASS_WORDS; i++)
		to->watch.classes[i] |= from->watch.classes[i];
	to->watch.left += from->watch.left;
	to->watch.in_window += from->watch.in_window;
	to->watch.books = from->watch.books ? from->watch.books : to->watch.books;
	if (from->watch.hash && (!to->watch.hash || from->watch.least < to->watch.least))
		to->watch.least = from->watch.least;
	to->watch.most = from->watch.most > to->watch.most ? from->watch.most : to->watch.most;
	to->watch.hash = to->watch.hash ? to->watch.hash : from->watch.hash;
}

struct error *leak_join_sites(struct leak_stacks *stacks, const struct profile *p)
{
	struct table first = {0};
	struct error *err = NULL;

	for (u32 i = 0; !err && i < stacks->n; i++) {
		struct leak_site *site = &stacks->of[i];
		u64 hash = name_hash(p, site->node), *place = table_get(&first, hash);

		if (!place) {
			err = table_put(&first, hash, i + 1);
			continue;
		}
		add_site(&stacks->of[*place - 1], site);
		*site = (struct leak_site){.hash = site->hash, .node = site->node};
	}
	table_free(&first);
	return err;
}

/* What grows first, then by size. */
static int by_growth(const void *a, const void *b)
{
	const struct judged *x = a, *y = b;
	bool grows = x->growth.verdict == LEAK_GROWS, others = y->growth.verdict == LEAK_GROWS;

	if (grows != others)
		return grows ? -1 : 1;
	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Code of a language, as its users know it? */
static bool is_script(const struct profile *p, u32 node)
{
	enum profile_kind kind = p->functions[p->nodes[node].function].kind;

	return kind >= KIND_SCRIPT && kind <= KIND_SCRIPT_JIT;
}

void leak_print_stack(FILE *out, const struct profile *p, u32 node)
{
	u32 script = node, shown = 0;

	while (script && !is_script(p, script))
		script = p->nodes[script].parent;
	for (; node && shown <= CALLERS; node = p->nodes[node].parent) {
		if (shown == 2 && script && node > script) {
			fputs(" < …", out);
			node = script;
		}
		fprintf(out, "%s%s", shown++ ? " < " : "", p->functions[p->nodes[node].function].name);
	}
	fputs(node ? " …\n" : "\n", out);
}

static void print_one(FILE *out, const struct profile *p, const struct leak_summary *s, const struct judged *j)
{
	const struct leak_stack *all = &j->site->all;
	char text[128], bytes[LOSS_AMOUNT], life[LOSS_TIME];

	describe(s, j, text, sizeof(text));
	if (s->in_windows) {
		fprintf(out, "  %s: about %s in %lu of %.0f blocks; debug registers watched %u: %u were still there",
		        text, loss_amount((double)j->bytes, bytes), j->blocks,
		        fmax(j->site->calls_made, (double)j->blocks), j->site->watch.watched,
		        j->site->watch.outlived - j->site->watch.in_window);
		if (j->site->watch.in_window)
			fprintf(out, "; windows, %u more", j->site->watch.in_window);
		fputs("\n    ", out);
		leak_print_stack(out, p, j->site->node);
		return;
	}
	fprintf(out, "  %s: %s in %lu of %lu blocks%s", text, loss_amount((double)j->bytes, bytes), j->blocks,
	        all->made, all->lives ? "" : ", none was freed");
	if (all->lives)
		fprintf(out, ", the others were freed after %s on average",
		        loss_time((double)all->life_ns / (double)all->lives, life));
	fputs("\n    ", out);
	leak_print_stack(out, p, j->site->node);
}

static bool is_in_class(const struct leak_site *site, const struct leak_class *c)
{
	return site->watch.books == c->books && site->watch.classes[c->number / 64] >> c->number % 64 & 1;
}

static bool is_explained(const struct judged *all, u32 n, const struct leak_class *c)
{
	bool ret = false;

	for (u32 i = 0; !ret && i < n; i++)
		ret = all[i].growth.verdict == LEAK_GROWS && is_in_class(all[i].site, c);
	return ret;
}

/* Of the stacks of which windows left blocks of that class, the one that left most, but less than before. */
static const struct leak_site *next_in_class(
        const struct leak_stacks *stacks, const struct leak_class *c, const struct leak_site *before)
{
	const struct leak_site *ret = NULL;

	for (u32 i = 0; i < stacks->n; i++) {
		const struct leak_site *s = &stacks->of[i];

		if (is_in_class(s, c) && (!before || s->watch.left < before->watch.left) &&
		        (!ret || s->watch.left > ret->watch.left))
			ret = s;
	}
	return ret;
}

static void print_class(
        FILE *out, const struct profile *p, const struct leak_stacks *stacks, const struct leak_class *c)
{
	const struct leak_site *maker = next_in_class(stacks, c, NULL);
	char name[SIZE_CLASS_NAME], bytes[32];

	fprintf(out, "  blocks that take %s: %s more a minute, and no stack is proven to leak them; %s\n",
	        size_class_name(c->number, name), loss_amount(c->growth.a_minute, bytes),
	        maker ? "some came from" : "no window left any of them");
	for (u32 i = 0; maker && i < MAKERS; i++, maker = next_in_class(stacks, c, maker)) {
		fputs("    ", out);
		leak_print_stack(out, p, maker->node);
	}
}

/* What grows by the allocators' books, though no stack says why. */
static void print_classes(FILE *out, const struct profile *p, const struct leak_stacks *stacks, struct leak_heap *heap,
        const struct judged *all, u32 n, double run_s)
{
	cleanup(free) struct leak_class *of = calloc(LEAK_CLASSES, sizeof(*of));
	u32 nof = of && heap ? leak_heap_growing(heap, run_s, of) : 0, told = 0;

	for (u32 i = 0; i < nof && told < CLASSES_TOLD; i++)
		if (!is_explained(all, n, &of[i])) {
			print_class(out, p, stacks, &of[i]);
			told++;
		}
}

/* In windows a stack may have been seen, of whose blocks less than one is left. */
static u32 without_none(struct judged *all, u32 n)
{
	u32 kept = 0;

	for (u32 i = 0; i < n; i++)
		if (all[i].blocks)
			all[kept++] = all[i];
	return kept;
}

struct error *leak_report(struct leak_stacks *stacks, struct leak_heap *heap, struct profile *p, struct leak_summary *s,
        u64 now, char **text)
{
	cleanup(free) struct judged *all = calloc(stacks->n + 1, sizeof(*all));
	size_t size;
	FILE *out = all ? open_memstream(text, &size) : NULL;
	struct error *err = out ? NULL : &error_no_memory;
	u32 n = 0;

	if (!err)
		err = leak_join_sites(stacks, p);
	for (u32 i = 0; !err && i < stacks->n; i++) {
		if (s->in_windows)
			judge_windows(&stacks->of[i], heap, s, (double)(now - stacks->began_ns) / 1e9, &all[n]);
		else
			judge(stacks, &stacks->of[i], now, &all[n]);
		s->outlived += stacks->of[i].watch.outlived;
		if (!all[n].seen)
			continue;
		s->grows += all[n++].growth.verdict == LEAK_GROWS;
	}
	if (s->in_windows)
		scale(all, n, (double)(now - stacks->began_ns) / 1e9);
	for (u32 i = 0; !err && i < n; i++) {
		bool grows = all[i].growth.verdict == LEAK_GROWS;

		s->grows_low += grows ? all[i].growth.low : 0;
		s->grows_high += grows ? all[i].growth.high : 0;
		err = show(p, s, &all[i]);
	}
	if (!err)
		qsort(all, n, sizeof(*all), by_growth);
	n = err ? 0 : without_none(all, n);
	for (u32 i = 0; i < n && i < TOLD; i++)
		print_one(out, p, s, &all[i]);
	if (n > TOLD)
		fprintf(out, "  and %u more stacks\n", n - TOLD);
	if (!err && s->in_windows)
		print_classes(out, p, stacks, heap, all, n, (double)(now - stacks->began_ns) / 1e9);
	if (out)
		fclose(out);
	return err;
}
