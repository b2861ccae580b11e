/* SPDX-License-Identifier: Apache-2.0 */
/* hit_spec.h: what -e of probe and latency may say, by hand and at random. */
#include "unit.h"

#include "probes/hit/hit_spec.h"

#define ROUNDS 200000

static void test_forms(void **state)
{
	static const struct {
		const char *text;
		enum hit_kind kind;
		const char *file, *name;
		u64 addr;
	} forms[] = {
	        {"malloc", HIT_ANY, "", "malloc", 0},
	        {"libc:malloc", HIT_ANY, "libc", "malloc", 0},
	        {"nginx+0x51340", HIT_ANY, "nginx", "0x51340", 0x51340},
	        {"nginx:0x51340", HIT_ANY, "nginx", "0x51340", 0x51340},
	        {"uprobe:libc:malloc", HIT_FUNCTION, "libc", "malloc", 0},
	        {"usdt:python:gc__start", HIT_USDT, "python", "gc__start", 0},
	        {"sched:sched_process_exec", HIT_TRACEPOINT, "sched", "sched_process_exec", 0},
	        {"Class::method", HIT_ANY, "", "Class::method", 0},
	        {"uprobe:/usr/lib/x.so:a::b", HIT_FUNCTION, "/usr/lib/x.so", "a::b", 0},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct hit_spec s;

		assert_null(hit_parse(forms[i].text, &s));
		assert_int_equal(s.kind, forms[i].kind);
		assert_string_equal(s.file, forms[i].file);
		assert_string_equal(s.name, forms[i].name);
		assert_int_equal(s.by_addr, forms[i].addr != 0);
		assert_int_equal(s.addr, forms[i].addr);
	}
}

static void test_refused(void **state)
{
	static const char *const texts[] = {"", ":", "libc:", ":malloc",
	        "uprobe:", "usdt:x:", "tracepoint:sched:none_such", "syscalls:sys_enter_read"};
	char too_long[2 * HIT_NAME_MAX];
	struct hit_spec s;

	memset(too_long, 'a', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	for (size_t i = 0; i <= sizeof(texts) / sizeof(*texts); i++) {
		struct error *err = hit_parse(i < sizeof(texts) / sizeof(*texts) ? texts[i] : too_long, &s);

		assert_non_null(err);
		assert_int_equal(err->kind, ERROR_USAGE);
		error_free(err);
	}
}

static void test_files(void **state)
{
	struct hit_spec s;

	assert_null(hit_parse("uprobe:libc:malloc", &s));
	assert_true(hit_is_file(&s, "/usr/lib/x86_64-linux-gnu/libc.so.6"));
	assert_true(hit_is_file(&s, "/lib/libc-2.31.so"));
	assert_false(hit_is_file(&s, "/lib/libcrypto.so.3"));
	assert_false(hit_is_file(&s, "/libc/x.so"));
	assert_null(hit_parse("uprobe:/app/x:f", &s));
	assert_true(hit_is_file(&s, "/merged/app/x"));
	assert_false(hit_is_file(&s, "/merged/app/xy"));
	assert_false(hit_is_file(&s, "x"));
	assert_null(hit_parse("malloc", &s));
	assert_true(hit_is_file(&s, "/bin/anything"));
}

static void test_near(void **state)
{
	struct hit_near near = {0};
	char text[HIT_NEAR_TEXT], name[300];

	for (const char *const *n = (const char *const[]){"free", "malloc", "mallob", "mallco", "calloc", "mallob",
	             "malloc_trim", NULL};
	        *n; n++)
		hit_near(&near, "malloc", *n);
	assert_int_equal(near.n, HIT_NEAR);
	assert_string_equal(near.name[0], "malloc");
	for (u32 i = 1; i < near.n; i++)
		assert_true(near.distance[i - 1] <= near.distance[i]);
	memset(name, 'm', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	near.n = 0;
	for (u32 i = 0; i < 10; i++) {
		name[0] = (char)('a' + i);
		hit_near(&near, "mmm", name);
	}
	hit_near_text(&near, text);
	assert_true(strlen(text) < sizeof(text));
}

/* The same function in another namespace, with other arguments, of a template: before what only contains the word. */
static void test_near_components(void **state)
{
	static const char *const wanted[] = {"Book::price", "price(int) const", "Pook::price", "Book::prise",
	        "price<double>", "a::Book::price(long)"};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		struct hit_near near = {0};

		hit_near(&near, wanted[i], "prices_of_all");
		hit_near(&near, wanted[i], "shop::Book::price");
		hit_near(&near, wanted[i], "shop::Book::cost");
		assert_true(near.n);
		assert_string_equal(near.name[0], "shop::Book::price");
	}
}

/* Of a language's function the end of the name is what people write. */
static void test_near_dotted(void **state)
{
	static const char *const wanted[][2] = {{"chekout", "orders.views.checkout"},
	        {"view.checkout", "orders.views.checkout"}, {"app.lua:handel", "/srv/app.lua:M.handle"},
	        {"Order::plce", "Shop::Order::place"},
	        {"Service.plac", "com.shop.OrderService.place(int,java.lang.String)"}};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		struct hit_near near = {0};

		hit_near_dotted(&near, wanted[i][0], "another.name");
		hit_near_dotted(&near, wanted[i][0], wanted[i][1]);
		assert_int_equal(near.n, 1);
		assert_string_equal(near.name[0], wanted[i][1]);
	}
}

/* Whatever it says: an error or a name that fits, and a file that is part of the text. */
static void test_random(void **state)
{
	static const char letters[] = ":::+0xab/._- \xff\x01%";
	u64 random = 88172645463325252ull;
	char text[80] = "uprobe:";

	for (u32 round = 0; round < ROUNDS; round++) {
		struct hit_near near = {0};
		struct hit_spec s;
		struct error *err;
		size_t len = 7;

		do {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			text[len++] = letters[random % (sizeof(letters) - 1)];
		} while (random >> 32 & 31 && len < sizeof(text) - 1);
		text[len] = '\0';
		err = hit_parse(text, &s);
		if (!err) {
			assert_int_equal(s.kind, HIT_FUNCTION);
			assert_true(*s.name && strstr(text, s.name) && strstr(text, s.file));
			hit_is_file(&s, text);
			hit_near(&near, s.name, text);
			hit_near_dotted(&near, s.name, text);
		}
		error_free(err);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_forms),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_files),
	        cmocka_unit_test(test_near),
	        cmocka_unit_test(test_near_components),
	        cmocka_unit_test(test_near_dotted),
	        cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
