/* SPDX-License-Identifier: Apache-2.0 */
/* Requests by route: their names, quantiles, the slowest, and what there are too many of. */
#include "unit.h"

#include "probes/request/request_table.h"

static void is_route(const char *method, const char *path, const char *wanted)
{
	char *text = request_route_text(method, path);

	assert_string_equal(text, wanted);
	free(text);
}

static void routes(void **state)
{
	is_route("GET", "/orders/17?x=1", "GET /orders/:id");
	is_route("GET", "/a/4711/b", "GET /a/:id/b");
	is_route("GET", "/f/0123abcd-4567/x#y", "GET /f/:id/x");
	is_route("GET", "/face/cafe/12x", "GET /face/cafe/12x");
	is_route("PUT", "/", "PUT /");
	is_route("PUT", "", "PUT");
	is_route("", "/x", "/x");
	is_route("", "", "(requests)");
	is_route("", "GET /orders/17 HTTP/1.1", "GET /orders/:id");
	is_route("", "GET /orders/17?x= HTTP/1.1", "GET /orders/:id");
}

static void add(struct request_table *t, const char *path, u32 status, u64 ns)
{
	struct request_record r = {.ns = ns, .status = status, .cpu = ns / 4, .idle = ns - ns / 4};

	strcpy(r.method, "GET");
	snprintf(r.path, sizeof(r.path), "%s", path);
	assert_null(request_table_add(t, &r, NULL, NULL));
}

static void counts(void **state)
{
	struct request_table t = {.over_ns = 500000};

	for (u64 i = 1; i <= 1000; i++)
		add(&t, "/a", i % 10 ? 200 : 503, i * 1000);
	add(&t, "/b", 0, 5000000);
	request_table_sort(&t);
	assert_int_equal(t.nroutes, 2);
	assert_string_equal(t.routes[0]->text, "GET /a");
	assert_int_equal(t.routes[0]->n, 1000);
	assert_int_equal(t.routes[0]->status[2], 900);
	assert_int_equal(t.routes[0]->status[5], 100);
	assert_int_equal(t.routes[1]->status[0], 1);
	assert_int_equal(t.all.n, 1001);
	assert_int_equal(t.all.time[0] + t.all.time[3], t.all.sum_ns);
	assert_in_range(request_quantile(t.routes[0], 0.5), 485000, 515000);
	assert_in_range(request_quantile(t.routes[0], 0.99), 960000, 1000000);
	assert_int_equal(request_quantile(t.routes[1], 0.5) <= 5000000, 1);
	assert_int_equal(t.nslow, REQUEST_SLOW_MAX);
	assert_int_equal(t.slow[0]->record.ns, 5000000);
	for (u32 i = 1; i < t.nslow; i++)
		assert_true(t.slow[i]->record.ns <= t.slow[i - 1]->record.ns && t.slow[i]->record.ns >= 500000);
	assert_int_equal(t.slow[REQUEST_SLOW_MAX - 1]->record.ns, 952000);
	request_table_free(&t);
}

/* Further routes are one, and all that was not terminated is. */
static void too_many(void **state)
{
	struct request_table t = {0};
	struct request_record r = {.ns = ~0ull};
	char path[32];

	for (u32 i = 0; i < 2 * REQUEST_ROUTES_MAX; i++) {
		snprintf(path, sizeof(path), "/x%uy", i);
		add(&t, path, 200, 1);
	}
	assert_int_equal(t.nroutes, REQUEST_ROUTES_MAX);
	memset(r.method, 'A', sizeof(r.method));
	memset(r.path, '/', sizeof(r.path));
	assert_null(request_table_add(&t, &r, NULL, NULL));
	assert_int_equal(t.nroutes, REQUEST_ROUTES_MAX);
	assert_int_equal(t.routes[REQUEST_ROUTES_MAX - 1]->n, REQUEST_ROUTES_MAX + 2);
	request_table_free(&t);
}

/* Stacks of a slow request, longest first; places that are free are left out. */
static void stacks(void **state)
{
	struct request_table t = {0};
	struct request_record r = {.ns = 10};

	r.stack[3] = (struct request_stack){.hash = 1, .ns = 5};
	r.stack[9] = (struct request_stack){.hash = 2, .ns = 7};
	assert_null(request_table_add(&t, &r, NULL, NULL));
	assert_int_equal(t.slow[0]->nstacks, 2);
	assert_int_equal(t.slow[0]->order[0], 9);
	assert_int_equal(t.slow[0]->order[1], 3);
	request_slow_name(t.slow[0], 9, strdup("f; main"));
	request_slow_name(t.slow[0], 3, NULL);
	assert_int_equal(t.slow[0]->nstacks, 2);
	request_slow_name(t.slow[0], 3, strdup("f; main")); /* another address of it */
	assert_int_equal(t.slow[0]->nstacks, 1);
	assert_int_equal(t.slow[0]->record.stack[t.slow[0]->order[0]].ns, 12);
	request_table_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(routes), cmocka_unit_test(counts),
	        cmocka_unit_test(too_many), cmocka_unit_test(stacks)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
