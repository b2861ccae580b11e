/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of virtual functions in stripped programs, against the symbols of the same program before it was stripped. */
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "work_dir.h"
#include "error.h"
#include "binary/image.h"
#include "symbols/rtti.h"

static const char source[] =
        "#include <cstdio>\n"
        "extern const char much[1 << 20] = {1};\n" /* .rodata so large that memory for it is unmapped once it is freed
                                                    */
        "namespace shop {\n"
        "struct Item { virtual ~Item() {} virtual int price() const = 0; virtual int tax() const { return price() / 5; "
        "} };\n"
        "struct Book : Item { int price() const override { return 12; } };\n"
        "struct Pen : Item { int price() const override { return 2; } int tax() const override { return 0; } };\n"
        "struct Tag { virtual int tag() { return 1; } };\n"
        "template <class T> struct Box : T, Tag { int price() const override { return T::price() + 1; } int tag() "
        "override { return 2; } };\n"
        "}\n"
        "int main(int c, char **) { shop::Book b; shop::Pen p; shop::Box<shop::Book> x; const shop::Item *all[] = {&b, "
        "&p, &x}; shop::Tag t, *tags[] = {&t, &x};\n"
        "printf(\"%d %d\\n\", all[c % 3]->price() + all[c % 2]->tax(), tags[c % 2]->tag()); }\n";

static void compile(const char *flags, const char *name)
{
	char command[512];
	FILE *file;

	snprintf(command, sizeof(command), "%s/rtti.cc", dir);
	file = fopen(command, "w");
	assert_non_null(file);
	fputs(source, file);
	fclose(file);
	snprintf(command, sizeof(command), "g++ %s -o %s/%s %s/rtti.cc && strip -o %s/%s.stripped %s/%s", flags, dir,
	        name, dir, dir, name, dir, name);
	assert_int_equal(system(command), 0);
}

static struct image *open_image(const char *name, const char *suffix)
{
	char path[256];
	struct image *img;

	snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix);
	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	return img;
}

/* Where nm says a function is. */
static u64 address_of(const char *name, const char *mangled)
{
	char command[512];
	unsigned long addr = 0;
	FILE *out;

	snprintf(command, sizeof(command), "nm %s/%s | grep ' %s$'", dir, name, mangled);
	out = popen(command, "r");
	assert_non_null(out);
	assert_int_equal(fscanf(out, "%lx", &addr), 1);
	pclose(out);
	return addr;
}

static void check(const char *flags, const char *name)
{
	/* of the class that defines it, whoever inherits it; the first two slots are destructors */
	static const struct {
		const char *function, *type;
		u32 index;
	} expected[] = {
	        {"_ZNK4shop4Item3taxEv", "N4shop4ItemE", 3},
	        {"_ZNK4shop4Book5priceEv", "N4shop4BookE", 2},
	        {"_ZNK4shop3Pen5priceEv", "N4shop3PenE", 2},
	        {"_ZNK4shop3Pen3taxEv", "N4shop3PenE", 3},
	        {"_ZNK4shop3BoxINS_4BookEE5priceEv", "N4shop3BoxINS_4BookEEE", 2},
	        {"_ZN4shop3Tag3tagEv", "N4shop3TagE", 0},
	        {"_ZN4shop3BoxINS_4BookEE3tagEv", "N4shop3BoxINS_4BookEEE", 4},
	};
	struct rtti_function fn;
	struct image *img;
	struct rtti *r;

	compile(flags, name);
	img = open_image(name, ".stripped");
	assert_null(rtti_create(img, &r));
	image_put(img); /* names are the rtti's own */
	for (u32 i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		if (!rtti_find(r, address_of(name, expected[i].function), &fn))
			fail_msg("%s: %s is in no virtual table", name, expected[i].function);
		assert_string_equal(fn.type, expected[i].type);
		assert_int_equal(fn.index, expected[i].index);
	}
	assert_false(rtti_find(r, address_of(name, "main"), &fn));
	rtti_destroy(r);
}

static void test_pie(void **state)
{
	check("-O0", "pie");
}

static void test_no_pie(void **state)
{
	check("-O0 -no-pie", "nopie");
}

static void test_static(void **state)
{
	check("-O0 -static", "static");
}

/* A program in C has none. */
static void test_none(void **state)
{
	struct rtti_function fn;
	struct image *img;
	struct rtti *r;

	assert_null(image_open(open("/bin/true", O_RDONLY | O_CLOEXEC), "/bin/true", &img));
	assert_null(rtti_create(img, &r));
	assert_false(rtti_find(r, img->entry, &fn));
	rtti_destroy(r);
	image_put(img);
}

/* Each byte of the tables and of the types wrong once: no harm. */
static void test_damaged(void **state)
{
	char path[256], *bytes;
	FILE *file;
	long size;
	u32 seed = 7;

	snprintf(path, sizeof(path), "%s/pie.stripped", dir);
	file = fopen(path, "r");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	bytes = malloc(size);
	rewind(file);
	assert_int_equal(fread(bytes, 1, size, file), size);
	fclose(file);
	for (u32 i = 0; i < 400; i++) {
		char *copy = malloc(size);
		struct rtti_function fn;
		struct image *img;
		struct rtti *r;
		struct error *err;

		memcpy(copy, bytes, size);
		for (u32 k = 0; k < 64; k++) {
			seed = seed * 1664525 + 1013904223;
			copy[(seed >> 4) % size] ^= 1 << (seed & 7);
		}
		err = image_from_memory(copy, size, "damaged", &img);
		if (err) {
			error_free(err);
			continue;
		}
		assert_null(rtti_create(img, &r));
		for (u64 addr = 0; addr < (u64)size; addr += 16)
			rtti_find(r, addr, &fn);
		rtti_destroy(r);
		image_put(img);
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_pie),
	        cmocka_unit_test(test_no_pie),
	        cmocka_unit_test(test_static),
	        cmocka_unit_test(test_none),
	        cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
