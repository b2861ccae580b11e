/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "frontends/format/rows.h"

static int setup(void **state)
{
	return profile_create((struct profile **)state) != NULL;
}

static int teardown(void **state)
{
	profile_destroy(*state);
	return 0;
}

/* Adds "a;b;c" with a count; "t:name" is a thread, "p:name" a process, "name@module:line" a function. Returns the leaf.
 */
static u32 add(struct profile *p, const char *path, u64 count)
{
	char *copy = strdup(path), *rest = copy, *part;
	u32 node = 0, function;

	while ((part = strsep(&rest, ";"))) {
		bool thread = !strncmp(part, "t:", 2), process = !strncmp(part, "p:", 2);
		char *name = strsep(&part, "@"), *module = strsep(&part, ":");
		struct profile_function fn = {.name = name,
		        .module = module ? module : "",
		        .file = "",
		        .line = part ? strtoul(part, NULL, 10) : 0,
		        .kind = thread    ? KIND_THREAD
		                : process ? KIND_PROCESS
		                          : KIND_NATIVE};

		assert_null(profile_function(p, 0, &fn, false, &function));
		assert_null(profile_child(p, node, function, &node));
	}
	profile_add(p, node, count);
	free(copy);
	return node;
}

static void expect(const struct rows *rows, u32 i, const char *name, u64 self, u64 total)
{
	assert_true(i < rows->n);
	assert_string_equal(rows->row[i].function->name, name);
	assert_int_equal(rows->row[i].self, self);
	assert_int_equal(rows->row[i].total, total);
}

static void test_self_and_total(void **state)
{
	struct rows rows;

	add(*state, "main;a;b", 3);
	add(*state, "main;a", 1);
	add(*state, "main;b", 2);
	assert_null(rows_create(*state, NULL, 0, false, &rows));
	assert_int_equal(rows.samples, 6);
	assert_int_equal(rows.n, 3);
	rows_sort(&rows, ROWS_SELF, false);
	expect(&rows, 0, "b", 5, 5);
	expect(&rows, 1, "a", 1, 4);
	expect(&rows, 2, "main", 0, 6);
	rows_sort(&rows, ROWS_TOTAL, false);
	expect(&rows, 0, "main", 0, 6);
	expect(&rows, 1, "b", 5, 5);
	rows_sort(&rows, ROWS_NAME, false);
	expect(&rows, 0, "a", 1, 4);
	rows_sort(&rows, ROWS_NAME, true);
	expect(&rows, 0, "main", 0, 6);
	rows_free(&rows);
}

static void test_recursion(void **state)
{
	struct rows rows;

	add(*state, "main;f;g;f;f", 4);
	add(*state, "main;f;g", 2);
	assert_null(rows_create(*state, NULL, 0, false, &rows));
	rows_sort(&rows, ROWS_NAME, false);
	expect(&rows, 0, "f", 4, 6);
	expect(&rows, 1, "g", 2, 6);
	expect(&rows, 2, "main", 0, 6);
	rows_free(&rows);
}

/* Lines of one function are one row, namesakes in two modules are two. */
static void test_identity(void **state)
{
	struct rows rows;

	add(*state, "f@m:1;f@m:2", 1);
	add(*state, "f@m:2", 1);
	add(*state, "f@other:1", 5);
	assert_null(rows_create(*state, NULL, 0, false, &rows));
	assert_int_equal(rows.n, 2);
	rows_sort(&rows, ROWS_MODULE, false);
	expect(&rows, 0, "f", 2, 2);
	expect(&rows, 1, "f", 5, 5);
	assert_string_equal(rows.row[1].function->module, "other");
	rows_free(&rows);
}

static void test_threads(void **state)
{
	struct rows rows;

	add(*state, "t:one;main;f", 3);
	add(*state, "t:two;main;f", 1);
	add(*state, "main;f", 7);
	assert_null(rows_create(*state, NULL, 0, false, &rows));
	assert_int_equal(rows.n, 6);
	rows_sort(&rows, ROWS_SELF, false);
	expect(&rows, 0, "f", 7, 7);
	assert_null(rows.row[0].thread);
	expect(&rows, 1, "f", 3, 3);
	assert_string_equal(rows.row[1].thread->name, "t:one");
	expect(&rows, 2, "f", 1, 1);
	assert_string_equal(rows.row[2].thread->name, "t:two");
	rows_free(&rows);
}

/* A process's frame is no function; or it is all that is shown. */
static void test_processes(void **state)
{
	struct rows rows;

	add(*state, "p:one;main;a", 3);
	add(*state, "p:two;main", 2);
	add(*state, "p:two;t:worker;main", 4);
	assert_null(rows_create(*state, NULL, 0, false, &rows));
	rows_sort(&rows, ROWS_TOTAL, false);
	assert_int_equal(rows.n, 3);
	expect(&rows, 0, "main", 2, 5);
	expect(&rows, 1, "main", 4, 4);
	expect(&rows, 2, "a", 3, 3);
	rows_free(&rows);
	assert_null(rows_create(*state, NULL, 0, true, &rows));
	rows_sort(&rows, ROWS_SELF, false);
	assert_int_equal(rows.n, 2);
	expect(&rows, 0, "p:two", 6, 6);
	expect(&rows, 1, "p:one", 3, 3);
	rows_free(&rows);
}

static void test_since(void **state)
{
	struct profile *p = *state;
	struct rows rows;
	u64 since[64];
	u32 n, leaf = add(p, "main;a;b", 3);

	add(p, "main;old", 9);
	n = p->nnodes;
	for (u32 i = 0; i < n; i++)
		since[i] = p->nodes[i].self;
	profile_add(p, leaf, 2);
	add(p, "main;new", 1);
	assert_null(rows_create(p, since, n, false, &rows));
	assert_int_equal(rows.samples, 3);
	assert_int_equal(rows.n, 4);
	rows_sort(&rows, ROWS_SELF, false);
	expect(&rows, 0, "b", 2, 2);
	expect(&rows, 1, "new", 1, 1);
	expect(&rows, 2, "main", 0, 3);
	rows_free(&rows);
}

static void test_empty(void **state)
{
	struct rows rows;

	assert_null(rows_create(*state, NULL, 0, false, &rows));
	assert_int_equal(rows.n, 0);
	rows_sort(&rows, ROWS_SELF, false);
	rows_free(&rows);
}

static void test_deep(void **state)
{
	struct profile *p = *state;
	struct profile_function fn = {.name = "f", .module = "", .file = ""};
	struct rows rows;
	u32 node = 0, function;

	assert_null(profile_function(p, 0, &fn, false, &function));
	for (u32 i = 0; i < 100000; i++)
		assert_null(profile_child(p, node, function, &node));
	profile_add(p, node, 2);
	assert_null(rows_create(p, NULL, 0, false, &rows));
	assert_int_equal(rows.n, 1);
	expect(&rows, 0, "f", 2, 2);
	rows_free(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_self_and_total, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_recursion, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_identity, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_processes, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_since, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_deep, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
