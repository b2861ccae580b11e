/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes that are no code become: labels of samples. */
#include "unit.h"

#include "frontends/format/sample_labels.h"

static const struct label_keys keys = {"process", "pid", pprof_containers, "thread", "thread_id"};

static void add(void *ctx, const char *key, const char *text, u64 number)
{
	char *at = (char *)ctx + strlen(ctx);

	if (text)
		sprintf(at, "<%s|%s>", key, text);
	else
		sprintf(at, "<%s|%lu>", key, number);
}

static void expect(enum profile_kind kind, const char *name, u32 line, const char *labels)
{
	struct profile_function f = {
	        .kind = kind, .name = name, .line = line, .module = "", .file = "pod=12345678,container=box"};
	char text[512] = "";

	sample_labels_add(&f, &keys, add, text);
	assert_string_equal(text, labels);
}

static void test_kinds(void **state)
{
	expect(KIND_PROCESS, "nginx: worker (pid 42)", 42,
	        "<process|nginx: worker><pid|42><pod_uid|12345678><container|box>");
	expect(KIND_THREAD, "pool (tid 7)", 0, "<thread|pool><thread_id|7>");
	expect(KIND_THREAD, "goroutine 7", 0, "<thread|goroutine 7>");
	expect(KIND_SCRIPT, "labels: a=b", 0, "");
	expect(KIND_CONTAINER, "pod x", 0, ""); /* its processes say it */
	assert_true(sample_label_is(KIND_LABEL) && sample_label_is(KIND_THREAD) && !sample_label_is(KIND_NATIVE));
}

static void test_program(void **state)
{
	expect(KIND_LABEL, "labels: kind=both, tier=1", 0, "<kind|both><tier|1>");
	expect(KIND_LABEL, "labels: a\\=b\\,=x=y\\, c\\\\=d, e=", 0, "<a=b,|x=y, c\\=d><e|>");
}

/* What was cut, or is gone. */
static void test_broken(void **state)
{
	expect(KIND_LABEL, "labels: [gone]", 0, "");
	expect(KIND_LABEL, "labels: kind=both, ti", 0, "<kind|both>");
	expect(KIND_LABEL, "labels: kind=both, tier=\\", 0, "<kind|both><tier|\\>");
	expect(KIND_LABEL, "labels:", 0, "");
	expect(KIND_LABEL, "labels: , , =x", 0, "<|x>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_kinds),
	        cmocka_unit_test(test_program),
	        cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
