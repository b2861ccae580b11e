/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_processes.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define NAME_LONGEST 4096 /* of a string in a profile */

struct levels {
	struct profile *p;
	enum processes how;
	u32 *list; /* functions that are processes, those of a program beside each other */
	u32 n;
	u32 *as;
	bool *used;
	bool containers; /* processes of one program in two containers are apart */
};

static void cleanup_levels(struct levels *w)
{
	free(w->list);
	free(w->as);
	free(w->used);
}

/* Strings of a profile are there once: equal ones have equal addresses. */
static int compare_groups(const struct levels *w, u32 i, u32 j)
{
	const struct profile_function *f = &w->p->functions[i], *g = &w->p->functions[j];

	if (f->module != g->module)
		return f->module < g->module ? -1 : 1;
	return w->containers && f->file != g->file ? (f->file < g->file ? -1 : 1) : 0;
}

static int compare_programs(const void *a, const void *b, void *levels)
{
	u32 i = *(const u32 *)a, j = *(const u32 *)b;
	int c = compare_groups(levels, i, j);

	return c ? c : (i > j) - (i < j);
}

static void find(struct levels *w)
{
	struct profile *p = w->p;

	for (u32 i = 1; i < p->nnodes; i++)
		if (p->nodes[i].total || p->base)
			w->used[p->nodes[i].function] = true;
	for (u32 i = 0; i < p->nfunctions; i++) {
		w->as[i] = i;
		if (p->functions[i].kind == KIND_PROCESS && w->used[i])
			w->list[w->n++] = i;
		else if (p->functions[i].kind == KIND_PROCESS)
			w->as[i] = 0;
	}
	qsort_r(w->list, w->n, sizeof(*w->list), compare_programs, w);
}

/* Without the folder of the program, which the first word names. */
static const char *short_name(const char *name)
{
	const char *end = name + strcspn(name, " "), *at = end;

	while (at > name && at[-1] != '/')
		at--;
	return at < end ? at : name;
}

/* How much the names of n processes have in common, whole words and the first one at least; all of it if they are the
 * same. */
static size_t common_words(const struct levels *w, const u32 *list, u32 n)
{
	const char *first = w->p->functions[list[0]].name;
	size_t same = strlen(first), word = strcspn(first, " ");

	for (u32 i = 1; i < n; i++) {
		const char *other = w->p->functions[list[i]].name;
		size_t k = 0;

		while (k < same && first[k] == other[k])
			k++;
		same = k;
	}
	while (same > word && same < strlen(first) && first[same] != ' ')
		same--;
	return same > word ? same : word;
}

static size_t cut_at(const char *text, size_t most)
{
	while (most && ((unsigned char)text[most] & 0xc0) == 0x80)
		most--;
	return most;
}

/* Of a long command line what other processes of the program have too gives way. */
static struct error *shorten(struct profile *p, struct profile_function *f, size_t common)
{
	char text[2 * NAME_LONGEST + 64];
	const char *name = short_name(f->name);
	size_t skipped = (size_t)(name - f->name), n, left;
	size_t word = strcspn(name, " ");

	common -= common > skipped ? skipped : common;
	if (strlen(name) > PROCESS_SHOWN && common > word && name[common] == ' ')
		n = (size_t)snprintf(text, sizeof(text), "%.*s \u2026%s", (int)word, name, name + common);
	else
		n = (size_t)snprintf(text, sizeof(text), "%s", name);
	if (n > PROCESS_SHOWN) {
		n = cut_at(text, PROCESS_SHOWN);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\u2026");
	}
	left = sizeof(text) - n;
	if (f->line)
		snprintf(text + n, left, " (pid %u)", f->line);
	return profile_string(p, text, &f->name);
}

static struct error *show_each(struct levels *w, const u32 *list, u32 n)
{
	size_t common = n > 1 ? common_words(w, list, n) : 0;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < n; i++)
		err = shorten(w->p, &w->p->functions[list[i]], common);
	return err;
}

static struct error *show_program(struct levels *w, const u32 *list, u32 n)
{
	struct profile_function *f = &w->p->functions[list[0]];
	char text[NAME_LONGEST + 64];

	for (u32 i = 0; i < n; i++)
		w->as[list[i]] = list[0];
	f->line = 0;
	if (!w->containers)
		f->file = "";
	if (w->how == PROCESSES_PROGRAM)
		snprintf(text, sizeof(text), "%s", f->module);
	else
		snprintf(text, sizeof(text), "%s (%u processes)", f->module, n);
	return profile_string(w->p, text, &f->name);
}

static struct error *show(struct levels *w)
{
	struct error *err = NULL;
	u32 n;

	for (u32 i = 0; !err && i < w->n; i += n) {
		for (n = 1; i + n < w->n && !compare_groups(w, w->list[i], w->list[i + n]); n++)
			;
		if (w->how == PROCESSES_PROGRAM || (w->how == PROCESSES_AUTO && n > PROCESSES_MANY))
			err = show_program(w, w->list + i, n);
		else
			err = show_each(w, w->list + i, n);
	}
	return err;
}

static bool is_hidden(const struct levels *w)
{
	return w->how == PROCESSES_NONE || (w->n < 2 && (w->how == PROCESSES_AUTO || w->how == PROCESSES_SEVERAL));
}

static struct error *prepare(struct profile *p, enum processes how, bool containers, struct levels *w)
{
	*w = (struct levels){p, how, calloc(p->nfunctions, sizeof(*w->list)), 0, calloc(p->nfunctions, sizeof(*w->as)),
	        calloc(p->nfunctions, sizeof(*w->used)), containers};
	if (!w->list || !w->as || !w->used)
		return &error_no_memory;
	find(w);
	return NULL;
}

/* Containers that nodes of this one are above, of those with samples. last: one of them. */
static u32 containers_below(const struct levels *w, u32 function, u32 *last)
{
	const struct profile *p = w->p;
	u32 n = 0;

	for (u32 i = 1; i < p->nnodes; i++) {
		u32 f = p->nodes[i].function, above = p->nodes[p->nodes[i].parent].function;

		if (w->used[f] && p->functions[f].kind == KIND_CONTAINER && above == function && w->as[f] == f) {
			*last = f;
			n++;
		}
	}
	return n;
}

/* A pod with one container is one node. */
static struct error *join_only(struct levels *w, u32 function)
{
	struct profile_function *f = &w->p->functions[function];
	char text[2 * NAME_LONGEST];
	const char *name;
	u32 only = 0;

	if (!w->used[function] || containers_below(w, function, &only) != 1)
		return NULL;
	name = w->p->functions[only].name;
	name += !strncmp(name, "container ", 10) ? 10 : 0;
	snprintf(text, sizeof(text), "%s (%s)", f->name, name);
	w->as[only] = 0;
	return profile_string(w->p, text, &f->name);
}

/* Where all processes are in one pod, container or unit it is not shown. */
static struct error *show_containers(struct levels *w)
{
	struct profile *p = w->p;
	struct error *err = NULL;
	u32 n, last = 0;

	for (u32 i = 0; i < p->nfunctions; i++)
		if (p->functions[i].kind == KIND_CONTAINER && (!w->used[i] || !w->containers || is_hidden(w)))
			w->as[i] = 0;
	n = containers_below(w, 0, &last);
	if (n == 1) {
		w->as[last] = 0;
		n = containers_below(w, last, &last);
		w->as[last] = n == 1 ? 0 : w->as[last];
		return NULL;
	}
	for (u32 i = 0; n && !err && i < p->nfunctions; i++)
		if (p->functions[i].kind == KIND_CONTAINER && w->as[i] == i)
			err = join_only(w, i);
	return err;
}

static struct error *show_levels(struct profile *p, enum processes how, bool containers)
{
	cleanup(levels) struct levels w = {0};
	struct error *err = how == PROCESSES_RAW ? NULL : prepare(p, how, containers, &w);

	if (err || !w.n)
		return err;
	err = show_containers(&w);
	for (u32 i = 0; is_hidden(&w) && i < w.n; i++)
		w.as[w.list[i]] = 0;
	if (!err && !is_hidden(&w))
		err = show(&w);
	return err ? err : profile_merge(p, w.as, w.as);
}

struct error *profile_show_processes(struct profile *p, enum processes how)
{
	return show_levels(p, how, true);
}

static struct error *count_programs(struct profile *p, u32 *ret)
{
	cleanup(levels) struct levels w = {0};
	struct error *err = prepare(p, PROCESSES_PROGRAM, false, &w);

	*ret = 0;
	for (u32 i = 0; !err && i < w.n; i++)
		*ret += !i || p->functions[w.list[i]].module != p->functions[w.list[i - 1]].module;
	return err;
}

struct error *profile_match_processes(struct profile *const *profiles, u32 n)
{
	bool all = true, several = false;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < n; i++) {
		u32 programs = 0;

		err = count_programs(profiles[i], &programs);
		all &= programs > 0;
		several |= programs > 1;
	}
	for (u32 i = 0; !err && i < n; i++)
		err = show_levels(profiles[i], all && several ? PROCESSES_PROGRAM : PROCESSES_NONE, false);
	return err;
}
