/* SPDX-License-Identifier: Apache-2.0 */
/* The arena and the hash table, in random sequences against models. */
#include "unit.h"

#include "shared/region.h"
#include "unwind/arena.h"
#include "unwind/table.h"

#define PIECES 300u
#define LARGE  (ARENA_SLAB_SIZE - 64)
#define KEYS   5000u

struct piece {
	u32 offset, size;
	u8 mark;
};

/* Sizes of all magnitudes up to the largest. */
static u32 random_size(void)
{
	u32 limit = 1u << (random() % 18 + 1);

	return 1 + (u32)random() % (limit < LARGE ? limit : LARGE);
}

static void take(struct arena *arena, struct piece *p)
{
	u8 *at;

	p->size = random_size();
	p->mark = (u8)(random() % 255 + 1);
	assert_null(arena_alloc(arena, p->size, &p->offset));
	assert_int_not_equal(p->offset, 0);
	assert_int_equal(p->offset % 8, 0);
	assert_true(p->offset % ARENA_SLAB_SIZE + p->size <= ARENA_SLAB_SIZE);
	at = arena_at(arena, p->offset, p->size);
	assert_non_null(at);
	for (u32 i = 0; i < p->size; i++)
		assert_true(!at[i]);
	memset(at, p->mark, p->size);
}

/* Its bytes are still its own: no other piece overlapped. */
static void give(struct arena *arena, struct piece *p)
{
	const u8 *at = arena_at(arena, p->offset, p->size);

	assert_true(at[0] == p->mark && !memcmp(at, at + 1, p->size - 1));
	arena_free(arena, p->offset, p->size);
	p->offset = 0;
}

/* After all is given back, each slab is one piece again. */
static void check_whole(struct arena *arena)
{
	u64 size = arena_size(arena);
	u32 offset, n = (u32)(size / (ARENA_SLAB_SIZE + ARENA_SLAB_PAD));

	for (u32 i = 0; i < n; i++)
		assert_null(arena_alloc(arena, LARGE, &offset));
	assert_int_equal(arena_size(arena), size);
	assert_null(arena_alloc(arena, LARGE, &offset));
	assert_true(arena_size(arena) > size);
}

static void test_arena_random(void **state)
{
	for (u32 seed = 1; seed <= 5; seed++) {
		struct piece pieces[PIECES] = {0};
		struct arena *arena;

		srandom(seed);
		assert_null(arena_create(NULL, &arena));
		for (u32 i = 0; i < 4000; i++) {
			struct piece *p = &pieces[random() % PIECES];

			if (p->offset)
				give(arena, p);
			else
				take(arena, p);
		}
		for (u32 i = 0; i < PIECES; i++)
			if (pieces[i].offset)
				give(arena, &pieces[i]);
		check_whole(arena);
		arena_destroy(arena);
	}
}

static void test_arena_limits(void **state)
{
	struct arena *arena;
	u32 offset, last = 0;

	assert_null(arena_create(NULL, &arena));
	assert_null(arena_at(arena, 0, 1));
	for (u32 i = 0; i < 3; i++) {
		struct error *err = arena_alloc(arena, (const u32[]){0, LARGE + 1, UINT32_MAX}[i], &offset);

		assert_non_null(err);
		assert_int_equal(err->kind, ERROR_INTERNAL);
		error_free(err);
	}
	assert_int_equal(arena_size(arena), 0);
	assert_null(arena_alloc(arena, LARGE, &last));
	assert_non_null(arena_at(arena, last, LARGE));
	assert_null(arena_at(arena, last, LARGE + 1));
	assert_null(arena_at(arena, ARENA_SLAB_SIZE, 1));
	assert_null(arena_at(arena, UINT32_MAX, 1));
	arena_free(arena, 0, 100); /* like free(NULL) */
	arena_destroy(arena);
	arena_destroy(NULL);
}

struct short_source {
	struct arena_source source;
	u32 made, done;
};

static struct error *short_make(struct arena_source *source, u32 i, void **ret)
{
	struct short_source *s = (struct short_source *)source;

	if (i == 2)
		return error_new(ERROR_PERMISSION, "no more");
	assert_int_equal(i, s->made++);
	*ret = calloc(1, ARENA_SLAB_SIZE);
	return NULL;
}

static void short_done(struct arena_source *source, u32 i, void *slab)
{
	((struct short_source *)source)->done++;
	free(slab);
}

/* A source that fails: the error arrives, what was there stays usable, each slab is given back once. */
static void test_arena_source(void **state)
{
	struct short_source s = {{short_make, short_done}, 0, 0};
	struct arena *arena;
	struct error *err;
	u32 offset, more;

	assert_null(arena_create(&s.source, &arena));
	assert_null(arena_alloc(arena, LARGE, &offset));
	assert_null(arena_alloc(arena, LARGE, &offset));
	err = arena_alloc(arena, LARGE, &more);
	assert_non_null(err);
	assert_int_equal(err->kind, ERROR_PERMISSION);
	error_free(err);
	arena_free(arena, offset, LARGE);
	assert_null(arena_alloc(arena, LARGE, &more));
	assert_int_equal(more, offset);
	arena_destroy(arena);
	assert_int_equal(s.made, 2);
	assert_int_equal(s.done, 2);
}

/* Few slots, many keys that begin at the same one; so they lie in long runs. */
static u64 key_of(u32 i)
{
	return i % 2 ? (u64)i << 32 | 7 : i * 0x9e3779b97f4a7c15ull;
}

static void check_table(const struct table *t, const u64 *value, const bool *there)
{
	size_t n = 0;

	for (u32 i = 1; i < KEYS; i++) {
		const u64 *found = table_get(t, key_of(i));

		assert_int_equal(found != NULL, there[i]);
		assert_true(!found || *found == value[i]);
		n += there[i];
	}
	assert_int_equal(t->used, n);
	assert_true(t->used <= t->capacity * 3 / 4);
}

static void test_table_random(void **state)
{
	static u64 value[KEYS];
	static bool there[KEYS];
	struct table t = {0};

	srandom(1);
	assert_null(table_get(&t, 5));
	for (u32 round = 0; round < 3; round++) {
		for (u32 i = 0; i < KEYS; i++) {
			u32 k = 1 + (u32)random() % (KEYS - 1);

			value[k] = (u64)random();
			there[k] = true;
			assert_null(table_put(&t, key_of(k), value[k]));
			if (i % 1000 == 0)
				check_table(&t, value, there);
		}
		check_table(&t, value, there);
		table_clear(&t);
		memset(there, 0, sizeof(there));
		check_table(&t, value, there);
	}
	table_free(&t);
	assert_null(table_get(&t, key_of(1)));
	table_clear(&t);
	table_free(&t);
}

/* A key of 0, which stands for a free slot inside, can be used all the same. */
static void test_table_zero(void **state)
{
	struct table t = {0};

	assert_null(table_put(&t, 0, 9));
	assert_non_null(table_get(&t, 0));
	assert_int_equal(*table_get(&t, 0), 9);
	assert_int_equal(t.used, 1);
	table_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_arena_random),
	        cmocka_unit_test(test_arena_limits),
	        cmocka_unit_test(test_arena_source),
	        cmocka_unit_test(test_table_random),
	        cmocka_unit_test(test_table_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
