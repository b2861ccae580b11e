/* SPDX-License-Identifier: Apache-2.0 */
#include "alternate.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "binary/root.h"
#include "cleanup.h"

#define PATH_ROOM 4096

struct alternate {
	char name[PATH_ROOM];
	const u8 *id;
	u64 id_len;
};

/* A name, its final zero, and a build-id. */
static bool read_link(struct image *img, struct alternate *ret)
{
	Elf_Data *data = image_section(img, ".gnu_debugaltlink", NULL);
	size_t len = data ? strnlen(data->d_buf, data->d_size) : 0;

	if (!len || len >= sizeof(ret->name) || len + 1 >= data->d_size || data->d_size - len - 1 > BUILD_ID_MAX)
		return false;
	memcpy(ret->name, data->d_buf, len + 1);
	ret->id = (const u8 *)data->d_buf + len + 1;
	ret->id_len = data->d_size - len - 1;
	return true;
}

static struct error *try_path(struct dwarf_file *f, const struct alternate *a, int root, const char *path)
{
	int fd = f->alternate ? -1 : root_open_file(root, path, 0);
	struct image *img;
	struct error *err;

	if (fd < 0)
		return NULL;
	err = image_open_sections(fd, path, &img);
	if (err) {
		if (err == &error_no_memory)
			return err;
		error_free(err);
		return NULL;
	}
	if (img->build_id_len == a->id_len && !memcmp(img->build_id, a->id, a->id_len))
		err = dwarf_open(img, &f->alternate);
	image_put(img);
	return err;
}

/* Relative to the directory of the debug file. Empty: too long. */
static void by_name(const struct dwarf_file *f, const struct alternate *a, char *path)
{
	const char *own = f->img->path, *slash = strrchr(own, '/');
	int dir = a->name[0] != '/' && slash ? slash - own + 1 : 0;

	if (snprintf(path, PATH_ROOM, "%.*s%s", dir, own, a->name) >= PATH_ROOM)
		path[0] = 0;
}

static void by_id(const struct alternate *a, char *path)
{
	int n = snprintf(path, PATH_ROOM, "/usr/lib/debug/.build-id/%02x/", a->id[0]);

	for (u32 i = 1; i < a->id_len && n < PATH_ROOM - 8; i++)
		n += snprintf(path + n, PATH_ROOM - n, "%02x", a->id[i]);
	if (n < PATH_ROOM - 8)
		strcpy(path + n, ".debug");
}

/* Does the debug file itself lie within root? Then its word is an untrusted one, and counts only there. */
static bool lies_within(const struct dwarf_file *f, int root)
{
	cleanup(close) int fd = root_open_file(root, f->img->path, 0);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_dev == f->img->dev && st.st_ino == f->img->ino;
}

struct error *dwarf_open_alternate(struct dwarf_file *f, const char *root)
{
	cleanup(close) int within = root_open(root);
	int roots[] = {within, -1}, own;
	struct error *err = NULL;
	struct alternate a;
	char path[PATH_ROOM];

	if (!read_link(f->img, &a))
		return NULL;
	own = within >= 0 && lies_within(f, within) ? within : -1;
	by_name(f, &a, path);
	err = try_path(f, &a, own, path);
	by_id(&a, path);
	for (u32 i = within < 0; i < 2 && !err; i++)
		err = try_path(f, &a, roots[i], path);
	return err;
}
