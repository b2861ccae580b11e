/* SPDX-License-Identifier: Apache-2.0 */
/* The formats whose content is JSON: the page's data, speedscope's and that of the Firefox Profiler. */
#include <jansson.h>

#include "format_fake.h"
#include "frontends/format/words.h"

/* What the page's script would get; and there must be no byte in it that ends the element. */
static json_t *data_of(struct profile *p)
{
	static const char open[] = "<script id=\"data\" type=\"application/json\">";
	char *text = text_of(p, &format_html), *start = strstr(text, open), *end;
	json_error_t error;
	json_t *data;

	assert_non_null(start);
	start += strlen(open);
	end = strchr(start, '<');
	assert_non_null(end);
	assert_memory_equal(end, "</script>", 9);
	data = json_loadb(start, end - start, 0, &error);
	assert_non_null(data);
	free(text);
	return data;
}

static bool has_string(json_t *data, const char *wanted)
{
	json_t *strings = json_object_get(data, "strings");

	for (size_t i = 0; i < json_array_size(strings); i++)
		if (!strcmp(json_string_value(json_array_get(strings, i)), wanted))
			return true;
	return false;
}

static void expect_numbers(json_t *data, const char *name, const char *expected)
{
	char *text = json_dumps(json_object_get(data, name), JSON_COMPACT);

	assert_string_equal(text, expected);
	free(text);
}

static void test_html_data(void **state)
{
	struct profile *p = *state;
	u32 b = frame(p, 0, "b"), a = frame(p, 0, "a");
	json_t *data, *meta;

	profile_add(p, frame(p, frame(p, a, "b"), "c"), 4);
	profile_add(p, b, 2);
	p->meta = (struct profile_meta){
	        .title = "flame", .loss = "lost 1", .start_unix_ns = 1500000000, .frequency = 0.0 / 0.0};
	p->meta.duration_ns = 2050000000;
	data = data_of(p);
	/* Functions by name: [profile full], a, all, b, c. Nodes: all, a, b, c, b. */
	expect_numbers(data, "fn", "[2,1,3,4,3]");
	expect_numbers(data, "up", "[0,0,0,0,3]");
	expect_numbers(data, "self", "[0,0,0,4,2]");
	assert_int_equal(json_array_size(json_object_get(data, "functions")), 5 * 6);
	assert_int_equal(json_array_size(json_object_get(data, "kinds")), KIND_MAX);
	meta = json_object_get(data, "meta");
	assert_string_equal(json_string_value(json_object_get(meta, "loss")), "lost 1");
	assert_string_equal(json_string_value(json_object_get(meta, "unit")), "samples");
	assert_int_equal(json_integer_value(json_object_get(meta, "start")), 1500);
	assert_true(json_real_value(json_object_get(meta, "duration")) == 2.05);
	assert_int_equal(json_integer_value(json_object_get(meta, "frequency")), 0);
	json_decref(data);
}

static void expect_label(const struct profile *p, enum profile_kind kind, const char *expected)
{
	char text[WORDS_LEGEND];

	assert_string_equal(words_legend(p, kind, text), expected);
}

static void add_code(struct profile *p, const char *module, enum profile_kind kind)
{
	struct profile_function fn = {.name = "f", .module = module, .kind = kind};
	u32 function, node;

	assert_null(profile_function(p, 0, &fn, false, &function));
	assert_null(profile_child(p, 0, function, &node));
	profile_add(p, node, 1);
}

/* Legends have the languages' own words; the language itself too where there are several, and the kind of what has no
 * runtime. */
static void test_words(void **state)
{
	static const struct {
		const char *module;
		enum profile_kind kind;
		const char *script, *baseline, *jit;
	} steps[] = {{"hotspot", KIND_SCRIPT, "interpreted", "baseline", "jit"},
	        {"hotspot", KIND_SCRIPT_BASELINE, "interpreted", "C1", "jit"},
	        {"hotspot", KIND_SCRIPT_JIT, "interpreted", "C1", "C2"},
	        {"luajit", KIND_SCRIPT_JIT, "Java interpreted", "Java C1", "Lua compiled, Java C2"},
	        {"python", KIND_SCRIPT, "Python, Java interpreted", "Java C1", "Lua compiled, Java C2"},
	        {"?", KIND_SCRIPT_BASELINE, "Python, Java interpreted", "Java C1, baseline", "Lua compiled, Java C2"}};
	struct profile *p = *state;
	json_t *data, *labels;
	char *text;

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		add_code(p, steps[i].module, steps[i].kind);
		expect_label(p, KIND_SCRIPT, steps[i].script);
		expect_label(p, KIND_SCRIPT_BASELINE, steps[i].baseline);
		expect_label(p, KIND_SCRIPT_JIT, steps[i].jit);
	}
	expect_label(p, KIND_NATIVE, "native");
	assert_string_equal(words_of("go", KIND_SCRIPT_JIT), "Go");
	assert_string_equal(words_of("lua", KIND_NATIVE), "native");
	data = data_of(p);
	labels = json_object_get(data, "labels");
	assert_int_equal(json_array_size(labels), KIND_MAX);
	assert_string_equal(json_string_value(json_array_get(labels, KIND_SCRIPT_JIT)), "Lua compiled, Java C2");
	expect_numbers(json_object_get(data, "words"), "hotspot", "[\"interpreted\",\"C1\",\"C2\"]");
	json_decref(data);
	text = text_of(p, &format_svg);
	assert_non_null(strstr(text, ">Python, Java interpreted</text>"));
	free(text);
}

static void test_html_hostile(void **state)
{
	static const char *const names[][2] = {
	        {"</script><script>alert(1)</script>", "</script><script>alert(1)</script>"},
	        {"<!--<script>", "<!--<script>"},
	        {"\"\\\n\x01\u2028]]>&amp;", "\"\\\n\x01\u2028]]>&amp;"},
	        {"\xff{{script}}", "\ufffd{{script}}"},
	        {"", "[unknown]"},
	};
	struct profile *p = *state;
	json_t *data;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		profile_add(p, frame(p, 0, names[i][0]), 1);
	p->meta.command = p->meta.target = p->meta.title = p->meta.loss = p->meta.unit = names[0][0];
	data = data_of(p);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_true(has_string(data, names[i][1]));
	json_decref(data);
}

static void test_html_is_small_and_complete(void **state)
{
	char *text = text_of(*state, &format_html);

	assert_true(strlen(text) < 100 << 10);
	assert_null(strstr(text, "{{"));
	assert_null(strstr(text, "src="));
	assert_non_null(strstr(text, "default-src 'none'; script-src 'sha256-"));
	assert_memory_equal(text + strlen(text) - 8, "</html>\n", 8);
	free(text);
}

static json_t *json_of(struct profile *p)
{
	char *text = text_of(p, &format_speedscope);
	json_t *o = json_loads(text, 0, NULL);

	assert_non_null(o);
	free(text);
	return o;
}

static void expect_profile(json_t *o, size_t i, const char *name, const char *samples, const char *weights)
{
	json_t *profile = json_array_get(json_object_get(o, "profiles"), i);

	assert_string_equal(json_string_value(json_object_get(profile, "name")), name);
	expect_numbers(profile, "samples", samples);
	expect_numbers(profile, "weights", weights);
}

static void test_speedscope(void **state)
{
	struct profile *p = *state;
	struct profile_function thread = {.name = "worker (tid 7)", .kind = KIND_THREAD};
	u32 function, node;
	json_t *o;

	assert_null(profile_function(p, 0, &thread, false, &function));
	assert_null(profile_child(p, 0, function, &node));
	profile_add(p, frame(p, frame(p, node, "a"), "b"), 3);
	profile_add(p, frame(p, node, "b"), 2);
	profile_add(p, frame(p, 0, "c"), 1);
	profile_add(p, 0, 4);
	p->meta.frequency = 1000;
	o = json_of(p);
	/* Frames by name: [profile full], a, b, c. */
	assert_int_equal(json_array_size(json_object_get(json_object_get(o, "shared"), "frames")), 4);
	assert_int_equal(json_array_size(json_object_get(o, "profiles")), 2);
	expect_profile(o, 0, "worker (tid 7)", "[[1,2],[2]]", "[3000000,2000000]");
	expect_profile(o, 1, "no thread", "[[],[3]]", "[4000000,1000000]");
	json_decref(o);
	p->meta.unit = "bytes";
	o = json_of(p);
	expect_profile(o, 0, "worker (tid 7)", "[[1,2],[2]]", "[3,2]");
	assert_string_equal(
	        json_string_value(json_object_get(json_array_get(json_object_get(o, "profiles"), 0), "unit")), "bytes");
	json_decref(o);
	p->meta.unit = "nanoseconds";
	o = json_of(p);
	expect_profile(o, 0, "worker (tid 7)", "[[1,2],[2]]", "[3,2]");
	assert_string_equal(
	        json_string_value(json_object_get(json_array_get(json_object_get(o, "profiles"), 0), "unit")),
	        "nanoseconds");
	json_decref(o);
}

static void expect_weight(struct profile *p, const char *unit, const char *type, double weight)
{
	json_t *o, *samples;
	char *text;

	p->meta.unit = unit;
	text = text_of(p, &format_firefox);
	o = json_loads(text, 0, NULL);
	free(text);
	samples = json_object_get(json_array_get(json_object_get(o, "threads"), 0), "samples");
	assert_string_equal(json_string_value(json_object_get(samples, "weightType")), type);
	assert_float_equal(json_number_value(json_array_get(json_object_get(samples, "weight"), 0)), weight, 1e-6);
	json_decref(o);
}

/* Weights are numbers of samples, bytes or milliseconds. */
static void test_firefox(void **state)
{
	struct profile *p = *state;

	profile_add(p, frame(p, 0, "a"), 2003004005);
	expect_weight(p, "hits", "samples", 2003004005);
	expect_weight(p, "bytes", "bytes", 2003004005);
	expect_weight(p, "nanoseconds", "tracing-ms", 2003.004005);
}

/* Viewers show no other text of ours: what was lost stands in the names of the file and of a profile without threads.
 */
static void test_speedscope_loss(void **state)
{
	struct profile *p = *state;
	json_t *o;

	profile_add(p, frame(p, 0, "a"), 1);
	p->meta.title = "flame";
	p->meta.target = "x (pid 1)";
	p->meta.loss = "9 samples, 1 \"lost\"";
	o = json_of(p);
	assert_string_equal(json_string_value(json_object_get(o, "name")), "flame: 9 samples, 1 \"lost\"");
	expect_profile(o, 0, "x (pid 1): 9 samples, 1 \"lost\"", "[[1]]", "[1]");
	json_decref(o);
	p->meta = (struct profile_meta){0};
	o = json_of(p);
	assert_string_equal(json_string_value(json_object_get(o, "name")), "yrt");
	expect_profile(o, 0, "yrt", "[[1]]", "[1]");
	json_decref(o);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(test_html_data),
	        T(test_words),
	        T(test_html_hostile),
	        T(test_html_is_small_and_complete),
	        T(test_speedscope),
	        T(test_speedscope_loss),
	        T(test_firefox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
