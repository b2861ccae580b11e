/* SPDX-License-Identifier: Apache-2.0 */
#include "tlab_reweight.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

#include "grow.h"
#include "unwind/runtime_alloc.h"
#include "unwind/table.h"

#define EXPECTED_LEAST 8.0 /* samples of a stratum: one in 3,000 has none */
#define BUFFERS_LEAST  6.0 /* as if all were of one size: from fewer their error can not be estimated */
#define FILLED_LEAST   3.0 /* buffers that show how full they all were */
#define SIGMAS         6.0
#define FAR            2.0 /* what was handed out, from what samples stand for: they are not of the same */

struct kind {
	double sampled; /* bytes that its samples stand for */
	u32 samples, size_class;
	double handed;  /* outside buffers: in truth; negative: it is in buffers */
	double counted; /* bytes that the survey gives */
	double squares,
	        products; /* what each buffer has of it, as counted: by itself, and by all that the buffer has */
	double factor;
};

struct reweighting {
	struct kind *kinds;
	u32 n;
	struct table by_key;     /* hash of class and size: index in kinds */
	double sampled, squares; /* what samples in buffers stand for, and its squares */
	double room;             /* of the buffers that were looked into, as they are counted */
};

struct stratum {                 /* a kind, or all that are rare */
	double sampled, counted; /* shares */
	double variance;         /* of counted */
};

struct totals {
	double counted, products;
	double samples, buffers; /* as if all were of one weight */
};

struct verdict { /* over strata */
	double deviation, variance, squares;
	u32 n;
};

struct error *reweight_create(struct reweighting **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NULL : &error_no_memory;
}

void reweight_destroy(struct reweighting *s)
{
	if (!s)
		return;
	free(s->kinds);
	table_free(&s->by_key);
	free(s);
}

static struct error *find_kind(struct reweighting *s, const struct frame *class, u32 size_class, u32 *ret)
{
	u64 words[] = {class->where, class->detail, size_class};
	u64 key = XXH3_64bits(words, sizeof(words)) | 1, *known = table_get(&s->by_key, key);
	struct error *err;

	if (known) {
		*ret = (u32)*known;
		return NULL;
	}
	err = grow((void **)&s->kinds, s->n, sizeof(*s->kinds));
	if (!err)
		err = table_put(&s->by_key, key, s->n);
	if (err)
		return err;
	s->kinds[s->n] = (struct kind){.size_class = size_class, .handed = -1, .factor = 1};
	*ret = s->n++;
	return NULL;
}

struct error *reweight_kind(struct reweighting *s, const struct frame *class, u64 size, u32 *ret)
{
	return find_kind(s, class, alloc_size_class(size), ret);
}

struct error *reweight_outside(struct reweighting *s, u32 size_class, u32 *ret)
{
	struct error *err = find_kind(s, &(struct frame){0}, size_class, ret);

	if (!err && s->kinds[*ret].handed < 0)
		s->kinds[*ret].handed = 0;
	return err;
}

static bool is_outside(const struct kind *k)
{
	return k->handed >= 0;
}

void reweight_sample(struct reweighting *s, u32 kind, double bytes)
{
	s->kinds[kind].sampled += bytes;
	s->kinds[kind].samples++;
	if (is_outside(&s->kinds[kind]))
		return;
	s->sampled += bytes;
	s->squares += bytes * bytes;
}

void reweight_counted(struct reweighting *s, u32 kind, double bytes, double all, double room, double by)
{
	struct kind *k = &s->kinds[kind];

	k->counted += bytes * by;
	k->squares += bytes * by * bytes * by;
	k->products += bytes * by * all * by;
	s->room += room * bytes / all * by;
}

static struct totals sum_up(const struct reweighting *s)
{
	struct totals t = {0};

	for (u32 i = 0; i < s->n; i++) {
		t.counted += s->kinds[i].counted;
		t.products += s->kinds[i].products; /* of all kinds: the squares of what buffers have */
	}
	if (t.products > 0)
		t.buffers = t.counted * t.counted / t.products;
	if (s->squares > 0)
		t.samples = s->sampled * s->sampled / s->squares;
	return t;
}

/* The variance of a ratio: of what buffers have of a kind to what they have. */
static struct stratum stratum_of(const struct reweighting *s, const struct kind *k, const struct totals *t)
{
	double p = k->counted / t->counted, squares = k->squares - 2 * p * k->products + p * p * t->products;

	return (struct stratum){.sampled = k->sampled / s->sampled,
	        .counted = p,
	        .variance = fmax(squares, 0) / (t->counted * t->counted) * t->buffers / (t->buffers - 1)};
}

static bool is_rare(const struct kind *k, const struct totals *t)
{
	return k->counted / t->counted * t->samples < EXPECTED_LEAST;
}

/* If both are of the same, its share is about the mean of theirs. */
static void judge(struct verdict *v, const struct stratum *st, const struct totals *t)
{
	double off = st->sampled - st->counted, mean = (st->sampled + st->counted) / 2;
	double variance = mean * (1 - mean) / t->samples + st->variance;

	v->variance += st->variance;
	v->squares += st->counted * st->counted;
	v->deviation += variance > 0 ? off * off / variance : 0;
	v->n++;
}

/* Where the variance of what lies between both is least. 0: they are not of the same. */
static double trust(const struct verdict *v, const struct totals *t)
{
	double sampling = (1 - v->squares) / t->samples, freedom = v->n - 1;

	if (v->n < 2 || v->deviation > freedom + SIGMAS * sqrt(2 * freedom))
		return 0;
	return sampling / (sampling + v->variance);
}

static double factor(const struct stratum *st, double trust)
{
	return st->sampled > 0 ? 1 + trust * (st->counted / st->sampled - 1) : 1;
}

/* Shares of kinds in buffers, by the survey. Returns the trust in it. */
static double weigh_inside(struct reweighting *s, const struct totals *totals)
{
	struct totals t = *totals;
	struct verdict v = {0};
	struct stratum rare = {0}, st;
	double by;

	for (u32 i = 0; i < s->n; i++) {
		if (is_outside(&s->kinds[i]))
			continue;
		st = stratum_of(s, &s->kinds[i], &t);
		if (!is_rare(&s->kinds[i], &t)) {
			judge(&v, &st, &t);
			continue;
		}
		rare.sampled += st.sampled;
		rare.counted += st.counted;
		rare.variance += st.variance;
	}
	if (rare.sampled + rare.counted > 0)
		judge(&v, &rare, &t);
	by = trust(&v, &t);
	for (u32 i = 0; i < s->n; i++) {
		st = stratum_of(s, &s->kinds[i], &t);
		if (!is_outside(&s->kinds[i]))
			s->kinds[i].factor = factor(is_rare(&s->kinds[i], &t) ? &rare : &st, by);
	}
	return by;
}

/* What all buffers have, by what was handed out and how full they were. */
static void scale_inside(struct reweighting *s, double filled)
{
	double stands = 0;

	for (u32 i = 0; i < s->n; i++)
		stands += is_outside(&s->kinds[i]) ? 0 : s->kinds[i].sampled * s->kinds[i].factor;
	for (u32 i = 0; i < s->n; i++)
		if (!is_outside(&s->kinds[i]))
			s->kinds[i].factor *= filled / stands;
}

/* Objects outside are reported one by one. Of few samples each may stand for what it does: their sum has no bias then.
 */
static void weigh_outside(struct reweighting *s)
{
	for (u32 i = 0; i < s->n; i++) {
		struct kind *k = &s->kinds[i];

		if (is_outside(k) && k->samples && k->handed / k->sampled * k->samples >= EXPECTED_LEAST)
			k->factor = k->handed / k->sampled;
	}
}

double reweight_weigh(struct reweighting *s, double handed)
{
	struct totals t = sum_up(s);
	double filled = s->room > 0 ? handed * t.counted / s->room : 0, trust;

	if (t.buffers < FILLED_LEAST || t.samples < 2 * EXPECTED_LEAST)
		return 0;
	trust = t.buffers < BUFFERS_LEAST ? 0 : weigh_inside(s, &t);
	if (filled > s->sampled / FAR && filled < s->sampled * FAR) {
		scale_inside(s, filled);
		weigh_outside(s);
	}
	return trust;
}

void reweight_handed(struct reweighting *s, double (*handed)(void *ctx, u32 size_class), void *ctx)
{
	for (u32 i = 0; i < s->n; i++)
		if (is_outside(&s->kinds[i]))
			s->kinds[i].handed = handed(ctx, s->kinds[i].size_class);
}

double reweight_factor(const struct reweighting *s, u32 kind)
{
	return s->kinds[kind].factor;
}
