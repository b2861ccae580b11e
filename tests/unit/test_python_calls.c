/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions of Python begin and return: bytecode of 3.11 that is known, damaged, and gone. */
#include "unit.h"

#include "python_fake.h"

#include "runtime.h"
#include "runtimes/python/python_calls.h"
#include "runtimes/python/python_image.h"
#include "runtimes/python/python_values.h"

#define HEAD          16
#define FUNCTION_TYPE (PYTHON_HEAP + 32)
#define UNITS         600
#define LOAD_GLOBAL   116 /* five caches */
#define RETURN_VALUE  83
#define NOP           9
#define RESUME        151
#define ROUNDS        5000

struct listing {
	struct python_fake *p;
	struct python_image image;
	struct python_names *names;
	u64 code, function, dict, runtime;
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
	struct runtime_process process = {.memory = &k->p->f->memory};

	k->n = 0;
	assert_null(python_calls(&k->image, 0, k->names, false, &process, NULL, add, k));
}

/* A dict with one key. */
static u64 make_dict(struct python_fake *p, const char *key, u64 value)
{
	u64 dict = python_fake_alloc(p, 48), keys = python_fake_alloc(p, 32 + 8 + 16);

	fake_put(p->f, dict + HEAD + 16, keys);
	fake_put(p->f, keys + 8, 3 | 3 << 8 | 1 << 16); /* 8 places, indices of 8 bytes, all keys are str */
	fake_put(p->f, keys + 24, 1);
	fake_put(p->f, keys + 40, python_fake_ascii(p, key));
	fake_put(p->f, keys + 48, value);
	return dict;
}

static u64 make_code(struct python_fake *p)
{
	u64 small = python_fake_code(p, "place", 7), at = python_fake_alloc(p, p->layout.co_code.at + 2 * UNITS);
	u8 units[2 * UNITS];

	for (u32 i = 0; i < UNITS; i++)
		memcpy(units + 2 * i, (u8[]){i ? NOP : RESUME, RETURN_VALUE}, 2);
	python_fake_put(p, at, fake_at(p->f, small, p->layout.co_code.at), p->layout.co_code.at);
	python_fake_put(p, at + p->layout.co_code.at, units, sizeof(units));
	fake_put(p->f, at + p->layout.ob_size.at, UNITS);
	fake_put(p->f, at + p->layout.co_names.at + 16, 1); /* co_flags: a function's */
	fake_put(p->f, at + p->layout.co_qualname.at, python_fake_ascii(p, "outer.<locals>.place"));
	return at;
}

static int setup(void **state)
{
	struct listing *k = calloc(1, sizeof(*k));
	struct python_fake *p = k->p = python_fake_create(PYTHON_ENTRY_FLAG);
	u64 module, interp;

	p->layout.runtime_interpreters = python_fake_member(8, 8);
	p->layout.interp_modules = python_fake_member(16, 8);
	k->image = (struct python_image){
	        .layout = &p->layout, .version = 0x030b0000, .vm = p->vm, .code_type = PYTHON_TYPE};
	k->image.types.function = FUNCTION_TYPE;
	k->names = python_names_create(&p->layout, PYTHON_TYPE);
	k->code = make_code(p);
	k->function = python_fake_alloc(p, HEAD + 14 * 8);
	k->dict = make_dict(p, "place", k->function);
	module = python_fake_alloc(p, 64);
	interp = python_fake_alloc(p, 64);
	k->runtime = python_fake_alloc(p, 64);
	fake_put(p->f, k->function + 8, FUNCTION_TYPE);
	fake_put(p->f, k->function + HEAD, k->dict);
	fake_put(p->f, k->function + HEAD + 16, k->code);
	fake_put(p->f, module + HEAD, k->dict);
	fake_put(p->f, interp + 16, make_dict(p, "shop", module));
	fake_put(p->f, k->runtime + 8, interp);
	k->image.runtime = k->runtime;
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	struct listing *k = *state;

	python_names_destroy(k->names);
	python_fake_destroy(k->p);
	free(k);
	return 0;
}

static void set_unit(struct listing *k, u32 i, u8 op)
{
	python_fake_put(k->p, k->code + k->p->layout.co_code.at + 2ull * i, &op, 1);
}

/* Caches may look like returns, also where what is read at once ends among them. */
static void test_returns(void **state)
{
	struct listing *k = *state;

	set_unit(k, 20, RETURN_VALUE);
	set_unit(k, 254, LOAD_GLOBAL);
	for (u32 i = 255; i < 261; i++)
		set_unit(k, i, RETURN_VALUE); /* the last of these is one */
	set_unit(k, UNITS - 1, RETURN_VALUE);
	list(k);
	assert_int_equal(k->n, 1);
	assert_string_equal(k->last.name, "shop.outer.place");
	assert_int_equal(k->last.line, 7);
	assert_int_equal(k->last.entry, k->code + k->p->layout.co_code.at);
	assert_int_equal(k->last.nexits, 3);
	assert_int_equal(k->last.exits[0].at, k->last.entry + 2 * 20);
	assert_int_equal(k->last.exits[1].at, k->last.entry + 2 * 260);
	assert_int_equal(k->last.exits[2].at, k->last.entry + 2 * (UNITS - 1));
	set_unit(k, 30, RETURN_VALUE);
	list(k);
	assert_int_equal(k->last.nexits, 4); /* more than there is room for */
	assert_int_equal(k->last.references, k->code);
	assert_int_equal(k->last.raises, k->code + k->p->layout.co_names.at + 8);
	assert_int_equal(k->last.returns[0], RETURN_VALUE);
}

/* A size that cannot be, or that leads out of what can be read, makes returns unknown. */
static void test_sizes(void **state)
{
	static const u64 sizes[] = {0, (1 << 20) + 1, 1 << 20, 1ull << 32, (1ull << 32) + 1, 1ull << 63, UINT64_MAX};
	struct listing *k = *state;

	set_unit(k, 20, RETURN_VALUE);
	for (u32 i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		fake_put(k->p->f, k->code + k->p->layout.ob_size.at, sizes[i]);
		list(k);
		assert_int_equal(k->n, 1);
		assert_int_equal(k->last.nexits, 0);
	}
}

/* What leads back to itself is looked at once: code among its own constants, a function behind its own closure. */
static void test_cycles(void **state)
{
	struct listing *k = *state;
	struct fake *f = k->p->f;
	u64 tuple = python_fake_alloc(k->p, 64), cell = python_fake_alloc(k->p, 32);

	k->image.types.tuple = FUNCTION_TYPE + 8;
	fake_put(f, tuple + 8, FUNCTION_TYPE + 8);
	fake_put(f, tuple + 16, UINT64_MAX); /* and longer than can be read */
	fake_put(f, tuple + 24, k->code);
	fake_put(f, tuple + 32, cell);
	fake_put(f, cell + HEAD, k->function);
	fake_put(f, k->code + k->p->layout.co_consts.at, tuple);
	fake_put(f, k->function + HEAD + 48, tuple);
	list(k);
	assert_int_equal(k->n, 1);
}

/* Each read fails once; then what is read is damaged, again and again, always in the same way. */
static void test_hostile(void **state)
{
	struct listing *k = *state;
	struct fake *f = k->p->f;
	u64 seed = 1, from = PYTHON_HEAP - FAKE_STACK, size = k->p->heap - PYTHON_HEAP;
	u8 *whole = malloc(size);
	u32 whole_ones = 0;

	set_unit(k, 20, RETURN_VALUE);
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
		whole_ones += k->n == 1 && k->last.nexits == 1;
		if (i % 8 == 7)
			memcpy(f->stack + from, whole, size);
	}
	assert_in_range(whole_ones, ROUNDS / 16, ROUNDS - ROUNDS / 16); /* the damage was met, and not at once */
	free(whole);
}

/* "text" as a value of this type, with these bytes behind its head. */
static void written(struct listing *k, u64 type, const void *bytes, u32 size, char *ret)
{
	u32 left = PYTHON_VALUE_READS;
	struct python_reader r = {
	        .mem = &k->p->f->memory, .l = &k->p->layout, .version = k->image.version, .left = &left};
	u8 object[VALUE_BYTES] = {0};
	struct runtime_value v = {.word = PYTHON_HEAP, .type = type, .bytes = object, .size = size};
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	memcpy(object + HEAD, bytes, size > HEAD ? size - HEAD : 0);
	python_value(&r, &k->image, 0, &v, out);
	fclose(out);
	snprintf(ret, 256, "%s", text);
	free(text);
}

/* Objects as they were read; then bytes that no object has. */
static void test_values(void **state)
{
	static const u64 minus[] = {-2ull, 5 | 1ull << 32}, wrong[] = {1ull << 63, 0};
	struct listing *k = *state;
	u8 bytes[VALUE_BYTES], seed = 1;
	double real = 0.1;
	char text[256];

	k->image.types.integer = 1000;
	k->image.types.real = 1001;
	k->image.types.str = 1002;
	k->image.types.bytes = 1003;
	k->image.types.list = 1004;
	written(k, 1000, minus, 32, text);
	assert_string_equal(text, "-1073741829");
	written(k, 1000, wrong, 32, text);
	assert_string_equal(text, "<int of 9223372036854775808 digits of 30 bits>");
	written(k, 1001, &real, 24, text);
	assert_string_equal(text, "0.1");
	written(k, 1004, minus, 24, text);
	assert_string_equal(text, "<list of 18446744073709551614>");
	written(k, 0, minus, 0, text); /* an empty slot */
	assert_string_equal(text, "?");
	written(k, 12345, minus, 0, text); /* a type that is not there */
	assert_string_equal(text, "?");
	for (u32 i = 0; i < ROUNDS; i++) {
		for (u32 b = 0; b < sizeof(bytes); b++)
			bytes[b] = seed = (u8)(seed * 73 + 41 + i);
		written(k, 1000 + i % 5, bytes, i % (VALUE_BYTES + 1), text);
		assert_true(*text);
	}
}

/* Names and number of arguments: by position, by keyword, *args and **kwargs. */
static void test_arguments(void **state)
{
	struct listing *k = *state;
	struct fake *f = k->p->f;
	u64 names = python_fake_alloc(k->p, 24 + 8 * 4);
	u32 counts[3] = {1, 0, 1};

	fake_put(f, k->code + k->p->layout.co_filename.at - 16, names);
	fake_put(f, names + 16, 4);
	for (u32 i = 0; i < 4; i++)
		fake_put(f, names + 24 + 8 * i,
		        python_fake_ascii(k->p, (const char *[]){"self", "flag", "rest", "more"}[i]));
	python_fake_put(k->p, k->code + k->p->layout.co_firstlineno.at - 16, counts, sizeof(counts));
	fake_put(f, k->code + k->p->layout.co_names.at + 16, 1 | 4 | 8);
	list(k);
	assert_int_equal(k->last.values.n, 4);
	assert_string_equal(k->last.arguments, "self,flag,*rest,**more");
	assert_false(k->last.takes_more);
	counts[0] = 7;
	python_fake_put(k->p, k->code + k->p->layout.co_firstlineno.at - 16, counts, sizeof(counts));
	list(k);
	assert_int_equal(k->last.values.n, VALUES_MAX);
	assert_true(k->last.takes_more);
	counts[0] = UINT32_MAX;
	python_fake_put(k->p, k->code + k->p->layout.co_firstlineno.at - 16, counts, sizeof(counts));
	list(k);
	assert_in_range(k->last.values.n, 0, VALUES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_returns, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_cycles, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_values, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_arguments, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
