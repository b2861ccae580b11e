/* SPDX-License-Identifier: Apache-2.0 */
/* Where methods of Java begin and return: bytecode and machine code that are known, damaged, and gone. */
#include "hotspot_names_fake.h"

#include "runtimes/hotspot/hotspot_calls.h"

#define KLASS_LINK     200 /* offsets, where the tables have none */
#define KLASS_METHODS  208
#define LOADER_NEXT    8
#define LOADER_KLASSES 16
#define ENTRY_AT       304
#define STUBS_AT       312
#define CODE_SIZE      64
#define ROUNDS         5000
#define FOUND_MAX      64

struct found {
	struct runtime_callee of[FOUND_MAX];
	u32 n, into;
};

struct listing {
	struct jvm jvm;
	struct vmstructs *v; /* with what calls need */
	struct hotspot_heap_view *heap;
	struct hotspot_instance instance;
	struct found found;
	u64 klass, bytecode, code;
};

static struct error *add(void *ctx, const struct runtime_callee *c)
{
	struct found *found = ctx;

	if (found->n < FOUND_MAX)
		found->of[found->n++] = *c;
	assert_true(strnlen(c->name, sizeof(c->name)) < sizeof(c->name));
	for (u32 i = 0; i < c->nexits && i < RUNTIME_CALL_EXITS; i++)
		assert_true(c->exits[i].at >= c->entry && c->exits[i].at - c->entry < 1 << 20);
	return NULL;
}

static void list(struct listing *k)
{
	struct runtime_process p = {.memory = &k->jvm.f.memory};

	k->found.n = 0;
	error_free(hotspot_calls.list(&k->instance, &p, NULL, add, &k->found));
}

static void add_into(void *ctx, const char *into)
{
	struct found *found = ctx;

	assert_true(strlen(into) < NAME_MAX_BYTES);
	found->into++;
}

/* The same, then again for the first one of them, and what has each method inlined. */
static void list_all(struct listing *k)
{
	struct runtime_process p = {.memory = &k->jvm.f.memory};
	struct found again = {0};
	struct runtime_callee of = {0};

	list(k);
	if (k->found.n)
		error_free(hotspot_calls.again(&k->instance, &p, &k->found.of[0], add, &again));
	k->found.into = 0;
	for (u32 i = 0; i < sizeof(k->jvm.f.method) / sizeof(*k->jvm.f.method); i++) {
		of.changes = k->jvm.f.method[i] + k->jvm.l->method_code.at;
		hotspot_calls.inlined(&k->instance, &p, &of, add_into, &k->found);
	}
}

/* The rows of vmStructs, a loader with one class, the codelet of methods' entries. */
static void add_class(struct listing *k)
{
	struct hotspot_fake *f = &k->jvm.f;
	const struct hotspot_layout *l = k->jvm.l;
	u64 loader = fake_object(f, 32), methods = fake_object(f, 24), constants;

	constants = fake_peek(f, f->method[0] + l->method_const.at, 8);
	k->klass = fake_peek(f, fake_peek(f, constants + l->const_pool.at, 8) + l->pool_holder.at, 8);
	fake_static(f, "ClassLoaderDataGraph", "_head", loader);
	fake_field(f, "ClassLoaderData", "_next", "ClassLoaderData*", LOADER_NEXT);
	fake_field(f, "ClassLoaderData", "_klasses", "Klass*", LOADER_KLASSES);
	fake_field(f, "Klass", "_next_link", "Klass*", KLASS_LINK);
	fake_field(f, "InstanceKlass", "_methods", "Array<Method*>*", KLASS_METHODS);
	fake_field(f, "nmethod", "_verified_entry_point", "address", ENTRY_AT);
	fake_field(f, "nmethod", "_stub_offset", "int", STUBS_AT);
	fake_poke(f, loader + LOADER_KLASSES, k->klass, 8);
	fake_set(f, k->klass, l->klass_layout_helper, 64);
	fake_poke(f, k->klass + KLASS_METHODS, methods, 8);
	fake_poke(f, methods, 1, 4);
	fake_poke(f, methods + 8, f->method[0], 8);
	fake_poke(f, f->interpreter + 64, fake_text(f, "method entry point (kind = zerolocals)"), 8);
	fake_poke(f, f->interpreter + 64 + 8, 512, 4);
	k->bytecode = constants + l->const_size.at;
	k->code = f->nmethod[0] + FAKE_HEAD;
	fake_poke(f, f->nmethod[0] + ENTRY_AT, k->code, 8);
	fake_poke(f, f->nmethod[0] + STUBS_AT, FAKE_HEAD + CODE_SIZE, 4);
	memset(f->bytes + (k->code - FAKE_BASE), 0x90, CODE_SIZE);
}

static int setup(void **state)
{
	struct listing *k = calloc(1, sizeof(*k));

	start(&k->jvm, FAKE_17);
	add_class(k);
	if (vmstructs_read(&k->jvm.f.symbols, &k->jvm.f.memory, FAKE_BASE, &k->v) || !k->v)
		return -1;
	k->heap = (struct hotspot_heap_view *)&k->instance; /* without a pattern nothing is read of it */
	k->instance = (struct hotspot_instance){
	        .v = k->v, .layout = k->jvm.l, .code = k->jvm.code, .names = k->jvm.names, .heap = k->heap};
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	struct listing *k = *state;

	vmstructs_destroy(k->v);
	stop(&k->jvm);
	free(k);
	return 0;
}

static void set_bytecode(struct listing *k, const u8 *code, u16 n)
{
	struct hotspot_fake *f = &k->jvm.f;

	fake_set(f, fake_peek(f, f->method[0] + k->jvm.l->method_const.at, 8), k->jvm.l->const_code_size, n);
	memcpy(f->bytes + (k->bytecode - FAKE_BASE), code, n);
}

static void assert_exits(const struct runtime_callee *c, const u32 *at, u32 n, u32 bytes)
{
	assert_int_equal(c->nexits, n);
	for (u32 i = 0; i < n; i++) {
		assert_int_equal(c->exits[i].at, c->entry + at[i]);
		assert_int_equal(c->exits[i].bytes, bytes);
	}
}

/* Operands of switches, and of what is wide, look like returns (ac, b1) and are none. */
static void test_bytecode(void **state)
{
	static const u8 code[] = {0x1a, 0xaa, 0, 0,                                        /* tableswitch from 1 to 2 */
	        0, 0, 0, 0xac, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0xb1, 0, 0, 0, 0xac, 0xac, /* 24: ireturn */
	        0xc4, 0x84, 0, 0xac, 0, 0xb1,                                              /* wide iinc */
	        0xab,                                                                      /* lookupswitch, one pair */
	        0, 0, 0, 0xac, 0, 0, 0, 1, 0, 0, 0, 0xb1, 0, 0, 0, 0xac, 0x10, 0xac, 0xb1 /* 50: return */};
	struct listing *k = *state;
	const struct runtime_callee *c = k->found.of;

	set_bytecode(k, code, sizeof(code));
	list(k);
	assert_int_equal(k->found.n, 2);
	assert_string_equal(c->name, "com.foo.Bar.first");
	assert_false(c->executed);
	assert_int_equal(c->entry, k->bytecode);
	assert_exits(c, (u32[]){24, 50}, 2, 1);
	set_bytecode(k, (const u8[]){0xac, 0xac, 0xac, 0xac}, 4);
	list(k);
	assert_int_equal(c->nexits, 4); /* more than there is room for */
}

/* What is not known, or leads out of the method, makes its returns unknown. */
static void test_bytecode_broken(void **state)
{
	static const struct {
		u8 code[20];
		u16 n;
	} broken[] = {{{0xac, 0xff}, 2}, {{0xac, 0xca}, 2}, {{0xac, 0xc4}, 2}, {{0xac, 0xaa}, 2},
	        {{0xac, 0xab, 0, 0, 0}, 5}, {{0xac, 0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1}, 16},
	        {{0xac, 0xaa, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff}, 16},
	        {{0xac, 0xab, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, 12}};
	struct listing *k = *state;

	for (u32 i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
		set_bytecode(k, broken[i].code, broken[i].n);
		list(k);
		assert_int_equal(k->found.n, 2);
		assert_int_equal(k->found.of[0].nexits, 0);
	}
	set_bytecode(k, broken[0].code, 0); /* abstract */
	list(k);
	assert_int_equal(k->found.n, 0);
}

static void test_code(void **state)
{
	struct listing *k = *state;
	struct hotspot_fake *f = &k->jvm.f;
	u8 *code = f->bytes + (k->code - FAKE_BASE);
	const struct runtime_callee *c = &k->found.of[1];

	set_bytecode(k, (const u8[]){0xac}, 1);
	memcpy(code + 4, (const u8[]){0xb8, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3}, 6); /* mov $0xc3c3c3c3, %eax; ret */
	code[CODE_SIZE - 1] = 0xc3;
	code[CODE_SIZE] = 0xc3; /* a stub's */
	list(k);
	assert_int_equal(k->found.n, 2);
	assert_true(c->executed);
	assert_exits(c, (u32[]){9, CODE_SIZE - 1}, 2, 8);
	for (u64 stubs = 0; stubs < 64; stubs++) { /* before its begin, behind its end, beyond what can be read */
		fake_poke(f, f->nmethod[0] + STUBS_AT, stubs < 32 ? 1ull << stubs : ~stubs, 4);
		list(k);
	}
	fake_poke(f, f->nmethod[0] + ENTRY_AT, f->nmethod[0] - 8, 8);
	list(k);
	assert_int_equal(k->found.n, 1);
}

/* More methods than a class can have: none of them is looked at. */
static void test_too_many(void **state)
{
	struct listing *k = *state;

	fake_poke(&k->jvm.f, fake_peek(&k->jvm.f, k->klass + KLASS_METHODS, 8), 65536, 4);
	list(k);
	assert_int_equal(k->found.n, 0);
}

/* A few bytes of objects or of the compiled method become others. */
static void damage(struct listing *k, u64 *seed)
{
	struct hotspot_fake *f = &k->jvm.f;
	u64 code = f->nmethod[0] - FAKE_BASE, objects = f->objects - FAKE_OBJECTS,
	    all = objects + FAKE_HEAD + CODE_SIZE;

	for (u32 i = 0; i < 4; i++) {
		u64 at;

		*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
		at = (*seed >> 40) % all;
		f->bytes[at < objects ? FAKE_OBJECTS + at : code + at - objects] = (u8)(*seed >> 32);
	}
}

/* Each read fails once; then what is read is damaged, again and again, always in the same way. */
static void test_hostile(void **state)
{
	struct listing *k = *state;
	struct hotspot_fake *f = &k->jvm.f;
	u8 *whole = malloc(FAKE_BYTES);
	u32 whole_ones = 0;
	u64 seed = 1;

	set_bytecode(k, (const u8[]){0x1a, 0xac}, 2);
	f->reads = 0;
	list_all(k);
	assert_int_equal(k->found.into, 1);
	for (u32 n = f->reads; n; n--) {
		f->reads = 0;
		f->fail = n;
		list_all(k);
	}
	f->fail = 0;
	memcpy(whole, f->bytes, FAKE_BYTES);
	for (u32 i = 0; i < ROUNDS; i++) {
		damage(k, &seed);
		list_all(k);
		whole_ones += k->found.n == 2 && k->found.of[0].nexits == 1;
		if (i % 8 == 7)
			memcpy(f->bytes, whole, FAKE_BYTES);
	}
	assert_in_range(whole_ones, ROUNDS / 16, ROUNDS - ROUNDS / 16); /* the damage was met, and not at once */
	free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_bytecode, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_bytecode_broken, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_code, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
