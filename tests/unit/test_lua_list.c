/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of objects of Lua: whole ones, and such that change, end elsewhere, or lead round. */
#include "unit.h"

#include "runtimes/lua_common/lua_list.h"

#define BASE    0x10000000ull
#define BYTES   (64u << 10)
#define ROOT    BASE
#define CURRENT (BASE + 8)
#define OBJECT  (BASE + 4088) /* its head is on two pages */
#define STEP    64
#define OBJECTS 500
#define WANTED  7
#define OTHER   5
#define TYPE_AT 9 /* LuaJIT with GC64 */

struct fake {
	struct memory memory;
	u8 bytes[BYTES];
	u32 forgotten; /* how often the list was begun */
	u32 heals;     /* at which of these the list is whole again; 0: never */
};

static u64 object(u32 i)
{
	return OBJECT + (u64)STEP * i;
}

static u8 *at(struct fake *f, u64 addr)
{
	return f->bytes + (addr - BASE);
}

static void link_to(struct fake *f, u64 from, u64 to)
{
	memcpy(at(f, from), &to, sizeof(to));
}

static bool read_fake(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct fake *f = (struct fake *)mem;

	if (addr < BASE || addr - BASE > BYTES || size > BYTES - (addr - BASE))
		return false;
	memcpy(dst, at(f, addr), size);
	return true;
}

/* Each third is wanted. */
static void forget(struct memory *mem)
{
	struct fake *f = (struct fake *)mem;

	if (++f->forgotten == f->heals)
		link_to(f, object(200), object(201));
}

static int setup(void **state)
{
	struct fake *f = *state = calloc(1, sizeof(*f));

	f->memory = (struct memory){.read = read_fake, .forget = forget};
	link_to(f, ROOT, object(0));
	for (u32 i = 0; i < OBJECTS; i++) {
		link_to(f, object(i), i + 1 < OBJECTS ? object(i + 1) : 0);
		*at(f, object(i) + TYPE_AT) = i % 3 ? OTHER : WANTED;
	}
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static u32 read_list(struct fake *f, struct lua_list l, bool due)
{
	u64 *found = NULL;
	bool all;
	u32 n;

	l.root = ROOT;
	l.word = l.word ? l.word : 8;
	l.type_at = l.type_at ? l.type_at : TYPE_AT;
	l.type = WANTED;
	l.last = l.last ? l.last : WANTED;
	assert_null(lua_list_read(&l, &f->memory, &found, &n, &all));
	assert_int_equal(all, due);
	for (u32 i = 1; i < n; i++)
		assert_true(found[i - 1] < found[i]);
	free(found);
	return n;
}

static void test_whole(void **state)
{
	struct fake *f = *state;

	assert_int_equal(read_list(f, (struct lua_list){0}, true), 167);
	assert_int_equal(f->forgotten, 1);
	assert_int_equal(read_list(f, (struct lua_list){.end = object(300)}, true), 100);
	link_to(f, ROOT, 0);
	assert_int_equal(read_list(f, (struct lua_list){0}, true), 0);
	assert_int_equal(read_list(f, (struct lua_list){.end = object(300)}, false), 0);
}

/* Marks that are not the current ones' are of objects that were found dead. */
static void test_dead(void **state)
{
	struct fake *f = *state;

	*at(f, CURRENT) = 1;
	for (u32 i = 0; i < OBJECTS; i++)
		*at(f, object(i) + TYPE_AT - 1) = i < 30 ? 2 : i % 2;
	assert_int_equal(read_list(f, (struct lua_list){.current = CURRENT, .dead = 3}, true), 157);
	assert_int_equal(read_list(f, (struct lua_list){.dead = 3}, true), 167);
}

/* What the first readings found stays found. */
static void test_changing(void **state)
{
	struct fake *f = *state;

	f->heals = 4;
	link_to(f, object(200), object(401));
	*at(f, object(402) + TYPE_AT) = WANTED + 1;
	assert_int_equal(read_list(f, (struct lua_list){0}, false), 134);
	assert_int_equal(f->forgotten, 16);
	*at(f, object(402) + TYPE_AT) = WANTED;
	f->forgotten = 0;
	link_to(f, object(200), object(401) + 1); /* no address of an object */
	assert_int_equal(read_list(f, (struct lua_list){0}, true), 167);
	assert_int_equal(f->forgotten, 4);
}

static void test_torn(void **state)
{
	struct fake *f = *state;
	static const u64 elsewhere[] = {BASE + BYTES, 8, 1ull << 63, OBJECT + STEP * 3, OBJECT + STEP * 200};

	for (u32 i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++) {
		link_to(f, object(200), elsewhere[i]);
		assert_int_equal(read_list(f, (struct lua_list){0}, false), 67);
	}
	assert_int_equal(read_list(f, (struct lua_list){.type_at = 16}, false), 0);
	assert_int_equal(read_list(f, (struct lua_list){.word = 9}, false), 0);
	assert_int_equal(read_list(f, (struct lua_list){.first = WANTED}, false), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_dead, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_changing, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_torn, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
