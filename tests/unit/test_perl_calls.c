/* SPDX-License-Identifier: Apache-2.0 */
/* Where subs of Perl begin and how their calls are counted: a package that is known, damaged, and endless. */
#include "unit.h"

#include "perl_fake.h"

#include "runtime.h"
#include "runtimes/perl/perl_calls.h"

#define STASHPAD 400 /* of the interpreter */
#define ROUNDS   5000
#define BUCKETS  2048
#define ENOUGH   (12u << 20) /* a few reads for each of a million entries */

struct listing {
	struct perl_fake *p;
	struct perl_reader r;
	u64 pad, stash, body, cv, entry; /* entry: struct he */
	struct runtime_callee last;
	u32 n;
};

static struct error *add(void *ctx, const struct runtime_callee *c)
{
	struct listing *k = ctx;

	assert_true(strnlen(c->name, sizeof(c->name)) < sizeof(c->name));
	assert_true(strnlen(c->file, sizeof(c->file)) < sizeof(c->file));
	k->last = *c;
	k->n++;
	return NULL;
}

static void list(struct listing *k)
{
	k->n = 0;
	assert_null(perl_calls(&k->r, add, k));
}

/* The package Shop, whose only bucket has the sub place. */
static int setup(void **state)
{
	struct listing *k = calloc(1, sizeof(*k));
	struct perl_fake *p = k->p = perl_fake_create();
	u64 gv = perl_fake_alloc(p, 24), gp = perl_fake_alloc(p, 64), buckets = perl_fake_alloc(p, 16);

	k->stash = perl_fake_package(p, "Shop");
	k->cv = perl_fake_cv(p, k->stash, "place", 7, false);
	k->entry = perl_fake_alloc(p, 24);
	k->pad = perl_fake_alloc(p, 64);
	k->body = perl_fake_word(p, k->cv + p->layout.sv_any.at);
	p->layout.i_stashpad = (struct layout_member){STASHPAD, 8};
	fake_put(p->f, p->interpreter + STASHPAD, k->pad);
	fake_put(p->f, p->interpreter + STASHPAD + 8, 1);
	fake_put(p->f, k->pad, k->stash);
	fake_put(p->f, k->stash + p->layout.sv_u.at, buckets);
	fake_put(p->f, buckets, k->entry);
	fake_put(p->f, k->entry + 16, gv);
	perl_fake_half(p, gv + p->layout.sv_flags.at, 9);
	fake_put(p->f, gv + p->layout.sv_u.at, gp);
	fake_put(p->f, gp + 16, k->cv);
	k->r = (struct perl_reader){.mem = &p->f->memory, .image = &p->image, .interpreter = p->interpreter};
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	struct listing *k = *state;

	perl_fake_destroy(k->p);
	free(k);
	return 0;
}

static void test_sub(void **state)
{
	struct listing *k = *state;
	const struct perl_layout *l = &k->p->layout;
	u64 depth = k->body + l->cv_flags.at + 4;

	perl_fake_half(k->p, depth, 2);
	list(k);
	assert_int_equal(k->n, 1);
	assert_string_equal(k->last.name, "Shop::place");
	assert_int_equal(k->last.line, 7);
	assert_int_equal(k->last.entry, perl_fake_word(k->p, k->body + l->cv_start.at) + l->op_ppaddr.at);
	assert_int_equal(k->last.counter, depth);
	perl_fake_half(k->p, depth, UINT32_MAX); /* no number of calls */
	list(k);
	assert_int_equal(k->n, 1);
	assert_int_equal(k->last.counter, 0);
}

/* Chains, packages and pads that lead back to themselves end, and a sub is listed once. */
static void test_endless(void **state)
{
	struct listing *k = *state;
	struct fake *f = k->p->f;
	u64 hash = perl_fake_word(k->p, k->stash + k->p->layout.sv_any.at);

	fake_put(f, k->entry, k->entry);
	for (u32 i = 1; i < 8; i++)
		fake_put(f, k->pad + 8 * i, k->stash);
	fake_put(f, k->p->interpreter + STASHPAD + 8, UINT64_MAX);
	list(k);
	assert_int_equal(k->n, 1);
	fake_put(f, hash + k->p->layout.hv_max.at, 1 << 20); /* more buckets than can be read */
	list(k);
	assert_int_equal(k->n, 1);
	fake_put(f, hash + k->p->layout.hv_max.at, UINT64_MAX);
	list(k);
	assert_int_equal(k->n, 0);
}

/* Thousands of buckets with the same endless chain, in package after package: at some point it is enough. */
static void test_enough(void **state)
{
	struct listing *k = *state;
	struct fake *f = k->p->f;
	u64 hash = perl_fake_word(k->p, k->stash + k->p->layout.sv_any.at),
	    buckets = perl_fake_alloc(k->p, 8 * BUCKETS);

	fake_put(f, k->entry, k->entry);
	for (u32 i = 0; i < BUCKETS; i++)
		fake_put(f, buckets + 8 * i, k->entry);
	fake_put(f, k->stash + k->p->layout.sv_u.at, buckets);
	fake_put(f, hash + k->p->layout.hv_max.at, BUCKETS - 1);
	for (u32 i = 0; i < 8; i++)
		fake_put(f, k->pad + 8 * i, k->stash);
	fake_put(f, k->p->interpreter + STASHPAD + 8, 8);
	f->reads = 0;
	list(k);
	assert_int_equal(k->n, 1);
	assert_in_range(f->reads, 1 << 20, ENOUGH);
}

/* Each read fails once; then what is read is damaged, again and again, always in the same way. */
static void test_hostile(void **state)
{
	struct listing *k = *state;
	struct fake *f = k->p->f;
	u64 seed = 1, from = PERL_FAKE_HEAP - FAKE_STACK, size = k->p->heap - PERL_FAKE_HEAP;
	u8 *whole = malloc(size);
	u32 whole_ones = 0;

	f->reads = 0;
	list(k);
	f->failures = 1;
	for (u32 n = f->reads; n; n--) {
		f->reads = 0;
		f->fail = n - 1;
		list(k);
	}
	f->failures = 0;
	memcpy(whole, f->stack + from, size);
	for (u32 i = 0; i < ROUNDS; i++) {
		for (u32 b = 0; b < 8; b++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			f->stack[from + (seed >> 40) % size] = (u8)(seed >> 32);
		}
		list(k);
		whole_ones += k->n == 1 && k->last.counter;
		if (i % 8 == 7)
			memcpy(f->stack + from, whole, size);
	}
	assert_in_range(whole_ones, ROUNDS / 16, ROUNDS - ROUNDS / 16); /* the damage was met, and not at once */
	free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_sub, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_endless, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_enough, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
