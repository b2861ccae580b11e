/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a format, what all of them share, and those that are text: folded, txt, SVG. */
#include "format_fake.h"
#include "frontends/format/text.h"
#include "frontends/format/words.h"

static void expect_folded(struct profile *p, const char *expected)
{
	char *text = text_of(p, &format_folded);

	assert_string_equal(text, expected);
	free(text);
}

static void test_find(void **state)
{
	assert_ptr_equal(format_find("folded", "x.html"), &format_folded);
	assert_ptr_equal(format_find("html", "-"), &format_html);
	assert_ptr_equal(format_find(NULL, "-"), &format_folded);
	assert_ptr_equal(format_find(NULL, NULL), &format_folded);
	assert_ptr_equal(format_find(NULL, "/dev/null"), &format_folded);
	assert_ptr_equal(format_find(NULL, "a/b.folded.html"), &format_html);
	assert_ptr_equal(format_find(NULL, "B.HTML"), &format_html);
	assert_ptr_equal(format_find(NULL, "b.svg"), &format_svg);
	assert_ptr_equal(format_find(NULL, "b.pb.gz"), &format_pprof);
	assert_ptr_equal(format_find(NULL, "b.json"), &format_speedscope);
	assert_ptr_equal(format_find(NULL, "b.txt"), &format_txt);
	assert_ptr_equal(format_find(NULL, "b.jfr"), &format_jfr);
	assert_ptr_equal(format_find(NULL, "b.yrt"), &format_recording);
	assert_ptr_equal(format_find("yrt", "-"), &format_recording);
	assert_null(format_find(NULL, "b.gz"));
	assert_null(format_find(NULL, "b.png"));
	assert_null(format_find(NULL, ".html"));
	assert_null(format_find("nonsense", "b.html"));
}

static void test_folded(void **state)
{
	struct profile *p = *state;
	u32 b = frame(p, 0, "b"), a = frame(p, 0, "a");

	profile_add(p, frame(p, b, "d"), 3);
	profile_add(p, frame(p, b, "c"), 1);
	profile_add(p, frame(p, frame(p, a, "empty"), "x y"), UINT64_MAX / 4);
	profile_add(p, b, 2);
	expect_folded(p, "a;empty;x y 4611686018427387903\nb 2\nb;c 1\nb;d 3\n");
}

/* The same name is several functions, by what it is. */
static void test_folded_annotated(void **state)
{
	static const struct {
		enum profile_kind kind;
		u32 flags;
	} what[] = {{KIND_NATIVE, 0}, {KIND_SCRIPT, 0}, {KIND_SCRIPT_BASELINE, 0}, {KIND_SCRIPT_JIT, 0},
	        {KIND_SCRIPT_JIT, FRAME_INLINED}, {KIND_KERNEL, 0}};
	struct profile *p = *state;
	u32 node = 0;

	for (u32 i = 0; i < sizeof(what) / sizeof(*what); i++) {
		struct profile_function fn = {
		        .name = "a", .module = "", .file = "", .kind = what[i].kind, .flags = what[i].flags};
		u32 function;

		assert_null(profile_function(p, 0, &fn, false, &function));
		assert_null(profile_child(p, node, function, &node));
	}
	profile_add(p, node, 3);
	expect_folded(p, "a;a;a;a;a;a 3\n");
	p->meta.annotate = true;
	expect_folded(p, "a;a_[0];a_[1];a_[j];a_[i];a_[k] 3\n");
}

/* There is no JIT in what was compiled ahead of time, whatever its kind is in recordings. */
static void test_kinds(void **state)
{
	struct profile_function of = {.name = "a", .module = "go", .file = "", .kind = KIND_SCRIPT_JIT};

	assert_int_equal(words_kind(&of), KIND_NATIVE);
	of.module = "luajit";
	assert_int_equal(words_kind(&of), KIND_SCRIPT_JIT);
	of.kind = KIND_SCRIPT;
	of.module = "go";
	assert_int_equal(words_kind(&of), KIND_SCRIPT);
}

static void test_folded_empty(void **state)
{
	expect_folded(*state, "");
}

static void test_folded_without_stack(void **state)
{
	profile_add(*state, 0, 5);
	expect_folded(*state, "[no stack] 5\n");
}

static void test_folded_hostile(void **state)
{
	static const char *const names[][2] = {
	        {"a;b\nc\r\td", "a:b c  d"},
	        {"\x1b[31m\x7f", " [31m "},
	        {"", "[unknown]"},
	        {"\xff\xc3", "\ufffd\ufffd"},
	        {"\xc0\xbb\xed\xa0\x80", "\ufffd\ufffd\ufffd\ufffd\ufffd"},
	        {"\u2028\u2029\xc2\x85", "   "},
	        {"\u00e9\u4e16\U0001f525", "\u00e9\u4e16\U0001f525"},
	        {"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct profile *p;
		char expected[64];

		assert_null(profile_create(&p));
		profile_add(p, frame(p, 0, names[i][0]), 1);
		snprintf(expected, sizeof(expected), "%s 1\n", names[i][1]);
		expect_folded(p, expected);
		profile_destroy(p);
	}
}

static void test_deep(void **state)
{
	enum { DEPTH = 8192 };
	struct profile *p = *state;
	u32 node = 0;
	char *text;

	for (u32 i = 0; i < DEPTH; i++)
		node = frame(p, node, "f");
	profile_add(p, node, 1);
	text = text_of(p, &format_folded);
	assert_int_equal(strlen(text), DEPTH * 2 + 2);
	free(text);
}

/* Equal profiles give equal files, in whatever order their stacks came. */
static void test_order(void **state)
{
	static const char *const names[] = {"m", "c", "x", "a", "k"};
	struct profile *p = *state, *q;
	size_t n, m;
	char *a, *b;

	assert_null(profile_create(&q));
	for (int i = 0; i < 25; i++) {
		profile_add(p, frame(p, frame(p, 0, names[i / 5]), names[i % 5]), i);
		profile_add(q, frame(q, frame(q, 0, names[4 - i / 5]), names[4 - i % 5]), 24 - i);
	}
	profile_finish(p);
	profile_finish(q);
	for (const struct format *const *f = formats; *f; f++) {
		a = bytes_of(p, *f, &n);
		b = bytes_of(q, *f, &m);
		assert_int_equal(n, m);
		assert_memory_equal(a, b, n);
		free(a);
		free(b);
	}
	profile_destroy(q);
}

/* A recursion as deep as stacks get: no format may depend on the depth of our own stack. */
static void test_all_deep(void **state)
{
	enum { DEPTH = 200000 };
	struct profile *p = *state;
	u32 node = 0;
	size_t size;

	for (u32 i = 0; i < DEPTH; i++)
		node = frame(p, node, "f");
	profile_add(p, node, 1);
	profile_finish(p);
	for (const struct format *const *f = formats; *f; f++) {
		if (*f == &format_folded || *f == &format_speedscope)
			continue;
		char *bytes = bytes_of(p, *f, &size);

		assert_true(size > 0);
		free(bytes);
	}
}

static void test_txt(void **state)
{
	struct profile *p = *state;
	u32 main_ = frame(p, 0, "main"), a = frame(p, main_, "a\x1b[31m\n"), b = frame(p, a, "b");
	char *text;

	profile_add(p, b, 600);
	profile_add(p, frame(p, a, "c"), 100);
	profile_add(p, frame(p, main_, "d"), 297);
	profile_add(p, frame(p, main_, "rare"), 3);
	p->meta.loss = "lost 1\n";
	text = text_of(p, &format_txt);
	assert_string_equal(text, "lost 1 \n\n  total    self  frames (%; below 0.5 % left out)\n"
	                          " 100.00          all\n"
	                          " 100.00          main  [mod]\n"
	                          "  70.00          \u251c a [31m   [mod]\n"
	                          "  60.00   60.00  \u2502 \u251c b  [mod]\n"
	                          "  10.00   10.00  \u2502 \u2514 c  [mod]\n"
	                          "  29.70   29.70  \u2514 d  [mod]\n");
	free(text);
}

/* Of bytes how many objects they are is a column. */
static void test_txt_has_numbers_of_objects(void **state)
{
	struct profile *p = *state;
	u32 cache = frame(p, 0, "cache");
	char *text;

	profile_add(p, cache, 1000);
	profile_add_more(p, cache, 12);
	p->meta.unit = "bytes";
	p->meta.more = "objects";
	text = text_of(p, &format_txt);
	assert_string_equal(text, "  total    self       objects  frames (%; below 0.5 % left out)\n"
	                          " 100.00                        all\n"
	                          " 100.00  100.00            12  cache  [mod]\n");
	free(text);
}

static void test_txt_sums_up_what_is_rare(void **state)
{
	struct profile *p = *state;
	char *text;

	profile_add(p, frame(p, 0, "often"), 900);
	for (char name[] = "a"; *name < 'z'; ++*name)
		profile_add(p, frame(p, 0, name), 4);
	text = text_of(p, &format_txt);
	assert_non_null(strstr(text, "\n  10.00          \u2514 (25 more)\n"));
	free(text);
}

/* Of the bytes of a hostile name none opens or closes anything. */
static void test_svg_hostile(void **state)
{
	static const char hostile[] = "</title><script>alert(1)</script>\"'&#x3c;]]>\x01\xff\u202e\uffff";
	struct profile *p = *state;
	char *text;

	profile_add(p, frame(p, 0, hostile), 1);
	p->meta.command = p->meta.target = p->meta.title = p->meta.loss = p->meta.unit = p->meta.before = hostile;
	text = text_of(p, &format_svg);
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "&#x3c"));
	assert_null(strstr(text, "\uffff"));
	assert_null(strchr(text, 1));
	assert_non_null(strstr(
	        text, "&#60;/title&#62;&#60;script&#62;alert(1)&#60;/script&#62;&#34;&#39;&#38;#x3c;]]&#62; \ufffd"));
	assert_memory_equal(text + strlen(text) - 7, "</svg>\n", 7);
	free(text);
}

static void test_svg_leaves_out_what_is_narrow(void **state)
{
	struct profile *p = *state;
	char *text;

	profile_add(p, frame(p, 0, "wide"), 1000000);
	profile_add(p, frame(p, 0, "narrow"), 1);
	text = text_of(p, &format_svg);
	assert_non_null(strstr(text, ">wide</text>"));
	assert_null(strstr(text, "<title>narrow"));
	assert_non_null(strstr(text, ">1 frames are narrower"));
	free(text);
}

static void test_disk_full(void **state)
{
	struct profile *p = *state;
	FILE *out = fopen("/dev/full", "w");

	assert_non_null(out);
	profile_add(p, frame(p, 0, "f"), 1);
	profile_finish(p);
	for (const struct format *const *f = formats; *f; f++) {
		struct error *err = (*f)->write(p, out);

		assert_non_null(err);
		assert_int_equal(err->kind, ERROR_OUTPUT);
		assert_non_null(strstr(err->message, "No space left on device"));
		error_free(err);
	}
	fclose(out);
}

static void test_amounts(void **state)
{
	const struct profile_meta bytes = {.unit = "bytes"}, objects = {.unit = "objects"}, none = {0},
	                          time = {.unit = "nanoseconds"};
	char text[TEXT_AMOUNT];

	assert_string_equal(text_amount(&bytes, 1023, text), "1023 B");
	assert_string_equal(text_amount(&bytes, 1536, text), "1.50 KiB");
	assert_string_equal(text_amount(&bytes, 300ull << 30, text), "300 GiB");
	assert_string_equal(text_amount(&objects, 12345678, text), "12345678 objects");
	assert_string_equal(text_amount(&none, 7, text), "7 samples");
	assert_string_equal(text_amount(&time, 999, text), "999 ns");
	assert_string_equal(text_amount(&time, 20400000, text), "20.4 ms");
	assert_string_equal(text_amount(&time, 5000000000000, text), "5000 s");
}

/* Every code point comes back from its own bytes. */
static void test_utf8(void **state)
{
	for (u32 c = 1; c <= 0x10ffff; c++) {
		char bytes[8] = {0};
		const char *s = bytes;
		bool surrogate = c >= 0xd800 && c < 0xe000;

		s += text_encode(c, bytes);
		assert_true(!*s);
		s = bytes;
		assert_int_equal(text_next(&s), surrogate ? TEXT_REPLACEMENT : c);
	}
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(test_find),
	        T(test_folded),
	        T(test_folded_annotated),
	        T(test_kinds),
	        T(test_folded_empty),
	        T(test_folded_without_stack),
	        T(test_folded_hostile),
	        T(test_deep),
	        T(test_order),
	        T(test_all_deep),
	        T(test_txt),
	        T(test_txt_has_numbers_of_objects),
	        T(test_txt_sums_up_what_is_rare),
	        T(test_svg_hostile),
	        T(test_svg_leaves_out_what_is_narrow),
	        T(test_disk_full),
	        T(test_amounts),
	        T(test_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
