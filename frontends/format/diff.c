/* SPDX-License-Identifier: Apache-2.0 */
#include "diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "text.h"
#include "unwind/cleanup.h"

/* Where digits that reach to the ")" at the end of name begin, behind prefix; else its end. */
static size_t number_at_end(const char *name, const char *prefix)
{
	size_t length = strlen(name), n = strlen(prefix), at;

	if (!length || name[length - 1] != ')')
		return length;
	for (at = length - 1; at && name[at - 1] >= '0' && name[at - 1] <= '9'; at--)
		;
	return at < length - 1 && at >= n && !memcmp(name + at - n, prefix, n) ? at : length;
}

/* Functions without a name of their own are distinguished by their lines alone. */
static bool is_anonymous(const char *name)
{
	return !strncmp(name, "function (", 10) || *name == '?';
}

static u64 key_of(const struct profile_function *f)
{
	const char *name = text_name(f);
	size_t n = number_at_end(name, " (tid ");

	if (f->kind == KIND_PROCESS) /* no function of the same name */
		return XXH3_64bits_withSeed(name, strlen(name), KIND_PROCESS) | 1;
	if (!name[n] && strchr(name, '(') && !is_anonymous(name))
		n = number_at_end(name, ":");
	return XXH3_64bits(name, n) | 1;
}

struct error *diff_map_functions(const struct profile *from, struct profile *to, u32 **ret)
{
	u32 *map = calloc(from->nfunctions, sizeof(*map));
	struct error *err = map ? NULL : &error_no_memory;

	for (u32 i = 2; !err && i < from->nfunctions; i++) {
		struct profile_function f = from->functions[i];

		f.name = text_name(&f);
		f.image = 0;
		err = profile_function(to, key_of(&f), &f, false, &map[i]);
	}
	if (err) {
		free(map);
		return err;
	}
	map[PROFILE_FULL] = PROFILE_FULL;
	*ret = map;
	return NULL;
}

/* Adds the nodes of from to the union. In map is then where each went. */
static struct error *map_nodes(const struct profile *from, struct profile *to, u32 **ret)
{
	cleanup(free) u32 *functions = NULL;
	u32 *map = calloc(from->nnodes, sizeof(*map));
	struct error *err = map ? diff_map_functions(from, to, &functions) : &error_no_memory;

	for (u32 i = 1; !err && i < from->nnodes; i++) {
		const struct profile_node *node = &from->nodes[i];

		if (!node->total)
			continue;
		err = profile_child(to, map[node->parent], functions[node->function], &map[i]);
		if (!(from->functions[node->function].flags & FRAME_APPROX)) /* certain if it is anywhere */
			to->functions[functions[node->function]].flags &= ~FRAME_APPROX;
	}
	if (err)
		free(map);
	else
		*ret = map;
	return err;
}

static struct error *fill(const struct profile *before, const struct profile *after, struct profile *p)
{
	cleanup(free) u32 *old = NULL;
	cleanup(free) u32 *new = NULL;
	struct error *err = map_nodes(after, p, &new);

	if (!err)
		err = map_nodes(before, p, &old);
	if (!err && !(p->base = calloc(p->nnodes, sizeof(*p->base))))
		err = &error_no_memory;
	if (err)
		return err;
	for (u32 i = 0; i < after->nnodes; i++)
		profile_add(p, new[i], after->nodes[i].self);
	for (u32 i = 0; i < before->nnodes; i++)
		p->base[old[i]] += before->nodes[i].self;
	return NULL;
}

static struct error *describe_before(const struct profile *before, const char *name, struct profile *p)
{
	const struct profile_meta *m = &before->meta;
	cleanup(free) char *text = NULL;
	struct error *err;

	if (asprintf(&text, "%s: %s%s%" PRIu64 " %s", name, m->target ? m->target : "", m->target ? ", " : "",
	            before->nodes[0].total, text_unit(m)) < 0) {
		text = NULL;
		return &error_no_memory;
	}
	err = profile_string(p, text, &p->meta.before);
	return err ? err : profile_string(p, m->loss, &p->meta.loss_before);
}

static struct error *join_meta(const struct profile *const *runs, u32 n, struct profile *p)
{
	cleanup(free) char *loss = NULL;
	struct profile_meta *m = &p->meta;
	size_t size;
	FILE *out = open_memstream(&loss, &size);

	if (!out)
		return &error_no_memory;
	for (u32 i = 0; i < n; i++) {
		m->duration_ns += runs[i]->meta.duration_ns;
		fprintf(out, "%s%s", i ? " + " : "", runs[i]->meta.loss ? runs[i]->meta.loss : "");
	}
	return fclose(out) ? &error_no_memory : profile_string(p, loss, &m->loss);
}

struct error *diff_join(const struct profile *const *runs, u32 n, struct profile **ret)
{
	struct profile *p;
	struct error *err = profile_create(&p);

	if (err)
		return err;
	p->meta = runs[0]->meta;
	p->meta.duration_ns = 0;
	for (u32 r = 0; !err && r < n; r++) {
		cleanup(free) u32 *map = NULL;

		err = map_nodes(runs[r], p, &map);
		for (u32 i = 0; !err && i < runs[r]->nnodes; i++)
			profile_add(p, map[i], runs[r]->nodes[i].self);
	}
	if (!err)
		err = join_meta(runs, n, p);
	if (err) {
		profile_destroy(p);
		return err;
	}
	profile_finish(p);
	*ret = p;
	return NULL;
}

struct error *diff_create(const struct profile *before, const struct profile *after, const struct diff_options *options,
        struct profile **ret)
{
	u64 old = before->nodes[0].total, new = after->nodes[0].total;
	struct profile *p;
	struct error *err = profile_create(&p);

	if (err)
		return err;
	p->meta = after->meta;
	p->base_scale = options->raw || !old || !new ? 1 : (double)new / (double)old;
	err = fill(before, after, p);
	if (!err)
		err = describe_before(before, options->before, p);
	if (err) {
		profile_destroy(p);
		return err;
	}
	profile_finish(p);
	*ret = p;
	return NULL;
}

struct error *diff_totals(const struct profile *p, double **ret)
{
	double *totals;

	*ret = NULL;
	if (!p->base)
		return NULL;
	totals = calloc(p->nnodes, sizeof(*totals));
	if (!totals)
		return &error_no_memory;
	for (u32 i = p->nnodes; i-- > 0;) {
		totals[i] += (double)p->base[i] * p->base_scale;
		if (i)
			totals[p->nodes[i].parent] += totals[i];
	}
	*ret = totals;
	return NULL;
}
