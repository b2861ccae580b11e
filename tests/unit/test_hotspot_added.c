/* SPDX-License-Identifier: Apache-2.0 */
/* Which methods of a class add to a field: of a class file that is made here, whole, torn, and in an archive. */
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "runtimes/hotspot/hotspot_added.h"
#include "runtimes/hotspot/hotspot_class_files.h"

struct bytes {
	u8 data[2048];
	size_t n;
};

static void put(struct bytes *b, u32 value, u32 size)
{
	while (size--)
		b->data[b->n++] = (u8)(value >> 8 * size);
}

static void put_text(struct bytes *b, const char *text)
{
	put(b, 1, 1);
	put(b, (u32)strlen(text), 2);
	memcpy(b->data + b->n, text, strlen(text));
	b->n += strlen(text);
}

/* A constant of two members. */
static void put_pair(struct bytes *b, u32 tag, u32 one, u32 two)
{
	put(b, tag, 1);
	put(b, one, 2);
	put(b, two, 2);
}

enum {
	HOLDER = 2,
	LISTS = 6, /* the field */
	OTHER,     /* one of this name in another class */
	ADD = 13,  /* boolean List.add(Object) */
	GET = 16,  /* Object Map.get(Object) */
	SIZE = 19, /* int List.size() */
	CODE = 20,
	LINES,
	SOURCE,
	SOURCE_NAME,
	METHOD_NAME,
	METHOD_TYPE,
	OTHER_CLASS,
	OTHER_NAME,
	CONSTANTS,
};

static void put_constants(struct bytes *b, const char *method)
{
	put(b, 0xcafebabe, 4);
	put(b, 65, 4);
	put(b, CONSTANTS, 2);
	put_text(b, "acme/Store"); /* 1 */
	put(b, 7, 1);
	put(b, 1, 2);
	put_text(b, "lists");
	put_text(b, "Ljava/util/Map;");
	put_pair(b, 12, 3, 4);
	put_pair(b, 9, HOLDER, 5);
	put_pair(b, 9, OTHER_CLASS, 5);
	put_text(b, "java/util/List"); /* 8 */
	put(b, 7, 1);
	put(b, 8, 2);
	put_text(b, "add"); /* 10 */
	put_text(b, "(Ljava/lang/Object;)Z");
	put_pair(b, 12, 10, 11);
	put_pair(b, 11, 9, 12);
	put_text(b, "get");
	put_pair(b, 12, 14, 17);
	put_pair(b, 11, 9, 15);
	put_text(b, "(Ljava/lang/Object;)Ljava/lang/Object;");
	put_pair(b, 12, 27, 25); /* 18: size, "()I" */
	put_pair(b, 11, 9, 18);
	put_text(b, "Code");
	put_text(b, "LineNumberTable");
	put_text(b, "SourceFile");
	put_text(b, "Store.java");
	put_text(b, method);
	put_text(b, "()I");
	put(b, 7, 1);
	put(b, 8, 2);
	put_text(b, "size");
}

/* acme.Store with one method of this bytecode, whose instructions from the third byte on are of line 12. */
static struct bytes make_class(const char *method, const void *code, u32 n)
{
	struct bytes b = {0};

	put_constants(&b, method);
	put(&b, 0, 2);
	put(&b, HOLDER, 2);
	put(&b, 0, 2);
	put(&b, 0, 2); /* interfaces */
	put(&b, 0, 2); /* fields */
	put(&b, 1, 2);
	put(&b, 0, 2);
	put(&b, METHOD_NAME, 2);
	put(&b, METHOD_TYPE, 2);
	put(&b, 1, 2);
	put(&b, CODE, 2);
	put(&b, 12 + n + 6 + 10, 4);
	put(&b, 0, 4);
	put(&b, n, 4);
	memcpy(b.data + b.n, code, n);
	b.n += n;
	put(&b, 0, 2);
	put(&b, 1, 2);
	put(&b, LINES, 2);
	put(&b, 10, 4);
	put(&b, 2, 2);
	put(&b, 0, 2);
	put(&b, 11, 2);
	put(&b, 2, 2);
	put(&b, 12, 2);
	put(&b, 1, 2);
	put(&b, SOURCE, 2);
	put(&b, 2, 4);
	put(&b, SOURCE_NAME, 2);
	return b;
}

static struct error *note(void *ctx, const char *function, const char *file, u32 line)
{
	char *said = ctx;

	snprintf(said + strlen(said), 128 - strlen(said), "%s (%s:%u)", function, file, line);
	return NULL;
}

#define GETFIELD(c)  0xb4, 0, c
#define INVOKE(c, n) 0xb9, 0, c, n, 0

static void expect(const char *method, const void *code, u32 n, const char *expected)
{
	struct bytes b = make_class(method, code, n);
	char said[128] = "";

	assert_null(hotspot_added_in(b.data, b.n, "acme.Store", "lists", note, said));
	assert_string_equal(said, expected);
	for (size_t i = 0; i < b.n; i++) { /* cut: of memory of just this size, for sanitizers */
		u8 *cut = malloc(i + 1);

		memcpy(cut, b.data, i);
		said[0] = '\0';
		assert_null(hotspot_added_in(cut, i, "acme.Store", "lists", note, said));
		free(cut);
	}
}

#define EXPECT(method, expected, ...)                                                                                  \
	do {                                                                                                           \
		static const u8 code[] = {__VA_ARGS__};                                                                \
		expect(method, code, sizeof(code), expected);                                                          \
	} while (0)

static void test_code(void **state)
{
	/* lists.add(x) */
	EXPECT("keep", "acme.Store.keep (Store.java:12)", 0x2a, GETFIELD(LISTS), 0x2b, INVOKE(ADD, 2), 0x57, 0xb1);
	EXPECT("lambda$keep$0", "acme.Store.keep (Store.java:12)", 0x2a, GETFIELD(LISTS), 0x2b, INVOKE(ADD, 2), 0xb1);
	/* l = lists.get(k); l.add(b ? x : y) */
	EXPECT("keep", "acme.Store.keep (Store.java:12)", 0x2a, GETFIELD(LISTS), 0x2b, INVOKE(GET, 2), 0xc0, 0, 9, 0x4d,
	        0x2c, 0x1b, 0x99, 0, 7, 0x2a, 0xa7, 0, 4, 0x2b, INVOKE(ADD, 2), 0x57, 0xb1);
	/* other.add(lists): an argument; other.add(lists.size()); lists.get(k); this.other.add(x); as it is made */
	EXPECT("keep", "", 0x2b, 0x2a, GETFIELD(LISTS), INVOKE(ADD, 2), 0x57, 0xb1);
	EXPECT("keep", "", 0x2b, 0x2a, GETFIELD(LISTS), INVOKE(SIZE, 1), INVOKE(ADD, 2), 0x57, 0xb1);
	EXPECT("keep", "", 0x2a, GETFIELD(LISTS), 0x2b, INVOKE(GET, 2), 0xb0);
	EXPECT("keep", "", 0x2a, GETFIELD(OTHER), 0x2b, INVOKE(ADD, 2), 0x57, 0xb1);
	EXPECT("<init>", "", 0x2a, GETFIELD(LISTS), 0x2b, INVOKE(ADD, 2), 0x57, 0xb1);
}

/* Any byte may be any: it ends, and reads nothing that is not there. */
static void test_hostile(void **state)
{
	static const u8 code[] = {
	        0x2a, GETFIELD(LISTS), 0x2b, INVOKE(ADD, 2), 0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	struct bytes b = make_class("keep", code, sizeof(code));
	char said[128];

	for (size_t i = 0; i < b.n; i++)
		for (u32 value = 0; value < 256; value++) {
			struct bytes torn = b;

			torn.data[i] = (u8)value;
			said[0] = '\0';
			assert_null(hotspot_added_in(torn.data, torn.n, "acme.Store", "lists", note, said));
		}
}

static struct error *count(void *ctx, const void *file, size_t size)
{
	*(size_t *)ctx += size;
	assert_memory_equal(file, "some", size < 4 ? size : 4);
	return NULL;
}

static void put_little(struct bytes *b, u32 value, u32 size)
{
	for (; size--; value >>= 8)
		b->data[b->n++] = (u8)value;
}

static void test_archive(void **state)
{
	static const char name[] = "BOOT-INF/classes/acme/Store$Entry.class";
	struct bytes b = {0};
	int fd = memfd_create("archive", MFD_CLOEXEC);
	size_t got = 0, directory;

	b.n = 30;
	memcpy(b.data + b.n, "some", 4);
	b.n += 4;
	directory = b.n;
	memcpy(b.data + b.n, "PK\1\2", 4);
	b.n += 20;
	put_little(&b, 4, 4);
	put_little(&b, 4, 4);
	put_little(&b, sizeof(name) - 1, 2);
	b.n += 16;
	memcpy(b.data + b.n, name, sizeof(name) - 1);
	b.n += sizeof(name) - 1;
	memcpy(b.data + b.n, "PK\5\6", 4);
	b.n += 12;
	put_little(&b, (u32)(b.n - 12 - directory), 4);
	put_little(&b, (u32)directory, 4);
	b.n += 2;
	for (size_t n = b.n; n <= b.n; n--) { /* whole, then cut */
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, b.data, n, 0), n);
		got = 0;
		assert_null(hotspot_archive(fd, "acme/Store", count, &got));
		assert_int_equal(got, n == b.n ? 4 : 0);
	}
	assert_int_equal(pwrite(fd, b.data, b.n, 0), b.n);
	assert_null(hotspot_archive(fd, "acme/Stor", count, &got));
	assert_null(hotspot_archive(fd, "Store", count, &got));
	assert_int_equal(got, 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_code),
	        cmocka_unit_test(test_hostile),
	        cmocka_unit_test(test_archive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
