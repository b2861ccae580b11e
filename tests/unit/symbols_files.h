/* SPDX-License-Identifier: Apache-2.0 */
/* Small files that tests of symbols make with the compiler and binutils, in a directory of their own. */
#ifndef YRT_SYMBOLS_FILES_H
#define YRT_SYMBOLS_FILES_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "work_dir.h"
#include "unwind/symbols/symbols.h"

static inline struct image *open_unloaded(const char *name)
{
	struct image *img = NULL;
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_null(image_open(fd, path, &img));
	return img;
}

static inline struct image *open_image(const char *name, const char *root)
{
	struct image *img = open_unloaded(name);

	assert_null(symbols_load(img, root));
	assert_null(symbols_load(img, root));
	return img;
}

static const char *name_at(struct image *img, u64 addr)
{
	struct symbol sym;

	if (!symbols_find(img, addr, &sym))
		return "?";
	assert_true(sym.start <= addr && addr < sym.end);
	return sym.name;
}

static inline u64 address_of(struct image *img, const char *name)
{
	struct symbol sym;

	if (!symbols_lookup(img, name, &sym))
		fail_msg("%s is not there", name);
	assert_string_equal(sym.name, name);
	return sym.start;
}

static inline void *read_whole(const char *name, size_t *ret_size)
{
	char path[256];
	struct stat st;
	FILE *f;
	void *bytes;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	bytes = malloc(st.st_size);
	assert_int_equal(fread(bytes, 1, st.st_size, f), st.st_size);
	fclose(f);
	*ret_size = st.st_size;
	return bytes;
}

#endif
