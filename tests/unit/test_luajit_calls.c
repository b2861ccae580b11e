/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions of LuaJIT begin and return: bytecode that is known, damaged, and gone. */
#include <sys/mman.h>

#include "unit.h"

#include "process/module.h"
#include "runtimes/luajit/luajit_bytecode.h"
#include "runtimes/luajit/luajit_calls.h"

#define BYTES  (64u << 10)
#define BASE   0x10000000ull
#define CODE   0x20000000ull
#define GG     (BASE + 4096)
#define PROTO  (BASE + 32768)
#define CHUNK  (BASE + 49152)
#define TABLE  240
#define UNITS  600
#define ROOT   24 /* gc.root, from gc.total */
#define ADDVV  32 /* returns nothing */
#define FNEW   51 /* makes the function of the first constant */
#define GSET   55
#define ROUNDS 400

struct listing {
	struct memory memory;
	u8 bytes[BYTES];
	u32 reads, fail; /* reads so far; the number of the one that fails, 0: none */
	struct layout_library library;
	struct luajit_image image;
	struct luajit_names *names;
	struct runtime_callee last;
	u32 n;
	const char *pattern;
};

static bool read_target(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct listing *k = (struct listing *)mem;

	if (++k->reads == k->fail || addr < BASE || addr - BASE > BYTES || size > BYTES - (addr - BASE))
		return false;
	memcpy(dst, k->bytes + (addr - BASE), size);
	return true;
}

static void put(struct listing *k, u64 addr, struct layout_member m, u64 value)
{
	memcpy(k->bytes + (addr + m.at - BASE), &value, m.size);
}

static void put32(struct listing *k, u64 addr, u32 value)
{
	memcpy(k->bytes + (addr - BASE), &value, sizeof(value));
}

static u64 entry_of(const struct listing *k)
{
	return PROTO + k->image.layout->proto_size.at;
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

static void list(struct listing *k)
{
	struct mapping m = {
	        .start = BASE, .end = BASE + BYTES, .prot = PROT_READ | PROT_WRITE, .anonymous = true, .name = ""};
	struct runtime_process p = {.pid = -1, .memory = &k->memory, .mappings = &m, .nmappings = 1};

	k->n = 0;
	error_free(luajit_calls(&k->image, 0, k->names, &p, k->pattern, add, k));
}

/* A VM whose list of objects has one prototype, then the main thread. */
static void make_vm(struct listing *k)
{
	const struct luajit_layout *l = k->image.layout;
	u64 g = GG + l->gg_g.at;

	put(k, GG, l->l_gct, 6);
	put(k, GG, l->l_glref, g);
	put(k, GG, l->l_stack, BASE + 1024);
	put(k, GG, l->l_maxstack, BASE + 2048);
	put(k, GG, l->l_base, BASE + 1040);
	put(k, g, l->g_mainthref, GG);
	put(k, g, l->g_cur_l, GG);
	put(k, g, l->g_gc_total, 100000);
	put(k, g + l->g_gc_total.at + ROOT, (struct layout_member){0, 8}, PROTO);
	for (u32 i = 0; i < TABLE; i++)
		put(k, GG + l->gg_dispatch.at + 8 * i, (struct layout_member){0, 8}, CODE + 16 * i);
	put(k, PROTO, (struct layout_member){0, 8}, GG);
	put(k, PROTO, l->l_gct, 7);
	put(k, PROTO, l->proto_sizebc, UNITS);
	put(k, PROTO, l->proto_sizept, l->proto_size.at + 4 * UNITS);
	put(k, PROTO, l->proto_chunkname, CHUNK);
	put(k, PROTO, l->proto_k, entry_of(k) + 4 * UNITS);
	put(k, PROTO, l->proto_firstline, 7);
	put(k, PROTO, l->proto_numline, 3);
	put(k, CHUNK, l->l_gct, 4);
	put(k, CHUNK, l->str_len, 6);
	memcpy(k->bytes + (CHUNK + l->str_size.at - BASE), "@x.lua", 6);
	for (u32 i = 0; i < UNITS; i++)
		put32(k, entry_of(k) + 4ull * i, i ? ADDVV : LUAJIT_OP_FUNCF);
	put(k, entry_of(k) + 4 * UNITS - l->proto_k.size, (struct layout_member){0, l->proto_k.size}, PROTO);
}

static int setup(void **state)
{
	struct listing *k = calloc(1, sizeof(*k));
	u32 i = 0;

	k->memory.read = read_target;
	k->pattern = "x.lua:7";
	if (layout_library_load(&luajit_layout_schema, &k->library))
		return -1;
	for (; i < k->library.n; i++) {
		k->image = (struct luajit_image){.version = "LuaJIT", .blob = {.start = CODE, .end = CODE + 0x4000}};
		k->image.origins = k->library.files[i]->layout;
		k->image.layout = k->image.origins->values;
		k->image.vm = luajit_vm_of(k->image.layout);
		if (k->image.vm.gc64)
			break;
	}
	if (i == k->library.n)
		return -1;
	make_vm(k);
	k->names = luajit_names_create(&k->image);
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	struct listing *k = *state;

	luajit_names_destroy(k->names);
	layout_library_free(&k->library);
	free(k);
	return 0;
}

/* Returns on both sides of what is read at once; operands that look like one are none. */
static void test_returns(void **state)
{
	struct listing *k = *state;

	put32(k, entry_of(k) + 4 * 10, ADDVV | LUAJIT_OP_RET1 << 8 | (u32)LUAJIT_OP_RET1 << 24);
	put32(k, entry_of(k) + 4 * 255, LUAJIT_OP_RET1);
	put32(k, entry_of(k) + 4 * 256, LUAJIT_OP_CALLT);
	put32(k, entry_of(k) + 4 * (UNITS - 1), LUAJIT_OP_RETM);
	list(k);
	assert_int_equal(k->n, 1);
	assert_string_equal(k->last.name, "x.lua:7");
	assert_int_equal(k->last.entry, entry_of(k));
	assert_int_equal(k->last.nexits, 3);
	assert_int_equal(k->last.exits[0].at, k->last.entry + 4 * 255);
	assert_false(k->last.exits[0].tail);
	assert_int_equal(k->last.exits[1].at, k->last.entry + 4 * 256);
	assert_true(k->last.exits[1].tail);
	assert_int_equal(k->last.exits[2].at, k->last.entry + 4 * (UNITS - 1));
}

/* A size that leads out of what can be read, or is too large, makes returns unknown. */
static void test_sizes(void **state)
{
	static const u32 sizes[] = {0, 8192, (1 << 20) + 1, UINT32_MAX};
	struct listing *k = *state;

	put32(k, entry_of(k) + 4 * 20, LUAJIT_OP_RET1);
	for (u32 i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		put(k, PROTO, k->image.layout->proto_sizebc, sizes[i]);
		list(k);
		assert_int_equal(k->last.nexits, 0);
	}
}

/* Each read fails once; then what is read is damaged, again and again, always in the same way. */
static void test_hostile(void **state)
{
	struct listing *k = *state;
	u8 *whole = malloc(BYTES);
	u64 seed = 1;
	u32 whole_ones = 0;

	put32(k, entry_of(k) + 4 * 20, LUAJIT_OP_RET1);
	put32(k, entry_of(k) + 4 * 30, FNEW);
	put32(k, entry_of(k) + 4 * 31, GSET);
	k->pattern = "x.lua:f"; /* also by the names that what makes functions gives them */
	k->reads = 0;
	list(k);
	for (u32 n = k->reads; n; n--) {
		k->reads = 0;
		k->fail = n;
		list(k);
	}
	k->fail = 0;
	memcpy(whole, k->bytes, BYTES);
	for (u32 i = 0; i < ROUNDS; i++) {
		for (u32 b = 0; b < 8; b++) { /* the prototype, or the first page of the VM */
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			k->bytes[(b ? PROTO : GG) - BASE + (seed >> 40) % (b ? 256 : 4096)] = (u8)(seed >> 32);
		}
		k->pattern = i % 2 ? "x.lua:f" : "x.lua:7";
		list(k);
		whole_ones += k->n == 1 && k->last.nexits == 1;
		if (i % 8 == 7)
			memcpy(k->bytes, whole, BYTES);
	}
	assert_in_range(whole_ones, ROUNDS / 64, ROUNDS - ROUNDS / 16); /* the damage was met, and not at once */
	free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_returns, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
