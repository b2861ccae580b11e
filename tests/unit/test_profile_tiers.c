/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "frontends/format/text.h"
#include "profile_text.h"
#include "unwind/profile/profile_tiers.h"

static int setup(void **state)
{
	return profile_create((struct profile **)state) != NULL;
}

static int teardown(void **state)
{
	profile_destroy(*state);
	return 0;
}

static u32 add_flagged(
        struct profile *p, u32 node, enum profile_kind kind, u32 flags, const char *name, const char *file)
{
	struct profile_function fn = {.name = name, .module = "hotspot", .file = file, .kind = kind, .flags = flags};
	u32 function, ret;

	assert_null(profile_function(p, 0, &fn, false, &function));
	assert_null(profile_child(p, node, function, &ret));
	return ret;
}

static u32 add_kind(struct profile *p, u32 node, enum profile_kind kind, const char *name)
{
	return add_flagged(p, node, kind, 0, name, "");
}

static const struct profile_function *only(const struct profile *p, const char *name)
{
	const struct profile_function *ret = NULL;

	for (u32 i = 0; i < p->nfunctions; i++)
		if (!strcmp(p->functions[i].name, name)) {
			assert_null(ret);
			ret = &p->functions[i];
		}
	assert_non_null(ret);
	return ret;
}

static void expect_merged(struct profile *p, const char *expected)
{
	struct bytes text;

	profile_finish(p);
	assert_null(profile_merge_tiers(p));
	text = written(p, &format_folded);
	assert_string_equal(text.data, expected);
	free(text.data);
}

static void test_subtrees(void **state)
{
	struct profile *p = *state;
	u32 a = add_kind(p, 0, KIND_SCRIPT, "main"), b = add_kind(p, 0, KIND_SCRIPT_JIT, "main");
	u32 c = add_kind(p, 0, KIND_SCRIPT_BASELINE, "main");

	profile_add(p, add_kind(p, a, KIND_SCRIPT, "run"), 3);
	profile_add(p, add_kind(p, b, KIND_SCRIPT, "run"), 1);
	profile_add(p, add_kind(p, b, KIND_SCRIPT_JIT, "run"), 60);
	profile_add(p, b, 20);
	profile_add(p, c, 16);
	profile_add_more(p, c, 5);
	expect_merged(p, "main 36\nmain;run 64\n");
	assert_int_equal(p->nnodes, 3);
	assert_int_equal(p->nodes[1].more, 5);
	assert_int_equal(p->nodes[1].total, 100);
	assert_int_equal(p->nodes[0].total, 100);
}

static void test_shares(void **state)
{
	struct profile *p = *state;
	const struct profile_function *f;
	char text[TEXT_TIERS];

	profile_add(p, add_kind(p, 0, KIND_SCRIPT, "f"), 20);
	profile_add(p, add_kind(p, 0, KIND_SCRIPT_BASELINE, "f"), 50);
	profile_add(p, add_flagged(p, 0, KIND_SCRIPT_JIT, FRAME_INLINED, "f", ""), 30);
	profile_add(p, add_kind(p, 0, KIND_SCRIPT, "g"), 1);
	expect_merged(p, "f 100\ng 1\n");
	f = only(p, "f");
	assert_int_equal(f->kind, KIND_SCRIPT_BASELINE);
	assert_int_equal(f->flags, 0);
	assert_string_equal(text_tiers(f, text), "C2 30 %, C1 50 %, interpreted 20 %, inlined 30 %");
	assert_string_equal(text_tiers(only(p, "g"), text), "interpreted");
}

static void test_inlined(void **state)
{
	struct profile *p = *state;

	profile_add(p, add_flagged(p, 0, KIND_SCRIPT_JIT, FRAME_INLINED, "f", ""), 2);
	profile_add(p, add_kind(p, 0, KIND_SCRIPT_JIT, "f"), 1);
	profile_add(p, add_flagged(p, 0, KIND_SCRIPT_JIT, FRAME_INLINED, "g", ""), 1);
	profile_add(p, add_kind(p, 0, KIND_SCRIPT, "g"), 2);
	expect_merged(p, "f 3\ng 3\n");
	assert_int_equal(only(p, "f")->flags, FRAME_INLINED);
	assert_int_equal(only(p, "g")->flags, 0);
	assert_int_equal(only(p, "g")->kind, KIND_SCRIPT);
}

/* What is native, a stub, a guess, or of another file is another function. */
static void test_apart(void **state)
{
	struct profile *p = *state;
	static const struct {
		enum profile_kind kind;
		u32 flags;
		const char *file;
	} what[] = {{KIND_SCRIPT, 0, ""}, {KIND_SCRIPT_JIT, FRAME_GUESS, ""}, {KIND_SCRIPT_NATIVE, 0, ""},
	        {KIND_STUB, 0, ""}, {KIND_NATIVE, 0, ""}, {KIND_KERNEL, 0, ""}, {KIND_SCRIPT, 0, "a.java"},
	        {KIND_SCRIPT, 0, "b.java"}};
	const u32 n = sizeof(what) / sizeof(*what);

	for (u32 i = 0; i < n; i++)
		profile_add(p, add_flagged(p, 0, what[i].kind, what[i].flags, "f", what[i].file), 1);
	profile_add(p, add_flagged(p, 0, KIND_SCRIPT_JIT, FRAME_GUESS | FRAME_INLINED, "f", ""), 4);
	profile_finish(p);
	assert_null(profile_merge_tiers(p));
	assert_int_equal(p->nnodes, n + 1);
	assert_int_equal(p->nfunctions, n + 2);
	for (u32 i = 0; i < n; i++)
		assert_int_equal(p->nodes[i + 1].self, i == 1 ? 5 : 1);
}

static u32 add_method(struct profile *p, u32 node, u32 flags, const char *name, u64 count)
{
	u32 ret = add_flagged(p, node, KIND_SCRIPT_JIT, flags, name, "");

	profile_add(p, ret, count);
	return ret;
}

static u32 flags_of(const struct profile *p, u32 node)
{
	return p->functions[p->nodes[node].function].flags;
}

/* Below one node a method is one node, marked if most of its samples are; where it is approximate alone it stays so. */
static void test_approximate(void **state)
{
	struct profile *p = *state;
	u32 main = add_method(p, 0, 0, "main", 1), f = add_method(p, main, FRAME_APPROX | FRAME_INLINED, "f", 1), again;

	add_method(p, f, FRAME_APPROX | FRAME_INLINED, "g", 3);
	f = add_method(p, main, 0, "f", 0);
	add_method(p, f, 0, "g", 2);
	add_method(p, f, 0, "h", 4);
	add_method(p, main, FRAME_APPROX, "h", 8);
	expect_merged(p, "main 1\nmain;f 1\nmain;f;~ g 5\nmain;f;h 4\nmain;~ h 8\n");
	assert_int_equal(p->nnodes, 6);
	for (u32 i = 1; i < p->nnodes; i++) {
		const char *name = p->functions[p->nodes[i].function].name;
		bool marked = *name == 'g' || (*name == 'h' && p->nodes[i].parent == 1);

		assert_int_equal(flags_of(p, i) & FRAME_APPROX, marked ? FRAME_APPROX : 0);
		assert_null(profile_child(p, p->nodes[i].parent, p->nodes[i].function, &again));
		assert_int_equal(again, i);
	}
}

/* Both forms say how much of the whole is approximate. */
static void test_approximate_shares(void **state)
{
	struct profile *p = *state;
	char text[TEXT_TIERS];
	u32 a = add_kind(p, 0, KIND_STUB, "a"), b = add_kind(p, 0, KIND_STUB, "b");

	profile_add(p, add_flagged(p, a, KIND_SCRIPT, 0, "f", ""), 10);
	profile_add(p, add_flagged(p, a, KIND_SCRIPT_JIT, 0, "f", ""), 60);
	add_method(p, b, FRAME_APPROX | FRAME_INLINED, "f", 30);
	add_method(p, b, FRAME_APPROX, "only", 1);
	expect_merged(p, "a;f 70\nb;~ f 30\nb;~ only 1\n");
	for (u32 i = 1; i < p->nnodes; i++) {
		const struct profile_function *f = &p->functions[p->nodes[i].function];

		if (*f->name == 'f') {
			assert_int_equal(f->kind, KIND_SCRIPT_JIT);
			assert_int_equal(f->flags, p->nodes[i].self == 30 ? FRAME_APPROX : 0);
			assert_string_equal(
			        text_tiers(f, text), "C2 90 %, interpreted 10 %, inlined 30 %, approximate 30 %");
		}
	}
	assert_int_equal(only(p, "only")->flags, FRAME_APPROX);
	assert_string_equal(text_tiers(only(p, "only"), text), "C2");
}

/* Functions have other numbers then, and are found still; what found no room stays where it was. */
static void test_after(void **state)
{
	struct profile *p = *state;
	struct profile_function fn = {.name = "last", .module = "hotspot", .file = "", .kind = KIND_STUB};
	u32 function, node;

	profile_add(p, add_kind(p, add_kind(p, 0, KIND_SCRIPT, "f"), KIND_STUB, "last"), 1);
	profile_add(p, add_kind(p, add_kind(p, 0, KIND_SCRIPT_JIT, "f"), KIND_STUB, "last"), 1);
	p->max_nodes = p->nnodes;
	profile_add(p, add_kind(p, 0, KIND_STUB, "none"), 7);
	expect_merged(p, "[profile full] 7\nf;last 2\n");
	assert_null(profile_function(p, 0, &fn, false, &function));
	assert_string_equal(p->functions[function].name, "last");
	assert_ptr_equal(&p->functions[function], only(p, "last"));
	p->max_nodes = p->nnodes;
	assert_null(profile_child(p, 0, function, &node));
	assert_int_equal(p->nodes[node].self, 7);
}

/* The base of a difference goes along. */
static void test_base(void **state)
{
	struct profile *p = *state;
	u32 a = add_kind(p, 0, KIND_SCRIPT, "f"), b = add_kind(p, 0, KIND_SCRIPT_JIT, "f"),
	    c = add_kind(p, b, KIND_STUB, "s");

	p->base = calloc(p->nnodes, sizeof(*p->base));
	p->base_scale = 1;
	p->base[a] = 1;
	p->base[b] = 2;
	p->base[c] = 4;
	profile_add(p, c, 9);
	expect_merged(p, "f 3 0\nf;s 4 9\n");
}

static struct bytes drawn(struct profile *p, const struct format *format)
{
	struct bytes ret = {0};
	FILE *out = open_memstream(&ret.data, &ret.size);

	assert_null(format_write(format, p, out));
	fclose(out);
	return ret;
}

/* A recording keeps what a drawing merges; --annotate does too. */
static void test_formats(void **state)
{
	struct profile *p = *state, *again;
	struct recording recording;
	struct bytes b, text;

	profile_add(p, add_kind(p, 0, KIND_SCRIPT, "f"), 1);
	profile_add(p, add_kind(p, 0, KIND_SCRIPT_JIT, "f"), 2);
	profile_finish(p);
	b = drawn(p, &format_recording);
	assert_null(read_bytes(b.data, b.size, &(struct filter_options){0}, &again, &recording));
	again->meta.annotate = true;
	text = drawn(again, &format_folded);
	assert_string_equal(text.data, "f_[0] 1\nf_[j] 2\n");
	free(text.data);
	again->meta.annotate = false;
	text = drawn(again, &format_html);
	assert_non_null(strstr(text.data, "\"tiers\":{\"2\":[33,0,67,0,0]}"));
	free(text.data);
	text = drawn(again, &format_svg);
	assert_non_null(strstr(text.data, "f\nC2 67 %, interpreted 33 %, hotspot\n3 samples"));
	free(text.data);
	text = drawn(again, &format_folded);
	assert_string_equal(text.data, "f 3\n");
	free(text.data);
	free(b.data);
	profile_destroy(again);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(test_subtrees),
	        T(test_shares),
	        T(test_inlined),
	        T(test_apart),
	        T(test_approximate),
	        T(test_approximate_shares),
	        T(test_after),
	        T(test_base),
	        T(test_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
