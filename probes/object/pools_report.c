/* SPDX-License-Identifier: Apache-2.0 */
#include "pools_report.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leak_report.h"
#include "probes/loss.h"
#include "probes/map_each.h"
#include "probes/object.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/table.h"

#define TOLD    10 /* makers in the text */
#define UNNAMED 3  /* functions without a name, that are passed over */
#define GROWING 8  /* blocks at least of a pool that grows */

struct maker { /* the pools that one stack made; hash 0: those that were there before */
	u64 hash;
	const char *name;
	u64 alive, older, growing;
	u64 bytes;               /* in older ones */
	u64 rate_low, rate_high; /* of growing ones: bytes a minute */
	struct pool oldest, largest;
	struct pool_maker gone;
	u64 top_hash, top_bytes; /* the stack that took most */
};

struct reporting {
	const struct pools_reporting *r;
	struct pool_summary *s;
	struct maker *makers;
	u32 nmakers;
	struct table alive; /* ids of pools that are shown: their makers, + 1 */
};

static struct error *note_id(void *ctx, const void *key, const void *value)
{
	const struct pool *pool = value;

	return table_put(ctx, pool->id, 1);
}

struct sweeping {
	const struct bpf_map *more;
	struct table alive;
	u64 last; /* ids above came since */
};

static struct error *sweep_one(void *ctx, const void *key, const void *value)
{
	const struct sweeping *s = ctx;
	const struct pool_more_key *k = key;

	if (k->id <= s->last && !table_get(&s->alive, k->id))
		bpf_map__delete_elem(s->more, key, sizeof(*k), 0);
	return NULL;
}

struct error *pools_sweep(struct object *o)
{
	const struct sample *skel = object_skeleton(o);
	struct sweeping s = {.more = skel->maps.pool_more, .last = skel->bss->pool_ids};
	struct error *err = map_each(skel->maps.pool_alive, false, note_id, &s.alive, "which pools there are");

	if (!err)
		err = map_each(skel->maps.pool_more, false, sweep_one, &s, "which pools there are");
	table_free(&s.alive);
	return err;
}

static const char *name_at(const struct profile *p, u32 node)
{
	return p->functions[p->nodes[node].function].name;
}

/* The function that called the one that makes pools, or its caller if that one has no name. */
static const char *name_of_maker(const struct reporting *g, u64 hash)
{
	const struct leak_site *site = leak_stacks_find(g->r->stacks, hash);
	const struct profile *p = g->r->profile;
	u32 caller = site ? p->nodes[site->node].parent : 0;

	if (!hash)
		return "before the run";
	for (u32 i = 0; i < UNNAMED && caller && strstr(name_at(p, caller), "+0x"); i++)
		caller = p->nodes[caller].parent;
	return caller ? name_at(p, caller) : site ? "no caller" : "a stack that is left out";
}

static struct error *maker_of(struct reporting *g, u64 hash, u32 *ret)
{
	const char *name = name_of_maker(g, hash);
	struct error *err;

	for (*ret = 0; *ret < g->nmakers; ++*ret)
		if (!strcmp(g->makers[*ret].name, name))
			return NULL;
	err = grow(&g->makers, g->nmakers, sizeof(*g->makers));
	if (!err)
		g->makers[g->nmakers++] = (struct maker){.hash = hash, .name = name};
	return err;
}

static double age_s(const struct reporting *g, const struct pool *pool)
{
	u64 since = pool->made_ns ? pool->made_ns : g->r->began_ns;

	return g->r->ended_ns > since ? (double)(g->r->ended_ns - since) / 1e9 : 0;
}

/* Was something taken from it early and late in the time that it was seen? */
static bool grows(const struct reporting *g, const struct pool *pool)
{
	double age = age_s(g, pool) * 1e9, end = (double)g->r->ended_ns;

	return pool->blocks >= GROWING && (double)pool->first_ns < end - age / 2 &&
	       (double)pool->last_ns > end - age / 4;
}

static u64 bytes_in(const struct pool *pool)
{
	return pool->bytes > 0 ? (u64)pool->bytes : 0;
}

static void add_pool(struct reporting *g, struct maker *m, const struct pool *pool)
{
	double age = age_s(g, pool), rate = age > 0 ? fmax((double)pool->bytes, 0) / age * 60 : 0;
	double error = pool->blocks > 0 ? 1.96 / sqrt((double)pool->blocks) : 1;

	m->older++;
	m->bytes += bytes_in(pool);
	if (!m->oldest.id || age > age_s(g, &m->oldest))
		m->oldest = *pool;
	if (pool->bytes >= m->largest.bytes)
		m->largest = *pool;
	if (!grows(g, pool))
		return;
	m->growing++;
	m->rate_low += (u64)(rate * fmax(1 - error, 0));
	m->rate_high += (u64)(rate * (1 + error));
}

static struct error *show_part(struct reporting *g, u32 maker, const struct pool_part *part)
{
	const struct leak_site *site = leak_stacks_find(g->r->stacks, part->hash);
	struct profile *p = g->r->profile;
	struct maker *m = &g->makers[maker];
	char text[192];
	struct profile_function fn = {.name = text, .module = "", .file = "", .kind = KIND_LABEL};
	struct error *err;
	u32 function, node;

	if (part->bytes <= 0 || part->blocks <= 0)
		return NULL;
	if ((u64)part->bytes > m->top_bytes) {
		m->top_bytes = (u64)part->bytes;
		m->top_hash = part->hash;
	}
	if (!site)
		return NULL;
	snprintf(text, sizeof(text), m->hash ? "[in pools of %s]" : "[in pools made %s]", m->name);
	err = profile_function(p, 0, &fn, false, &function);
	if (!err)
		err = profile_child(p, site->node, function, &node);
	if (err)
		return err;
	profile_add(p, node, (u64)part->bytes);
	profile_add_more(p, node, (u64)part->blocks);
	return NULL;
}

static struct error *take_pool(void *ctx, const void *key, const void *value)
{
	struct reporting *g = ctx;
	const struct pool *pool = value;
	struct error *err;
	u32 maker;

	err = maker_of(g, pool->maker, &maker);
	if (err)
		return err;
	g->makers[maker].alive++;
	g->s->alive++;
	if (age_s(g, pool) < g->s->older_s)
		return NULL;
	g->s->older++;
	g->s->bytes += bytes_in(pool);
	add_pool(g, &g->makers[maker], pool);
	for (u32 i = 0; !err && i < POOL_PARTS && pool->part[i].hash; i++)
		err = show_part(g, maker, &pool->part[i]);
	return err ? err : table_put(&g->alive, pool->id, maker + 1);
}

static struct error *take_more(void *ctx, const void *key, const void *value)
{
	struct reporting *g = ctx;
	u64 *maker = table_get(&g->alive, ((const struct pool_more_key *)key)->id);

	return maker ? show_part(g, (u32)*maker - 1, value) : NULL;
}

static struct error *take_maker(void *ctx, const void *key, const void *value)
{
	struct reporting *g = ctx;
	const struct pool_maker *gone = value;
	struct error *err;
	u32 maker;

	err = maker_of(g, *(const u64 *)key, &maker);
	if (err)
		return err;
	struct pool_maker *all = &g->makers[maker].gone;
	all->made += gone->made;
	all->gone += gone->gone;
	all->life_ns += gone->life_ns;
	all->bytes += gone->bytes;
	all->most = gone->most > all->most ? gone->most : all->most;
	return NULL;
}

static void print_gone(FILE *out, const struct pool_maker *gone)
{
	char life[LOSS_TIME], mean[LOSS_AMOUNT], most[LOSS_AMOUNT];

	if (!gone->made)
		return;
	fprintf(out, "; %lu made, %lu gone", gone->made, gone->gone);
	if (gone->gone)
		fprintf(out, " after %s with %s on average, %s at most",
		        loss_time((double)gone->life_ns / (double)gone->gone, life),
		        loss_amount((double)gone->bytes / (double)gone->gone, mean),
		        loss_amount((double)gone->most, most));
}

static void print_one(FILE *out, const struct reporting *g, const struct maker *m)
{
	const struct leak_site *top = leak_stacks_find(g->r->stacks, m->top_hash);
	char bytes[LOSS_AMOUNT], largest[LOSS_AMOUNT], low[LOSS_AMOUNT], high[LOSS_AMOUNT], age[LOSS_TIME];

	fprintf(out, "  %s%s: %lu alive", m->hash ? "made by " : "made ", m->name, m->alive);
	if (m->older)
		fprintf(out, ", %s in the %lu of %g s and more (largest %s, oldest %s)",
		        loss_amount((double)m->bytes, bytes), m->older, g->s->older_s,
		        loss_amount((double)m->largest.bytes, largest), loss_time(age_s(g, &m->oldest) * 1e9, age));
	print_gone(out, &m->gone);
	fputc('\n', out);
	if (m->growing)
		fprintf(out, "    %lu of them %s: %s to %s a minute\n", m->growing, m->growing > 1 ? "grow" : "grows",
		        loss_amount((double)m->rate_low, low), loss_amount((double)m->rate_high, high));
	if (top && m->older) {
		fprintf(out, "    most (%.0f %%) by ",
		        100.0 * (double)m->top_bytes / (double)(m->bytes ? m->bytes : 1));
		leak_print_stack(out, g->r->profile, top->node);
	}
}

static int by_growth(const void *a, const void *b)
{
	const struct maker *x = a, *y = b;

	if (x->rate_low != y->rate_low)
		return x->rate_low < y->rate_low ? 1 : -1;
	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

struct error *pools_report(const struct pools_reporting *r, struct pool_summary *s, char **text)
{
	const struct sample *skel = object_skeleton(r->object);
	struct reporting g = {.r = r, .s = s};
	size_t size;
	FILE *out = open_memstream(text, &size);
	struct error *err = out ? NULL : &error_no_memory;

	s->alive = s->older = s->bytes = 0;
	if (!err)
		err = map_each(skel->maps.pool_makers, false, take_maker, &g, "which pools there are");
	if (!err)
		err = map_each(skel->maps.pool_alive, false, take_pool, &g, "which pools there are");
	if (!err)
		err = map_each(skel->maps.pool_more, false, take_more, &g, "which pools there are");
	if (!err && g.nmakers)
		qsort(g.makers, g.nmakers, sizeof(*g.makers), by_growth);
	for (u32 i = 0; !err && i < g.nmakers && i < TOLD; i++)
		print_one(out, &g, &g.makers[i]);
	if (!err && g.nmakers > TOLD)
		fprintf(out, "  and those of %u more\n", g.nmakers - TOLD);
	if (out)
		fclose(out);
	free(g.makers);
	table_free(&g.alive);
	return err;
}
