/* SPDX-License-Identifier: Apache-2.0 */
#include "alternate.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

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

static struct error *try_path(struct dwarf_file *f, const struct alternate *a, const char *path)
{
	int fd = f->alternate ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
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

/* Relative to the directory of the debug file, which is a path of the host or of the root. Empty: too long. */
static void by_name(const struct dwarf_file *f, const struct alternate *a, const char *root, char *path)
{
	const char *own = f->img->path, *slash = strrchr(own, '/');
	int dir = a->name[0] != '/' && slash ? slash - own + 1 : 0;

	if (snprintf(path, PATH_ROOM, "%s%.*s%s", dir || a->name[0] == '/' ? root : "", dir, own, a->name) >= PATH_ROOM)
		path[0] = 0;
}

static void by_id(const struct alternate *a, const char *root, char *path)
{
	int n = snprintf(path, PATH_ROOM, "%s/usr/lib/debug/.build-id/%02x/", root, a->id[0]);

	for (u32 i = 1; i < a->id_len && n < PATH_ROOM - 8; i++)
		n += snprintf(path + n, PATH_ROOM - n, "%02x", a->id[i]);
	if (n < PATH_ROOM - 8)
		strcpy(path + n, ".debug");
}

struct error *dwarf_open_alternate(struct dwarf_file *f, const char *root)
{
	const char *roots[] = {root, ""};
	struct error *err = NULL;
	struct alternate a;
	char path[PATH_ROOM];

	if (!read_link(f->img, &a))
		return NULL;
	for (u32 i = *root ? 0 : 1; i < 2 && !err; i++) {
		by_name(f, &a, roots[i], path);
		err = try_path(f, &a, path);
		if (err)
			break;
		by_id(&a, roots[i], path);
		err = try_path(f, &a, path);
	}
	return err;
}
