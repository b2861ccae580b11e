/* SPDX-License-Identifier: Apache-2.0 */
/* Names, lines and strings of Python over fake memory, hostile ones included. */
#include "unit.h"

#include "python_fake.h"

static bool name_of(struct python_fake *p, u32 i, struct frame_name *ret)
{
	struct python_names *names = python_names_create(&p->layout, PYTHON_TYPE);
	bool ok;

	assert_non_null(names);
	ok = python_name_frame(names, &p->f->memory, &p->f->frames[i], ret) &&
	     python_name_frame(names, &p->f->memory, &p->f->frames[i], ret); /* as it was kept */
	python_names_destroy(names);
	return ok;
}

static void test_frame(void **state)
{
	struct python_fake *p = python_fake_create(PYTHON_ENTRY_FLAG);
	u64 code = python_fake_code(p, "Thing.method", 7);
	struct frame_name name;

	python_fake_eval(p, &code, 1);
	assert_int_equal(python_fake_walk(p), STOP_ROOT);
	assert_true(name_of(p, 0, &name));
	assert_string_equal(name.name, "Thing.method");
	assert_string_equal(name.file, "fake.py");
	assert_int_equal(name.definition, 7);
	assert_int_equal(name.line, 7 + 1 + 1 + 2); /* of the third unit */
	python_fake_destroy(p);
}

/* Another object in its place: each of the constant words shows it. */
static void test_replaced(void **state)
{
	static const u16 words[] = {16, 24, 32, 72, 112, 128};

	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct python_fake *p = python_fake_create(PYTHON_ENTRY_FLAG);
		u64 code = python_fake_code(p, "f", 1);
		struct frame_name name;
		u8 *byte = p->f->stack + (code + words[i] - FAKE_STACK);

		python_fake_eval(p, &code, 1);
		python_fake_walk(p);
		*byte ^= 16;
		assert_false(name_of(p, 0, &name));
		*byte ^= 16;
		assert_true(name_of(p, 0, &name));
		python_fake_destroy(p);
	}
}

/* Freed, with all its words: without references, or the allocator's link to the next block in their place. */
static void test_freed(void **state)
{
	static const u64 counts[] = {0, 0x7f1234567890, 1ull << 32};

	for (u32 i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		struct python_fake *p = python_fake_create(PYTHON_ENTRY_FLAG);
		u64 code = python_fake_code(p, "f", 1);
		struct frame_name name;

		python_fake_eval(p, &code, 1);
		python_fake_walk(p);
		fake_put(p->f, code, counts[i]);
		assert_false(name_of(p, 0, &name));
		fake_put(p->f, code, 3ull << 30 | 1ull << 48); /* immortal, as of 3.14 */
		assert_true(name_of(p, 0, &name));
		python_fake_destroy(p);
	}
}

/* A reader that sees it freed between two reads: what the second one found may be anything. */
static struct fake_freed {
	struct memory memory, *under;
	u32 reads, last; /* of them; from the last one on it is freed */
	u64 code;
} freed;

static bool read_freed(struct memory *mem, void *dst, size_t size, u64 addr)
{
	if (!memory_read(freed.under, dst, size, addr))
		return false;
	if (++freed.reads > freed.last && addr == freed.code && size == sizeof(u64))
		memset(dst, 0, size);
	return true;
}

static void test_freed_meanwhile(void **state)
{
	struct python_fake *p = python_fake_create(PYTHON_ENTRY_FLAG);
	u64 code = python_fake_code(p, "f", 1);
	struct python_names *names = python_names_create(&p->layout, PYTHON_TYPE);
	struct frame_name name;
	u32 all;

	python_fake_eval(p, &code, 1);
	python_fake_walk(p);
	freed = (struct fake_freed){.memory = {.read = read_freed}, .under = &p->f->memory, .last = ~0u, .code = code};
	assert_true(python_name_frame(names, &freed.memory, &p->f->frames[0], &name));
	all = freed.reads;
	python_names_destroy(names);
	for (u32 i = 0; i < all; i++) {
		names = python_names_create(&p->layout, PYTHON_TYPE);
		freed.reads = 0;
		freed.last = i;
		assert_false(python_name_frame(names, &freed.memory, &p->f->frames[0], &name));
		python_names_destroy(names);
	}
	python_fake_destroy(p);
}

static void check_str(u32 kind, bool ascii, const void *chars, u32 n, const char *expected)
{
	struct python_fake *p = python_fake_create(PYTHON_ENTRY_FLAG);
	char text[64];

	assert_true(
	        python_str(&p->f->memory, &p->layout, python_fake_str(p, kind, ascii, chars, n), text, sizeof(text)));
	assert_string_equal(text, expected);
	python_fake_destroy(p);
}

static void test_strings(void **state)
{
	char many[200];

	memset(many, 'x', sizeof(many));
	check_str(1, true, "", 0, "");
	check_str(1, true, "plain", 5, "plain");
	check_str(1, true, "a\0b", 3, "a\357\277\275b");
	check_str(1, false, "s\374\337", 3, "s\303\274\303\237");
	check_str(2, false, (u16[]){0x41, 0x2603, 0x7ff}, 3, "A\342\230\203\337\277");
	check_str(2, false, (u16[]){0xd83d}, 1, "\357\277\275");
	check_str(4, false, (u32[]){0x1f40d, 'z'}, 2, "\360\237\220\215z");
	check_str(4, false, (u32[]){0x110000, 0xffffffff}, 2, "\357\277\275\357\277\275");
	check_str(1, true, many, sizeof(many), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
}

static void test_no_strings(void **state)
{
	struct python_fake *p = python_fake_create(PYTHON_ENTRY_FLAG);
	u64 str = python_fake_ascii(p, "text");
	char text[64];

	python_fake_put(p, str + p->layout.str_state.at, &(u32){3 << 2 | 1 << 5}, 4); /* no such kind */
	assert_false(python_str(&p->f->memory, &p->layout, str, text, sizeof(text)));
	python_fake_put(p, str + p->layout.str_state.at, &(u32){1 << 2}, 4); /* not compact */
	assert_false(python_str(&p->f->memory, &p->layout, str, text, sizeof(text)));
	python_fake_put(p, str + p->layout.str_state.at, &(u32){1 << 2 | 1 << 5 | 1 << 6}, 4);
	assert_true(python_str(&p->f->memory, &p->layout, str, text, sizeof(text)));
	assert_string_equal(text, "text");
	python_fake_put(p, str + p->layout.str_state.at, &(u32){1 | 1 << 8 | 1 << 11 | 1 << 12},
	        4); /* free-threaded 3.14, interned */
	assert_true(python_str(&p->f->memory, &p->layout, str, text, sizeof(text)));
	assert_string_equal(text, "text");
	fake_put(p->f, str + p->layout.str_length.at, ~0ull);
	assert_false(python_str(&p->f->memory, &p->layout, str, text, sizeof(text)));
	assert_false(python_str(&p->f->memory, &p->layout, 16, text, sizeof(text)));
	python_fake_destroy(p);
}

/* The forms of Objects/locations.md: short, one line, no columns, long, none. */
static void test_lines(void **state)
{
	static const u8 forms[] = {0x80 | 2, 0x55,        /* short: 3 units, line 10 */
	        0x80 | 10 << 3 | 0, 1, 2,                 /* 1 unit, the same line */
	        0x80 | 12 << 3 | 1, 1, 2,                 /* 2 units, 2 lines on */
	        0x80 | 13 << 3 | 0, 7,                    /* 1 unit, 3 lines back (svarint 7) */
	        0x80 | 14 << 3 | 0, 0x40 | 2, 6, 0, 1, 1, /* long: 1 unit, 193 lines on */
	        0x80 | 15 << 3 | 0,                       /* no line */
	        0x80 | 13 << 3 | 7, 0x41, 0x7f};          /* ends within a number */
	static const u32 lines[] = {10, 10, 10, 10, 12, 12, 9, 202, 0};

	for (u32 i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_int_equal(python_line(forms, sizeof(forms), 10, i), lines[i]);
	assert_int_equal(python_line(forms, sizeof(forms), 10, 1000), 0);
	assert_int_equal(python_line(NULL, 0, 10, 0), 0);
	for (u32 n = 0; n < sizeof(forms); n++)
		for (u32 i = 0; i < 20; i++)
			python_line(forms, n, 10, i);
}

/* Pairs of bytes and lines: up to 3.9 how far the next line is, in 3.10 how long this one. */
static void test_old_lines(void **state)
{
	static const u8 lnotab[] = {0, 1, 2, 1, 4, 0xff, 255, 0, 1, 5}, linetable[] = {2, 1, 4, 0x80, 2, 2, 0, 7};
	static const u32 old[] = {11, 12, 12, 11, 11}, new[] = {11, 0, 0, 13, 0};

	for (u32 i = 0; i < sizeof(old) / sizeof(*old); i++) {
		assert_int_equal(python_line_39(lnotab, sizeof(lnotab), 10, i), old[i]);
		assert_int_equal(python_line_310(linetable, sizeof(linetable), 10, i), new[i]);
	}
	assert_int_equal(python_line_39(lnotab, sizeof(lnotab), 10, 131), 16);
	assert_int_equal(python_line_39(NULL, 0, 10, 3), 10);
	assert_int_equal(python_line_310(NULL, 0, 10, 3), 0);
	assert_int_equal(python_line_39((const u8[]){0, 0x80}, 2, 10, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_frame),
	        cmocka_unit_test(test_replaced),
	        cmocka_unit_test(test_freed),
	        cmocka_unit_test(test_freed_meanwhile),
	        cmocka_unit_test(test_strings),
	        cmocka_unit_test(test_no_strings),
	        cmocka_unit_test(test_lines),
	        cmocka_unit_test(test_old_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
