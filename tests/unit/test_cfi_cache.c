/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of compiled tables: what is kept, what is not believed, what happens where it cannot be written. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "unit.h"

#include "eh_frame.h"
#include "unwind/cfi/cfi.h"
#include "unwind/cfi/cfi_internal.h"

#define NFUNCTIONS 40
#define TICKS      500

static struct elf_file file;
static char dir[64], path[128];

#define GO "go:" /* how names begin that are Go's */

static struct image *make_image(const char *build_id)
{
	struct bytes eh = {.n = 0};
	struct image *img;
	size_t cie;
	u64 addr;

	elf_start(&file);
	if (build_id && !strncmp(build_id, GO, 3))
		elf_note(&file, ".note.go.buildid", "Go\0", 4, build_id, (u32)strlen(build_id));
	else if (build_id)
		elf_build_id(&file, build_id, (u32)strlen(build_id));
	addr = elf_place(&file);
	cie = eh_put_cie(&eh, &eh_cie_default);
	for (u32 i = 0; i < NFUNCTIONS; i++) {
		const u8 code[] = {DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, (u8)(8 + 8 * (i % 5))};

		eh_put_fde(&eh, &eh_cie_default, cie, addr, 0x1000 + i * 0x80, 0x70, code, sizeof(code));
	}
	elf_section(&file, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, eh.at, eh.n);
	elf_finish(&file, true);
	assert_null(image_from_memory(elf_copy(&file), file.n, "test", &img));
	return img;
}

static struct cfi *load(const char *build_id, const char *cache)
{
	struct image *img = make_image(build_id);
	struct cfi_options options = {.cache_dir = cache};
	struct cfi *cfi;

	assert_null(cfi_load(img, &options, &cfi));
	image_put(img);
	assert_int_equal(cfi->nfdes, NFUNCTIONS);
	for (u32 i = 0; i < NFUNCTIONS; i++) {
		struct cfi_rule rule;

		assert_true(cfi_find(cfi, 0x1000 + i * 0x80 + 5, &rule));
		assert_int_equal(rule.cfa_off, 8 + 8 * (i % 5));
		assert_int_equal(cfi->fdes[i].start, 0x1000 + i * 0x80);
	}
	return cfi;
}

/* Loads, and returns whether it came from the cache. */
static bool cached(const char *build_id)
{
	struct cfi *cfi = load(build_id, dir);
	bool from_cache = cfi->from_cache;

	cfi_destroy(cfi);
	return from_cache;
}

/* The names in dir, counted; the last is put into path. */
static u32 count_files(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	u32 n = 0;

	if (!d)
		return 0;
	while ((e = readdir(d))) {
		if (*e->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%.50s", dir, e->d_name);
		n++;
	}
	closedir(d);
	return n;
}

static int clean(void **state)
{
	while (count_files())
		unlink(path);
	return 0;
}

static size_t read_file(u8 *to, size_t max)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, to, max);

	assert_true(n > 0 && (size_t)n < max);
	close(fd);
	return (size_t)n;
}

/* In place, so that the inode's mode and owner stay. */
static void write_file(const u8 *from, size_t n)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, from, n), n);
	close(fd);
}

static void test_keeps(void **state)
{
	struct stat st;

	assert_false(cached("first"));
	assert_true(cached("first"));
	assert_int_equal(count_files(), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void test_identity(void **state)
{
	assert_false(cached("first"));
	assert_false(cached("other"));
	assert_true(cached("first"));
	assert_int_equal(count_files(), 2);
	assert_false(cached(NULL));
	assert_false(cached(NULL));
	assert_int_equal(count_files(), 2);
	assert_false(cached(GO "first/of/four/parts, which are longer than a build-id may be, together"));
	assert_true(cached(GO "first/of/four/parts, which are longer than a build-id may be, together"));
	assert_false(cached(GO "first/of/four/parts, which are longer than a build-id may be, together."));
	assert_int_equal(count_files(), 4);
}

static bool file_cached(const char *name)
{
	struct cfi_options options = {.cache_dir = dir};
	struct image *img;
	struct cfi *cfi;
	bool ret;

	assert_null(image_open(open(name, O_RDONLY | O_CLOEXEC), name, &img));
	assert_null(cfi_load(img, &options, &cfi));
	ret = cfi->from_cache;
	cfi_destroy(cfi);
	image_put(img);
	return ret;
}

static bool is_as_old(int fd, const struct stat *than)
{
	struct stat now;

	assert_int_equal(fstat(fd, &now), 0);
	return now.st_mtim.tv_sec == than->st_mtim.tv_sec && now.st_mtim.tv_nsec == than->st_mtim.tv_nsec;
}

/* A file without any id is recognised by what shows that it was not changed. */
static void test_no_id(void **state)
{
	char name[] = "/tmp/yrt-test-cfi-file.XXXXXX";
	int fd = mkstemp(name);
	struct stat before;

	image_put(make_image(NULL));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, file.at, file.n), file.n);
	assert_false(file_cached(name));
	assert_true(file_cached(name));
	assert_int_equal(fstat(fd, &before), 0);
	for (u32 i = 0; i < TICKS && (!i || is_as_old(fd, &before)); i++) {
		usleep(10000); /* a tick of the file system's clock */
		assert_int_equal(pwrite(fd, file.at, file.n, 0), file.n);
	}
	assert_false(file_cached(name));
	close(fd);
	unlink(name);
}

/* A file under the name of another. */
static void test_renamed(void **state)
{
	char other[128];

	assert_false(cached("first"));
	assert_int_equal(count_files(), 1);
	strcpy(other, path);
	assert_int_equal(unlink(path), 0);
	assert_false(cached("fjrst"));
	assert_int_equal(count_files(), 1);
	assert_int_equal(rename(path, other), 0);
	assert_false(cached("first"));
	assert_true(cached("first"));
}

/* Each byte matters. */
static void test_corrupt(void **state)
{
	static u8 good[1 << 16], bad[1 << 16];
	size_t n;

	assert_false(cached("first"));
	assert_int_equal(count_files(), 1);
	n = read_file(good, sizeof(good));
	for (size_t i = 0; i < n; i += i < 256 ? 1 : 13) {
		memcpy(bad, good, n);
		bad[i] ^= 0x41;
		write_file(bad, n);
		assert_false(cached("first")); /* rebuilt … */
		assert_int_equal(count_files(), 1);
		assert_int_equal(read_file(bad, sizeof(bad)), n);
		assert_memory_equal(bad, good, n); /* … as it was */
	}
}

static void test_truncated(void **state)
{
	static u8 good[1 << 16];
	size_t n;

	assert_false(cached("first"));
	assert_int_equal(count_files(), 1);
	n = read_file(good, sizeof(good) - 1);
	for (size_t cut = 0; cut < n; cut += 97) {
		write_file(good, cut);
		assert_false(cached("first"));
	}
	good[n] = 0;
	write_file(good, n + 1);
	assert_false(cached("first"));
	assert_true(cached("first"));
}

static void seal(struct cfi_blob *blob)
{
	const u8 *from = (const u8 *)&blob->size;

	blob->checksum = XXH3_64bits(from, (size_t)((const u8 *)blob + blob->size - from));
}

/* Writes good with one word changed and a right checksum, and expects that it is not believed. */
static void refuse(const u8 *good, size_t n, size_t at, u32 value)
{
	static u8 bad[1 << 16];

	memcpy(bad, good, n);
	memcpy(bad + at, &value, sizeof(value));
	assert_memory_not_equal(bad, good, n);
	seal((struct cfi_blob *)bad);
	write_file(bad, n);
	assert_false(cached("first"));
}

/* The blob ends before its last piece does. */
static void refuse_cut(const u8 *good, size_t n, size_t cut)
{
	static u8 bad[1 << 16];

	memcpy(bad, good, n);
	((struct cfi_blob *)bad)->size = n - cut;
	seal((struct cfi_blob *)bad);
	write_file(bad, n - cut);
	assert_false(cached("first"));
}

/* The checksum is right but the content is not: offsets and numbers are checked all the same. */
static void test_forged(void **state)
{
	static u8 good[1 << 16];
	const struct cfi_blob *blob = (const struct cfi_blob *)good;
	const struct cfi_blob_piece *piece = (const struct cfi_blob_piece *)(blob + 1);
	const struct cfi_table *t;
	size_t n, at;

	assert_false(cached("first"));
	assert_int_equal(count_files(), 1);
	n = read_file(good, sizeof(good));
	seal((struct cfi_blob *)good);
	write_file(good, n);
	assert_true(cached("first")); /* the forger's tools work */

	refuse_cut(good, n, 8);
	refuse_cut(good, n, piece->size);
	refuse(good, n, offsetof(struct cfi_blob, version), 0x7fff);
	refuse(good, n, offsetof(struct cfi_blob, npieces), 0xffffffff);
	refuse(good, n, offsetof(struct cfi_blob, npieces), 2);
	refuse(good, n, offsetof(struct cfi_blob, nfdes), 0xfffffff);
	refuse(good, n, offsetof(struct cfi_blob, identity_len), 4);
	refuse(good, n, offsetof(struct cfi_blob, identity_len), 0xffffffff);
	refuse(good, n, offsetof(struct cfi_blob, image_size), 1);
	refuse(good, n, offsetof(struct cfi_blob, debug_size), 1);
	at = sizeof(*blob);
	refuse(good, n, at + offsetof(struct cfi_blob_piece, start), 0x1001);
	refuse(good, n, at + offsetof(struct cfi_blob_piece, end), 0x1000);
	refuse(good, n, at + offsetof(struct cfi_blob_piece, end), 0x9000);
	refuse(good, n, at + offsetof(struct cfi_blob_piece, end) + 4, 1);
	refuse(good, n, at + offsetof(struct cfi_blob_piece, offset), 0xfffffff8);
	refuse(good, n, at + offsetof(struct cfi_blob_piece, offset), (u32)piece->offset + 4);
	refuse(good, n, at + offsetof(struct cfi_blob_piece, size), ARENA_SLAB_SIZE);
	at = piece->offset;
	t = (const struct cfi_table *)(good + at);
	for (size_t word = 0; word < sizeof(*t); word += 4) {
		refuse(good, n, at + word, 0);
		refuse(good, n, at + word, 0x7fffffff);
	}
	refuse(good, n, at + t->index, 1);
	refuse(good, n, at + t->index + 4, 0xffff);
	refuse(good, n, at + t->index + 4, 0);
	refuse(good, n, at + t->rows, 1);
	refuse(good, n, at + t->rows, t->nrules << CFI_PAGE_BITS);
	refuse(good, n, at + t->rows + 4, 0);
	refuse(good, n, at + t->rules, 0xffffffff);
	refuse(good, n, sizeof(*blob) + sizeof(*piece), 0xffff);
}

/* Files that others could change under the mapping are not used. */
static void test_permissions(void **state)
{
	char target[128];

	assert_false(cached("first"));
	assert_int_equal(count_files(), 1);
	assert_int_equal(chmod(path, 0666), 0);
	assert_false(cached("first"));
	assert_true(cached("first"));
	snprintf(target, sizeof(target), "%s/target", dir);
	assert_int_equal(rename(path, target), 0);
	assert_int_equal(symlink("target", path), 0);
	assert_false(cached("first"));
}

static void test_unwritable(void **state)
{
	struct cfi *cfi;
	char sub[96];

	cfi = load("first", "/proc/nowhere/at/all");
	assert_false(cfi->from_cache);
	cfi_destroy(cfi);
	for (u32 i = 0; i < 2; i++) { /* no directory: nothing is written, into the root directory least of all */
		cfi = load("first", "");
		assert_false(cfi->from_cache);
		cfi_destroy(cfi);
	}
	snprintf(sub, sizeof(sub), "%s/a", dir);
	close(open(sub, O_CREAT | O_WRONLY, 0600));
	snprintf(sub, sizeof(sub), "%s/a/b", dir); /* a is a file */
	cfi = load("first", sub);
	cfi_destroy(cfi);
	assert_int_equal(count_files(), 1);
}

/* Whole directories are made on the way. */
static void test_makes_dirs(void **state)
{
	char sub[96], cmd[160];
	struct cfi *cfi;

	snprintf(sub, sizeof(sub), "%s/x/y/", dir);
	cfi = load("first", sub);
	cfi_destroy(cfi);
	cfi = load("first", sub);
	assert_true(cfi->from_cache);
	cfi_destroy(cfi);
	snprintf(cmd, sizeof(cmd), "rm -r '%s/x'", dir);
	assert_int_equal(system(cmd), 0);
}

static void test_default_dir(void **state)
{
	setenv("YRT_CACHE_DIR", "/a", 1);
	setenv("XDG_CACHE_HOME", "/b", 1);
	assert_string_equal(cfi_default_cache(), "/a");
	unsetenv("YRT_CACHE_DIR");
	assert_string_equal(cfi_default_cache(), "/b/yrt");
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", "/h", 1);
	assert_string_equal(cfi_default_cache(), geteuid() ? "/h/.cache/yrt" : "/var/cache/yrt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(test_keeps, clean),
	        cmocka_unit_test_setup(test_identity, clean),
	        cmocka_unit_test_setup(test_no_id, clean),
	        cmocka_unit_test_setup(test_renamed, clean),
	        cmocka_unit_test_setup(test_corrupt, clean),
	        cmocka_unit_test_setup(test_truncated, clean),
	        cmocka_unit_test_setup(test_forged, clean),
	        cmocka_unit_test_setup(test_permissions, clean),
	        cmocka_unit_test_setup(test_unwritable, clean),
	        cmocka_unit_test_setup(test_makes_dirs, clean),
	        cmocka_unit_test(test_default_dir),
	};
	int failed;

	snprintf(dir, sizeof(dir), "/tmp/yrt-test-cfi-cache.XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	clean(NULL);
	rmdir(dir);
	return failed;
}
