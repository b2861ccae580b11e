/* SPDX-License-Identifier: Apache-2.0 */
/* The DWARF of a freshly compiled file says what the compiler says: all its forms, and what must be refused. */
#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include "unit.h"

#include "layout/layout.h"
#include "layout_types.h"
#include "shell.h"

struct found {
	struct layout_member c, l, p, first, inner, inner_s, number, real, deep, link, array, plains, tail, either,
	        pair_b, sizeof_tricky, sizeof_alias, absent, bit, wide, behind, sizeof_large, declared, nowhere;
	struct layout_list colours, ops, others;
};

/* clang-format off */
#define F(slot_, name_)    {.name = name_, .slot = offsetof(struct found, slot_)},
#define O(slot_, name_)    {.name = name_, .slot = offsetof(struct found, slot_), .optional = true},
#define LIST(slot_, name_) {.name = name_, .slot = offsetof(struct found, slot_), .list = true},
static const struct layout_field fields[] = {
	F(c, "plain.c") F(l, "plain.l") F(p, "plain.p") F(first, "tricky.first") F(inner, "tricky.inner")
	F(inner_s, "tricky.inner.s") F(number, "tricky.number") F(real, "tricky.real") F(deep, "tricky.deep")
	F(link, "tricky.link") F(array, "tricky.array") F(plains, "tricky.plains") F(either, "either.pair")
	F(pair_b, "either.pair.b") F(sizeof_tricky, "sizeof tricky") F(sizeof_alias, "sizeof alias_of_alias")
	O(absent, "tricky.absent") LIST(colours, "enum colour COLOUR_") LIST(ops, "enum op OP_")
};
static const struct layout_field bad_fields[] = {
	F(bit, "tricky.bit") F(wide, "tricky.wide") F(behind, "large.behind") F(sizeof_large, "sizeof large")
	F(declared, "declared.x") F(nowhere, "nowhere.x") F(c, "plain.none") O(absent, "nowhere.y")
	LIST(others, "enum colour NONE_") F(l, "plain.l")
};
/* clang-format on */
static const struct layout_schema schema = {"test", fields, sizeof(fields) / sizeof(*fields), sizeof(struct found)};

static const struct layout_schema bad_schema = {
        "test", bad_fields, sizeof(bad_fields) / sizeof(*bad_fields), sizeof(struct found)};

static const char source[] = "#include \"layout_types.h\"\nstruct plain a; tricky b; alias_of_alias *c; union either d;"
                             " struct large e; struct declared *f; enum colour g; op h; int main(void) { return 0; }\n";
static char dir[] = "/tmp/yrt-layout-XXXXXX";

static void write_source(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void compile(const char *output, const char *inputs, const char *flags)
{
	run("cd %s && cc -I" YRT_SOURCE_DIR "/tests/unit %s -o %s %s", dir, flags, output, inputs);
}

static struct image *open_output(const char *name)
{
	struct image *img;
	struct error *err;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	err = image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img);
	if (err)
		fail_msg("%s", err->message);
	return img;
}

static struct layout *read_layout(const char *name, const struct layout_schema *of)
{
	struct image *img = open_output(name);
	struct layout *l;

	assert_null(layout_create(of, &l));
	assert_null(layout_from_debug(img, "", l));
	image_put(img);
	return l;
}

#define assert_member(l, slot, type, member)                                                                           \
	do {                                                                                                           \
		const struct found *found_ = (l)->values;                                                              \
		assert_int_equal(found_->slot.at, offsetof(type, member));                                             \
		assert_int_equal(found_->slot.size, sizeof(((type *)0)->member));                                      \
	} while (0)

static void check_lists(const struct found *found)
{
	static const char *const colours[] = {"RED", "GREEN", "", "", "", "BLUE"}, *const ops[] = {"ADD", "SUB", "MUL"};

	assert_int_equal(found->colours.n, 6);
	for (u32 i = 0; i < 6; i++)
		assert_string_equal(found->colours.names[i], colours[i]);
	assert_int_equal(found->ops.n, 3);
	for (u32 i = 0; i < 3; i++)
		assert_string_equal(found->ops.names[i], ops[i]);
}

static void check_right(struct layout *l, enum layout_source source_)
{
	const struct found *found = l->values;
	struct error *err = layout_complete(l, "the file");

	if (err)
		fail_msg("%s", err->message);
	assert_member(l, c, struct plain, c);
	assert_member(l, l, struct plain, l);
	assert_member(l, p, struct plain, p);
	assert_member(l, first, tricky, first);
	assert_member(l, inner, tricky, inner);
	assert_member(l, inner_s, tricky, inner.s);
	assert_member(l, number, tricky, number);
	assert_member(l, real, tricky, real);
	assert_member(l, deep, tricky, deep);
	assert_member(l, link, tricky, link);
	assert_member(l, array, tricky, array);
	assert_member(l, plains, tricky, plains);
	assert_member(l, either, union either, pair);
	assert_member(l, pair_b, union either, pair.b);
	assert_int_equal(found->sizeof_tricky.at, sizeof(tricky));
	assert_int_equal(found->sizeof_alias.at, sizeof(tricky));
	assert_int_equal(found->absent.size, 0);
	for (u32 i = 0; i < l->schema->n; i++)
		assert_int_equal(l->fills[i].source, source_);
	check_lists(found);
	layout_destroy(l);
}

static void test_forms(void **state)
{
	static const char *const flags[] = {"-g -gdwarf-2 -gstrict-dwarf", "-g -gdwarf-3", "-g -gdwarf-4",
	        "-g -gdwarf-5", "-g -gdwarf-4 -fdebug-types-section", "-g -gz=zlib", "-g -O2"};

	write_source("a.c", source);
	for (u32 i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		compile("a", "a.c", flags[i]);
		check_right(read_layout("a", &schema), LAYOUT_DWARF);
	}
}

static void test_debug_file(void **state)
{
	struct layout *l;
	char origin[256], expected[256];

	write_source("a.c", source);
	compile("b", "a.c", "-g");
	run("cd %s && objcopy --only-keep-debug b b.debug && strip b && objcopy --add-gnu-debuglink=b.debug b", dir);
	l = read_layout("b", &schema);
	snprintf(expected, sizeof(expected), "debug file %s/b.debug", dir);
	assert_string_equal(layout_origin(l, 0, origin, sizeof(origin)), expected);
	check_right(l, LAYOUT_DEBUG_FILE);
	check_right(read_layout("b.debug", &schema), LAYOUT_DWARF);
}

static void test_none(void **state)
{
	struct layout *l;
	struct error *err;

	write_source("a.c", source);
	compile("c", "a.c", "-s");
	l = read_layout("c", &schema);
	err = layout_complete(l, "the file");
	assert_non_null(err);
	assert_int_equal(err->kind, ERROR_UNSUPPORTED);
	assert_non_null(strstr(err->message, "the file lacks parts of the layout of test: plain.c, plain.l"));
	assert_non_null(strstr(err->message, "and 10 more"));
	error_free(err);
	layout_destroy(l);
}

/* What can not be given is named with its reason; what can be is there. */
static void test_refused(void **state)
{
	struct layout *l;
	struct error *err;

	write_source("a.c", source);
	compile("a", "a.c", "-g");
	l = read_layout("a", &bad_schema);
	err = layout_complete(l, "it");
	assert_non_null(err);
	assert_non_null(strstr(err->message, "tricky.bit (a bit-field"));
	assert_non_null(strstr(err->message, "tricky.wide (a bit-field"));
	assert_non_null(strstr(err->message, "large.behind (beyond 64 KiB)"));
	assert_non_null(strstr(err->message, "sizeof large (beyond 64 KiB)"));
	assert_non_null(strstr(err->message, "declared.x, nowhere.x, plain.none (the type has no such member)"));
	assert_non_null(strstr(err->message, "enum colour NONE_ (no enumerator"));
	assert_null(strstr(err->message, "nowhere.y"));
	error_free(err);
	assert_member(l, l, struct plain, l);
	layout_destroy(l);
}

/* Two units that mean different things by one name: neither is believed. */
static void test_disagreement(void **state)
{
	struct layout *l;
	struct error *err;

	write_source("a.c", source);
	write_source("b.c", "struct plain { long more; char c; short s; int i; long l; void *p; } other;\n");
	compile("d", "a.c b.c", "-g");
	l = read_layout("d", &schema);
	err = layout_complete(l, "it");
	assert_non_null(err);
	assert_non_null(strstr(err->message, "plain.c (its definitions disagree), plain.l (its definitions disagree)"));
	error_free(err);
	assert_member(l, first, tricky, first);
	layout_destroy(l);
	write_source("b.c", "#include \"layout_types.h\"\nstruct plain z; tricky y;\n");
	compile("d", "a.c b.c", "-g");
	check_right(read_layout("d", &schema), LAYOUT_DWARF);
}

/* xorshift: the same damage each time */
static u32 next_random(u32 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static void damage(char *bytes, const char *whole, u64 size, u64 start, u64 len, u32 seed)
{
	memcpy(bytes, whole, size);
	for (u32 i = 0; i < 1 + seed % 8; i++)
		bytes[start + next_random(&seed) % len] ^= 1u << next_random(&seed) % 8;
}

/* Where a section lies in the file. */
static void find_section(const struct image *img, const char *name, u64 *start, u64 *len)
{
	Elf_Scn *section = NULL;
	size_t names;

	elf_getshdrstrndx(img->elf, &names);
	while ((section = elf_nextscn(img->elf, section))) {
		Elf64_Shdr *header = elf64_getshdr(section);

		if (strcmp(elf_strptr(img->elf, names, header->sh_name), name))
			continue;
		*start = header->sh_offset;
		*len = header->sh_size;
		return;
	}
	fail_msg("no %s", name);
}

/* Bits that flip in debug information: whatever comes of it, it ends, and what is filled was there. */
static void test_damaged(void **state)
{
	static const char *const sections[] = {".debug_info", ".debug_abbrev"};
	struct image *img;
	u64 start = 0, len = 0;
	char *whole;

	write_source("a.c", source);
	compile("a", "a.c", "-g");
	img = open_output("a");
	whole = malloc(img->size);
	assert_int_equal(pread(img->fd, whole, img->size, 0), img->size);
	for (u32 seed = 1; seed <= 400; seed++) {
		char *bytes = malloc(img->size);
		struct image *damaged;
		struct layout *l;

		find_section(img, sections[seed % 2], &start, &len);
		damage(bytes, whole, img->size, start, len, seed * 2654435761u);
		assert_null(image_from_memory(bytes, img->size, "damaged", &damaged));
		assert_null(layout_create(&schema, &l));
		assert_null(layout_from_dwarf(damaged, LAYOUT_DWARF, l));
		layout_destroy(l);
		image_put(damaged);
	}
	free(whole);
	image_put(img);
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static struct layout *load_whole(struct image *img)
{
	struct layout *l = NULL;

	assert_null(layout_whole_from_debug(&schema, img, "", &l));
	assert_non_null(l);
	return l;
}

/* The one file of the cache that ends with .layout. */
static void cached_path(char *path, size_t size)
{
	glob_t found;

	assert_int_equal(glob(strcat(strcpy(path, dir), "/cache/*.layout"), 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	snprintf(path, size, "%s", found.gl_pathv[0]);
	globfree(&found);
}

/* What was found is read from the cache the next time, as it was and from where; a damaged file is made anew. */
static void test_cache(void **state)
{
	struct image *img;
	struct layout *first, *again = NULL, *other = NULL;
	char cache[256], path[512], origin[2][256];

	snprintf(cache, sizeof(cache), "%s/cache", dir);
	write_source("a.c", source);
	compile("cached", "a.c", "-g -Wl,--build-id");
	img = open_output("cached");
	img->cache_dir = cache;
	assert_null(layout_cache_load(&schema, img, &again));
	assert_null(again);
	first = load_whole(img);
	assert_null(layout_cache_load(&schema, img, &again));
	assert_non_null(again);
	assert_true(layout_equal(first, again));
	for (u32 i = 0; i < schema.n; i++) {
		layout_origin(first, i, origin[0], sizeof(origin[0]));
		layout_origin(again, i, origin[1], sizeof(origin[1]));
		assert_string_equal(origin[0], origin[1]);
	}
	assert_null(layout_cache_load(&bad_schema, img, &other));
	assert_null(other);
	layout_destroy(again);
	cached_path(path, sizeof(path));
	assert_int_equal(truncate(path, 60), 0);
	again = NULL;
	assert_null(layout_cache_load(&schema, img, &again));
	assert_null(again);
	again = load_whole(img);
	assert_true(layout_equal(first, again));
	layout_destroy(again);
	layout_destroy(first);
	image_put(img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_forms),
	        cmocka_unit_test(test_debug_file),
	        cmocka_unit_test(test_none),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_disagreement),
	        cmocka_unit_test(test_damaged),
	        cmocka_unit_test(test_cache),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
