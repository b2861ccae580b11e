/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_calls.h"

#include "table.h"

#define SVt_PVGV     9     /* sv.h */
#define SVf_ROK      0x800 /* the same */
#define GP_CV        16    /* gv.h: struct gp: gp_sv, gp_io, gp_cv */
#define HE_WORDS     3     /* hv.h: struct he: hent_next, hent_hek, hent_val */
#define DEPTH_MAX    (1 << 24)
#define PAD_MAX      (1u << 16)
#define BUCKETS_MAX  (1u << 20)
#define CHAIN_MAX    1024
#define READS_MAX    (1u << 20) /* of buckets and what is in them, in all packages */
#define PADMAX_AFTER 8          /* intrpvar.h: PL_stashpadmax follows PL_stashpad */

struct looking {
	const struct perl_reader *r;
	struct table seen; /* first ops */
	u32 left;          /* reads */
	struct error *(*add)(void *ctx, const struct runtime_callee *c);
	void *ctx;
};

static bool word(const struct looking *k, u64 *ret, u64 addr)
{
	return addr && memory_read(k->r->mem, ret, sizeof(*ret), addr);
}

/*
 * As the first op is run, PL_op is that op, and the current statement still the caller's: of the frame's bits the
 * statement and the stack of contexts do not count.
 */
static void set_frame(const struct perl_cv *cv, u64 at, struct runtime_callee *c)
{
	const u64 words[] = {cv->start, cv->root, cv->gv};
	u32 kind = perl_kind_of_cv(cv->flags), op = perl_op_bits(cv->start, true);

	c->nat = 1;
	c->lead = 1;
	c->at[0].where = perl_where(kind == PERL_KIND_CLOSURE ? cv->start : at, op);
	c->at[0].detail = perl_detail(0, kind, 0, op) | (u64)perl_cookie(cv->body, words, kind) << PERL_COOKIE_SHIFT;
	c->loose_detail = ((1ull << PERL_COP_BITS) - 1) | ((1ull << PERL_STACK_BITS) - 1) << PERL_STACK_SHIFT;
}

/* CvDEPTH, behind the flags (cv.h): each way out of a sub sets it back. */
static u64 depth_of(const struct looking *k, const struct perl_cv *cv)
{
	struct layout_member flags = k->r->image->layout->cv_flags;
	u64 at = cv->body + ((flags.at + flags.size + 3u) & ~3u);
	s32 depth = -1;

	return memory_read(k->r->mem, &depth, sizeof(depth), at) && depth >= 0 && depth < DEPTH_MAX ? at : 0;
}

/* That of a sub without one is its glob's: *place = sub { ... }. */
static bool name_cv(const struct looking *k, const struct perl_cv *cv, u64 gv, char *ret, size_t size)
{
	if (cv->flags & PERL_CV_ANON && gv)
		return perl_gv_name(k->r, gv, ret, size);
	return perl_cv_name(k->r, cv, ret, size);
}

/* gv: the glob that has it; 0: none. */
static struct error *add_cv(struct looking *k, u64 at, u64 gv)
{
	struct runtime_callee c = {.bytes = 8};
	struct perl_cv cv;
	struct error *err;

	if (!at || !perl_read_cv(k->r, at, &cv) || cv.flags & PERL_CV_ISXSUB || !cv.start || !cv.root || cv.start & 7 ||
	        table_get(&k->seen, cv.start) || !name_cv(k, &cv, gv, c.name, sizeof(c.name)))
		return NULL;
	err = table_put(&k->seen, cv.start, 1);
	c.entry = cv.start + k->r->image->layout->op_ppaddr.at;
	perl_cop_place(k->r, perl_first_cop(k->r, cv.start), &c.line, c.file, sizeof(c.file));
	set_frame(&cv, at, &c);
	c.counter = depth_of(k, &cv);
	c.values = (struct value_places){.n = VALUES_MAX, .base = VALUE_ABSOLUTE, .typing = VALUE_TYPE_DECLARED};
	return err ? err : k->add(k->ctx, &c);
}

/* What a package has under a name: a GV, or just a reference to a sub. */
static struct error *add_value(struct looking *k, u64 sv)
{
	const struct perl_layout *l = k->r->image->layout;
	u64 at, cv;
	u32 flags;

	if (!sv || !memory_read(k->r->mem, &flags, sizeof(flags), sv + l->sv_flags.at) ||
	        !word(k, &at, sv + l->sv_u.at))
		return NULL;
	if ((flags & PERL_SV_TYPE) == SVt_PVGV)
		return word(k, &cv, at + GP_CV) ? add_cv(k, cv, sv) : NULL;
	return flags & SVf_ROK ? add_cv(k, at, 0) : NULL;
}

static struct error *look_stash(struct looking *k, u64 stash)
{
	const struct perl_layout *l = k->r->image->layout;
	u64 body, array, max, he, entry[HE_WORDS];
	struct error *err = NULL;

	if (!stash || !word(k, &body, stash + l->sv_any.at) || !word(k, &array, stash + l->sv_u.at) || !array ||
	        !word(k, &max, body + l->hv_max.at) || max > BUCKETS_MAX)
		return NULL;
	for (u64 i = 0; !err && i <= max && k->left; i++) {
		k->left--;
		if (!word(k, &he, array + 8 * i))
			break;
		for (u32 n = 0; !err && he && n < CHAIN_MAX && k->left; n++) {
			k->left--;
			if (!memory_read(k->r->mem, entry, sizeof(entry), he))
				break;
			err = add_value(k, entry[2]);
			he = entry[0];
		}
	}
	return err;
}

struct error *perl_calls(
        const struct perl_reader *r, struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	struct looking k = {.r = r, .left = READS_MAX, .add = add, .ctx = ctx};
	u64 at = r->interpreter + r->image->layout->i_stashpad.at, pad, max, stash;
	struct error *err = NULL;

	if (!r->interpreter || !r->image->layout->i_stashpad.size || !word(&k, &pad, at) ||
	        !word(&k, &max, at + PADMAX_AFTER))
		return NULL;
	for (u64 i = 0; !err && i < max && i < PAD_MAX; i++)
		if (word(&k, &stash, pad + 8 * i) && stash)
			err = look_stash(&k, stash);
	table_free(&k.seen);
	return err;
}
