/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions of PUC-Lua begin and return: bytecode that is known, damaged, and gone. */
#include <sys/mman.h>

#include "unit.h"

#include "process/module.h"
#include "runtimes/lua/lua_calls.h"
#include "runtimes/lua/lua_proto.h"

#define BYTES  (64u << 10)
#define BASE   0x10000000ull
#define THREAD (BASE + 4096)
#define STATE  (THREAD + 256)
#define PROTO  (BASE + 16384)
#define MAKER  (BASE + 17408)
#define CODE   (BASE + 20480)
#define MAKES  (BASE + 24576)
#define INNER  (BASE + 28672)
#define KEYS   (BASE + 29696)
#define SOURCE (BASE + 30720)
#define NAME   (BASE + 31744)
#define UNITS  100
#define ALLGC  112 /* 5.4 */
#define ROUNDS 400

/* Opcodes of 5.4 */
#define SETTABUP   15
#define JMP        56
#define TAILCALL   69
#define RETURN     70
#define RETURN1    72
#define CLOSURE    79
#define VARARGPREP 81
#define ADD        34

struct listing {
	struct memory memory;
	u8 bytes[BYTES];
	u32 reads, fail; /* reads so far; the number of the one that fails, 0: none */
	struct layout_library library;
	struct lua_image image;
	struct lua_names *names;
	struct runtime_callee last;
	u32 n;
};

static bool read_target(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct listing *k = (struct listing *)mem;

	if (++k->reads == k->fail || addr < BASE || addr - BASE > BYTES || size > BYTES - (addr - BASE))
		return false;
	memcpy(dst, k->bytes + (addr - BASE), size);
	return true;
}

static void put(struct listing *k, u64 addr, u64 value, u32 size)
{
	memcpy(k->bytes + (addr - BASE), &value, size);
}

static void put_member(struct listing *k, u64 addr, struct layout_member m, u64 value)
{
	put(k, addr + m.at, value, m.size);
}

static void put_text(struct listing *k, u64 addr, const char *text)
{
	put(k, addr + 8, 4, 1);
	memcpy(k->bytes + (addr + 24 - BASE), text, strlen(text) + 1);
}

static struct error *add(void *ctx, const struct runtime_callee *c)
{
	struct listing *k = ctx;

	assert_true(strnlen(c->name, sizeof(c->name)) < sizeof(c->name));
	assert_true(strnlen(c->file, sizeof(c->file)) < sizeof(c->file));
	k->last = *c;
	k->n++;
	return NULL;
}

static void list(struct listing *k, const char *pattern)
{
	struct mapping m = {
	        .start = BASE, .end = BASE + BYTES, .prot = PROT_READ | PROT_WRITE, .anonymous = true, .name = ""};
	struct runtime_process p = {.pid = -1, .memory = &k->memory, .mappings = &m, .nmappings = 1};

	k->n = 0;
	error_free(lua_calls(&k->image, 0, k->names, &p, pattern, add, k));
}

static void make_proto(struct listing *k, u64 at, u64 next, u64 code, u32 units, u32 line)
{
	const struct lua_layout *l = k->image.layout;

	put(k, at, next, 8);
	put_member(k, at, l->l_tt, 10);
	put_member(k, at, l->p_code, code);
	put_member(k, at, l->p_sizecode, units);
	put_member(k, at, l->p_linedefined, line);
	put_member(k, at, l->p_lastlinedefined, line ? line + 2 : 0);
	put_member(k, at, l->p_source, SOURCE);
	for (u32 i = 0; i < units; i++)
		put(k, code + 4ull * i, ADD, 4);
}

/* A state whose list of objects has a chunk, and the function that it makes and stores as a global. */
static void make_state(struct listing *k)
{
	const struct lua_layout *l = k->image.layout;

	put_member(k, THREAD, l->l_tt, 8 | 64);
	put_member(k, THREAD, l->l_g, STATE);
	put(k, STATE + 64, THREAD, 8);
	put(k, STATE + ALLGC, MAKER, 8);
	put_text(k, SOURCE, "@x.lua");
	put_text(k, NAME, "f");
	make_proto(k, MAKER, PROTO, MAKES, 3, 0);
	make_proto(k, PROTO, 0, CODE, UNITS, 7);
	put_member(k, MAKER, l->p_sizep, 1);
	put_member(k, MAKER, l->p_p, INNER);
	put(k, INNER, PROTO, 8);
	put_member(k, MAKER, l->p_sizek, 1);
	put_member(k, MAKER, l->p_k, KEYS);
	put(k, KEYS, NAME, 8);
	put(k, KEYS + 8, 4, 8);
	put(k, MAKES, CLOSURE | 2 << 7, 4);
	put(k, MAKES + 4, SETTABUP | 2 << 24, 4);
	put(k, MAKES + 8, RETURN, 4);
}

static int setup(void **state)
{
	struct listing *k = calloc(1, sizeof(*k));

	k->memory.read = read_target;
	if (layout_library_load(&lua_layout_schema, &k->library) || !k->library.n)
		return -1;
	for (u32 i = 0; i < k->library.n; i++)
		if (strstr(k->library.files[i]->name, "5.4"))
			k->image.origins = k->library.files[i]->layout;
	if (!k->image.origins)
		return -1;
	k->image.layout = k->image.origins->values;
	k->image.vm.version = 504;
	k->image.nranges = 1;
	k->image.ranges[0] = (struct lua_range){.start = 0x1000, .end = 0x2000};
	make_state(k);
	k->names = lua_names_create(&k->image);
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	struct listing *k = *state;

	lua_names_destroy(k->names);
	layout_library_free(&k->library);
	free(k);
	return 0;
}

/* Returns, tail calls, and those behind them or at the end, which are never reached. */
static void test_returns(void **state)
{
	struct listing *k = *state;

	put(k, CODE + 4 * 10, RETURN1, 4);
	put(k, CODE + 4 * 11, ADD | RETURN << 7, 4);
	put(k, CODE + 4 * 20, TAILCALL, 4);
	put(k, CODE + 4 * 21, RETURN, 4);
	put(k, CODE + 4 * 98, RETURN, 4);
	put(k, CODE + 4 * 99, RETURN, 4);
	list(k, "x.lua:f");
	assert_int_equal(k->n, 1);
	assert_string_equal(k->last.name, "x.lua:f");
	assert_int_equal(k->last.line, 7);
	assert_int_equal(k->last.entry, CODE);
	assert_int_equal(k->last.nexits, 3);
	assert_int_equal(k->last.exits[0].at, CODE + 4 * 10);
	assert_int_equal(k->last.exits[1].at, CODE + 4 * 20);
	assert_true(k->last.exits[1].tail);
	assert_int_equal(k->last.exits[2].at, CODE + 4 * 98);
	list(k, "x.lua:7");
	assert_string_equal(k->last.name, "x.lua:7");
	put(k, CODE + 4 * 50, JMP | (u32)(99 - 51 + 0xffffff) << 7, 4); /* the last return is reached */
	list(k, "x.lua:f");
	assert_int_equal(k->last.nexits, 4);
}

/* With ... a call begins with its second instruction; a loop that leads back there makes it no such place. */
static void test_entries(void **state)
{
	struct listing *k = *state;

	put(k, CODE, VARARGPREP, 4);
	list(k, "x.lua:f");
	assert_int_equal(k->last.entry, CODE + 4);
	put(k, CODE + 4 * 30, JMP | (u32)(1 - 31 + 0xffffff) << 7, 4);
	list(k, "x.lua:f");
	assert_int_equal(k->n, 0);
}

/* Each read fails once; then what is read is damaged, again and again, always in the same way. */
static void test_hostile(void **state)
{
	struct listing *k = *state;
	u8 *whole = malloc(BYTES);
	u64 seed = 1;
	u32 whole_ones = 0;

	put(k, CODE + 4 * 20, RETURN1, 4);
	k->reads = 0;
	list(k, "x.lua:f");
	for (u32 n = k->reads; n; n--) {
		k->reads = 0;
		k->fail = n;
		list(k, "x.lua:f");
	}
	k->fail = 0;
	memcpy(whole, k->bytes, BYTES);
	for (u32 i = 0; i < ROUNDS; i++) {
		for (u32 b = 0; b < 8; b++) { /* the functions, what names them, or the state */
			static const u64 places[] = {PROTO, MAKER, MAKES, INNER, KEYS, THREAD, STATE, NAME};

			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			k->bytes[places[b] - BASE + (seed >> 40) % 256] = (u8)(seed >> 32);
		}
		list(k, i % 2 ? "x.lua:f" : "x.lua:7");
		whole_ones += k->n == 1 && k->last.nexits == 1;
		if (i % 4 == 3)
			memcpy(k->bytes, whole, BYTES);
	}
	assert_in_range(whole_ones, ROUNDS / 64, ROUNDS - ROUNDS / 16); /* the damage was met, and not at once */
	free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_returns, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_entries, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
