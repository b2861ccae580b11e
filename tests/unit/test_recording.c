/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <xxhash.h>

#include "unit.h"

#include "profile_text.h"

static const struct filter_options everything = {.threads = true};

/* Two threads, a kernel's frame, a script, a truncated stack, an image. */
static int setup(void **state)
{
	struct profile *p;
	u32 t1, t2, main_, image, function, node;
	struct profile_function fn = {
	        .name = "work", .module = "app", .file = "", .kind = KIND_CXX, .flags = FRAME_GUESS, .address = 0x1234};

	assert_null(profile_create(&p));
	t1 = add_frame(p, 0, KIND_THREAD, "one (tid 11)", "", "");
	t2 = add_frame(p, 0, KIND_THREAD, "two (tid 12)", "", "");
	main_ = add_frame(p, t1, KIND_NATIVE, "main", "app", "");
	assert_null(profile_image(p, "/usr/bin/app", "c0ffee", &image));
	fn.image = image;
	assert_null(profile_function(p, 99, &fn, false, &function));
	assert_null(profile_child(p, main_, function, &node));
	profile_add(p, node, 5);
	profile_add(p, add_frame(p, node, KIND_KERNEL, "read", "kernel", ""), 3);
	profile_add(p,
	        add_frame(p, add_frame(p, t2, KIND_NATIVE, "main", "app", ""), KIND_SCRIPT, "f (a.lua:7)", "luajit",
	                "/srv/a.lua"),
	        7);
	profile_add(p,
	        add_frame(p, add_frame(p, t2, KIND_UNKNOWN, "[truncated: no_cfi]", "", ""), KIND_NATIVE, "leaf", "app",
	                ""),
	        2);
	p->meta = (struct profile_meta){.title = "record",
	        .command = "yrt record",
	        .target = "app (pid 1)",
	        .loss = "lost 1",
	        .unit = "samples",
	        .stats = "{\"truncated\":{\"no_cfi\":2}}",
	        .start_unix_ns = 1700000000123456789,
	        .duration_ns = 2000000000,
	        .frequency = 99};
	profile_finish(p);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	profile_destroy(*state);
	return 0;
}

static const struct profile_function *find(const struct profile *p, const char *name)
{
	for (u32 i = 0; i < p->nfunctions; i++)
		if (!strcmp(p->functions[i].name, name))
			return &p->functions[i];
	fail_msg("no function %s", name);
	return NULL;
}

static void test_all_comes_back(void **state)
{
	struct bytes b = written(*state, &format_recording), again;
	const struct profile_function *f;
	struct recording recording;
	struct profile *p;
	json_t *stats;

	assert_null(read_bytes(b.data, b.size, &everything, &p, &recording));
	assert_false(recording.cut);
	assert_int_equal(recording.present, 17);
	f = find(p, "work");
	assert_int_equal(f->kind, KIND_CXX);
	assert_int_equal(f->flags, FRAME_GUESS);
	assert_int_equal(f->address, 0x1234);
	assert_string_equal(p->images[f->image].path, "/usr/bin/app");
	assert_string_equal(p->images[f->image].build_id, "c0ffee");
	f = find(p, "f (a.lua:7)");
	assert_string_equal(f->file, "/srv/a.lua");
	assert_string_equal(f->module, "luajit");
	assert_int_equal(f->line, 7);
	assert_string_equal(p->meta.title, "record");
	assert_string_equal(p->meta.command, "yrt record");
	assert_string_equal(p->meta.target, "app (pid 1)");
	assert_string_equal(p->meta.loss, "lost 1");
	assert_true(p->meta.start_unix_ns == 1700000000123456789);
	assert_true(p->meta.duration_ns == 2000000000 && p->meta.frequency == 99);
	stats = json_loads(p->meta.stats, 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(stats, "truncated"), "no_cfi")), 2);
	json_decref(stats);
	again = written(p, &format_recording);
	assert_int_equal(again.size, b.size);
	assert_memory_equal(again.data, b.data, b.size);
	free(again.data);
	free(b.data);
	profile_destroy(p);
}

static void test_filters(void **state)
{
	static const struct {
		struct filter_options options;
		const char *expected;
	} cases[] = {
	        {{.threads = true}, "one (tid 11);main;? work 5\none (tid 11);main;? work;read 3\n"
	                            "two (tid 12);[truncated: no_cfi];leaf 2\ntwo (tid 12);main;f (a.lua:7) 7\n"},
	        {{.threads = false},
	                "[truncated: no_cfi];leaf 2\nmain;f (a.lua:7) 7\nmain;? work 5\nmain;? work;read 3\n"},
	        {{.no_kernel = true}, "[truncated: no_cfi];leaf 2\nmain;f (a.lua:7) 7\nmain;? work 8\n"},
	        {{.no_user = true}, "read 3\n[no stack] 14\n"},
	        {{.include = "^work$"}, "main;? work 5\nmain;? work;read 3\n"},
	        {{.exclude = "^work$"}, "[truncated: no_cfi];leaf 2\nmain;f (a.lua:7) 7\n"},
	        {{.include = "^main$", .exclude = "lua|read"}, "main;? work 5\n"},
	        {{.include = "^two "}, "[truncated: no_cfi];leaf 2\nmain;f (a.lua:7) 7\n"},
	        {{.no_kernel = true, .include = "^read$"}, ""},
	        {{.include = "nothing is called so"}, ""},
	};
	struct bytes b = written(*state, &format_recording);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect_read(&b, &cases[i].options, cases[i].expected);
	free(b.data);
}

static void test_bad_pattern(void **state)
{
	struct filter_options options = {.exclude = "("};
	struct bytes b = written(*state, &format_recording);
	struct recording recording;
	struct profile *p;
	struct error *err = read_bytes(b.data, b.size, &options, &p, &recording);

	assert_non_null(err);
	assert_int_equal(err->kind, ERROR_USAGE);
	error_free(err);
	free(b.data);
}

/* Of each beginning of a file: either an error that says so, or all samples are there or counted as missing. */
static void test_cut_anywhere(void **state)
{
	struct bytes b = written(*state, &format_recording);
	u32 shown = 0;

	for (size_t size = 1; size < b.size; size++) {
		struct recording recording;
		struct profile *p;
		struct error *err = read_bytes(b.data, size, &everything, &p, &recording);

		if (err) {
			assert_int_equal(err->kind, ERROR_INPUT);
			assert_non_null(strstr(err->message, "x.yrt"));
			error_free(err);
			continue;
		}
		assert_true(recording.cut);
		assert_int_equal(p->nodes[0].total, 17);
		assert_int_equal(recording.present + recording.missing, 17);
		if (recording.missing)
			find(p, "[recording cut short]");
		assert_non_null(strstr(p->meta.loss, "cut short"));
		profile_destroy(p);
		shown++;
	}
	assert_true(shown > b.size / 4);
	free(b.data);
}

/* No byte can change unseen. */
static void test_corrupt_anywhere(void **state)
{
	struct bytes b = written(*state, &format_recording);

	for (size_t i = 0; i < b.size; i++) {
		struct recording recording;
		struct profile *p;
		struct error *err;

		b.data[i] ^= 0x10;
		err = read_bytes(b.data, b.size, &everything, &p, &recording);
		b.data[i] ^= 0x10;
		if (!err)
			fail_msg("byte %zu changed unseen", i);
		assert_int_equal(err->kind, ERROR_INPUT);
		error_free(err);
	}
	free(b.data);
}

static void test_newer_version(void **state)
{
	struct bytes b = written(*state, &format_recording);
	struct recording recording;
	struct profile *p;
	struct error *err;

	b.data[8] = RECORDING_VERSION + 1;
	err = read_bytes(b.data, b.size, &everything, &p, &recording);
	assert_non_null(err);
	assert_non_null(strstr(err->message, "version 2; this yrt reads version 1"));
	assert_non_null(err->hint);
	error_free(err);
	free(b.data);
}

static void append_section(struct bytes *b, u32 type, const void *content, size_t size)
{
	struct section_header header = {type, ENCODING_RAW, size, size, XXH3_64bits(content, size), 0};

	header.header = XXH3_64bits(&header, offsetof(struct section_header, header));
	b->data = realloc(b->data, b->size + sizeof(header) + size);
	memcpy(b->data + b->size, &header, sizeof(header));
	memcpy(b->data + b->size + sizeof(header), content, size);
	b->size += sizeof(header) + size;
}

static struct bytes make_file(void)
{
	static const char meta[] = "{\"count\":1,\"kinds\":[\"root\",\"brand-new\",\"native\"]}";
	struct bytes b = {malloc(RECORDING_HEADER), RECORDING_HEADER};

	memcpy(b.data, RECORDING_MAGIC "\1\0\0\0\0\0\0\0", RECORDING_HEADER);
	append_section(&b, SECTION_META, meta, sizeof(meta) - 1);
	return b;
}

/* What a later yrt may add: sections that we do not know are skipped, kinds that we do not know are unknown. */
static void test_later_additions(void **state)
{
	static const char functions[] = "\1\0\0\0\0\1f\0\0", nodes[] = "\0\0\0\0\2\1";
	struct bytes b = make_file();
	struct recording recording;
	struct profile *p;

	append_section(&b, 77, "whatever", 8);
	append_section(&b, SECTION_FUNCTIONS, functions, sizeof(functions) - 1);
	append_section(&b, SECTION_NODES, nodes, sizeof(nodes) - 1);
	append_section(&b, SECTION_END, "", 0);
	assert_null(read_bytes(b.data, b.size, &everything, &p, &recording));
	assert_false(recording.cut);
	assert_int_equal(find(p, "f")->kind, KIND_UNKNOWN);
	assert_int_equal(p->nodes[0].total, 1);
	profile_destroy(p);
	free(b.data);
}

/* Sections whose checksum holds and whose content cannot be. */
static void test_lies(void **state)
{
	static const struct {
		u32 type;
		const char *bytes;
		size_t size;
	} lies[] = {
	        {SECTION_META, "{}", 2},                          /* a second one */
	        {SECTION_IMAGES, "\x7fshort", 6},                 /* a string longer than the section */
	        {SECTION_FUNCTIONS, "\2\0\0\1\0\1f\0\0", 9},      /* an image that there is not */
	        {SECTION_FUNCTIONS, "\2\0\0\0\0\xff\xff\x7f", 8}, /* a string longer than any */
	        {SECTION_FUNCTIONS, "\2\0\0\0", 4},               /* ends within */
	        {SECTION_NODES, "\0\0\0\0\2\1", 6},               /* a function that there is not */
	        {SECTION_NODES, "\0\1\0", 3},                     /* another root */
	        {SECTION_NODES, "\0\0\0\0\0\1", 6},               /* a second root */
	        {SECTION_NODES, "\0\0\0\1\1\1\1\1\1", 9},         /* goes up above the root */
	        {SECTION_NODES, "\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 13}, /* a number without end */
	        {SECTION_NODES, "\0\0\0\0\1\xff\xff\xff\xff\xff\xff\xff\x7f",
	                13}, /* more samples than can be counted */
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct bytes b = make_file();
		struct recording recording;
		struct profile *p;
		struct error *err;

		append_section(&b, lies[i].type, lies[i].bytes, lies[i].size);
		append_section(&b, SECTION_END, "", 0);
		err = read_bytes(b.data, b.size, &everything, &p, &recording);
		if (!err)
			fail_msg("lie %zu was believed", i);
		assert_int_equal(err->kind, ERROR_INPUT);
		assert_non_null(strstr(err->message, "corrupt"));
		error_free(err);
		free(b.data);
	}
}

static void test_not_a_profile(void **state)
{
	static const char *const files[] = {"\x89PNG\r\n\x1a\n0123456789", "\x89yrt", "a;b\n", "a;b x\n",
	        "a 1\n\nb -1\n", "a 1\nb 99999999999999999999\n", " 7\n", "a\0b 1\n"};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		struct recording recording;
		struct profile *p;
		struct error *err = read_bytes(files[i], i == 7 ? 6 : strlen(files[i]), &everything, &p, &recording);

		if (!err)
			fail_msg("file %zu was read", i);
		assert_int_equal(err->kind, ERROR_INPUT);
		error_free(err);
	}
}

static void test_folded(void **state)
{
	struct filter_options options = {.no_kernel = true};
	struct bytes b = {
	        (char *)"# a comment\nmain;a b;read_[k] 3\nmain 2\n\nmain;loop_[j];in_[i];c1_[1] 4\r\nx 0\n", 0};
	struct recording recording;
	struct profile *p;

	b.size = strlen(b.data);
	expect_read(&b, &everything, "main 2\nmain;a b;read 3\nmain;loop;in;c1 4\n");
	expect_read(&b, &options, "main 2\nmain;a b 3\nmain;loop;in;c1 4\n");
	assert_null(read_bytes(b.data, b.size, &everything, &p, &recording));
	assert_int_equal(find(p, "read")->kind, KIND_KERNEL);
	assert_int_equal(find(p, "loop")->kind, KIND_SCRIPT_JIT);
	assert_int_equal(find(p, "c1")->kind, KIND_SCRIPT_BASELINE);
	assert_int_equal(find(p, "in")->flags, FRAME_INLINED);
	assert_int_equal(find(p, "in")->kind, KIND_SCRIPT_JIT);
	profile_destroy(p);
}

/* Larger than a section: it is split, and a cut loses only what is behind. */
static void test_large(void **state)
{
	enum { STACKS = 400000 };
	struct recording recording;
	struct profile *p, *q;
	struct bytes b;

	assert_null(profile_create(&p));
	for (u32 i = 0; i < STACKS; i++) {
		char name[400];

		snprintf(name, sizeof(name), "function_%u_%0*u", i % 4000, (int)(i % 300), i % 4000);
		profile_add(p,
		        add_frame(p, add_frame(p, 0, KIND_NATIVE, name + i % 2, "m", ""), KIND_NATIVE, name, "m", ""),
		        1 + i % 7);
	}
	profile_finish(p);
	b = written(p, &format_recording);
	assert_null(read_bytes(b.data, b.size, &everything, &q, &recording));
	assert_int_equal(q->nnodes, p->nnodes);
	assert_int_equal(q->nodes[0].total, p->nodes[0].total);
	profile_destroy(q);
	assert_null(read_bytes(b.data, b.size - 60, &everything, &q, &recording));
	assert_true(recording.cut);
	assert_int_equal(q->nodes[0].total, p->nodes[0].total);
	profile_destroy(q);
	profile_destroy(p);
	free(b.data);
}

/* Stacks that found no room, of a function that is in no section. */
static void test_profile_full(void **state)
{
	struct profile *p;
	struct bytes b;

	assert_null(profile_create(&p));
	p->max_nodes = 3;
	profile_add(p, add_frame(p, add_frame(p, 0, KIND_NATIVE, "a", "", ""), KIND_NATIVE, "b", "", ""), 1);
	profile_add(p, add_frame(p, 0, KIND_NATIVE, "c", "", ""), 2);
	profile_finish(p);
	b = written(p, &format_recording);
	expect_read(&b, &everything, "[profile full] 2\na;b 1\n");
	expect_read(&b, &(struct filter_options){.include = "full"}, "[profile full] 2\n");
	free(b.data);
	profile_destroy(p);
}

/* A second number of each node comes back with the filters, and may be drawn in place of the first. */
static void test_more(void **state)
{
	struct recording recording;
	struct profile *p, *back;
	struct bytes b, text;
	u32 a, node;

	assert_null(profile_create(&p));
	a = add_frame(p, 0, KIND_NATIVE, "a", "", "");
	for (u32 i = 0; i < 2; i++) {
		node = add_frame(p, a, KIND_NATIVE, i ? "byte[]" : "long[]", "", "");
		profile_add(p, node, 1000 + i);
		profile_add_more(p, node, 10 + i);
	}
	profile_add(p, add_frame(p, 0, KIND_NATIVE, "c", "", ""), 1);
	p->meta.unit = "bytes";
	p->meta.more = "objects";
	profile_finish(p);
	b = written(p, &format_recording);
	expect_read(&b, &everything, "a;byte[] 1001\na;long[] 1000\nc 1\n");
	assert_null(read_bytes(b.data, b.size, &(struct filter_options){.exclude = "long"}, &back, &recording));
	assert_string_equal(back->meta.more, "objects");
	profile_swap(back);
	assert_string_equal(back->meta.unit, "objects");
	assert_string_equal(back->meta.more, "bytes");
	profile_finish(back);
	text = written(back, &format_folded);
	assert_string_equal(text.data, "a;byte[] 11\n");
	free(text.data);
	free(b.data);
	profile_destroy(back);
	profile_destroy(p);
}

static void test_empty(void **state)
{
	struct profile *p;
	struct bytes b;

	assert_null(profile_create(&p));
	profile_finish(p);
	b = written(p, &format_recording);
	expect_read(&b, &everything, "");
	free(b.data);
	profile_add(p, 0, 4);
	profile_finish(p);
	b = written(p, &format_recording);
	expect_read(&b, &everything, "[no stack] 4\n");
	free(b.data);
	profile_destroy(p);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(test_all_comes_back),
	        T(test_filters),
	        T(test_bad_pattern),
	        T(test_cut_anywhere),
	        T(test_corrupt_anywhere),
	        T(test_newer_version),
	        T(test_later_additions),
	        T(test_lies),
	        T(test_not_a_profile),
	        T(test_folded),
	        T(test_large),
	        T(test_profile_full),
	        T(test_more),
	        T(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
