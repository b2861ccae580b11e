/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "grow.h"

#define DIRECTORY     "YRT_LAYOUTS"
#define DIRECTORY_MAX 1024       /* files that are looked at */
#define TEXT_MAX      (1u << 20) /* bytes of one */

static struct error *add(struct layout_library *library, struct layout_file *file)
{
	struct error *err = grow(&library->files, library->n, sizeof(*library->files));

	if (err)
		layout_file_destroy(file);
	else
		library->files[library->n++] = file;
	return err;
}

static struct error *add_text(const struct layout_schema *schema, struct layout_library *library, const char *name,
        const char *text, size_t size)
{
	struct layout_file *file;
	struct error *err = layout_parse(schema, name, text, size, &file);

	return err || !file ? err : add(library, file);
}

static struct error *add_path(const struct layout_schema *schema, struct layout_library *library, const char *path)
{
	cleanup(fclose) FILE *in = fopen(path, "re");
	cleanup(free) char *text = malloc(TEXT_MAX + 1);
	size_t size;

	if (!in)
		return error_hint(error_errno(errno, "%s", path), DIRECTORY " names its directory");
	if (!text)
		return &error_no_memory;
	size = fread(text, 1, TEXT_MAX + 1, in);
	if (ferror(in))
		return error_hint(error_errno(errno, "%s", path), DIRECTORY " names its directory");
	return add_text(schema, library, path, text, size);
}

static int is_layout(const struct dirent *entry)
{
	static const char suffix[] = ".layout";
	size_t len = strlen(entry->d_name);

	return len >= sizeof(suffix) && !strcmp(entry->d_name + len - (sizeof(suffix) - 1), suffix);
}

static struct error *add_directory(const struct layout_schema *schema, struct layout_library *library, const char *dir)
{
	struct dirent **entries;
	struct error *err = NULL;
	int n = scandir(dir, &entries, is_layout, alphasort);

	if (n < 0)
		return error_hint(error_errno(errno, "%s", dir), DIRECTORY " names this directory of layouts");
	for (int i = 0; i < n; i++) {
		char *path = NULL;

		if (!err && i < DIRECTORY_MAX) {
			err = asprintf(&path, "%s/%s", dir, entries[i]->d_name) < 0 ? &error_no_memory
			                                                            : add_path(schema, library, path);
			free(path);
		}
		free(entries[i]);
	}
	free(entries);
	return err;
}

struct error *layout_library_load(const struct layout_schema *schema, struct layout_library *ret)
{
	const char *dir = getenv(DIRECTORY);
	struct layout_library library = {0};
	struct error *err = dir && *dir ? add_directory(schema, &library, dir) : NULL;

	for (u32 i = 0; !err && i < layout_embedded_count; i++) {
		const struct layout_embedded *e = &layout_embedded[i];

		if (!strcmp(e->runtime, schema->runtime))
			err = add_text(schema, &library, e->name, e->text, strlen(e->text));
	}
	if (err)
		layout_library_free(&library);
	else
		*ret = library;
	return err;
}

void layout_library_free(struct layout_library *library)
{
	for (u32 i = 0; i < library->n; i++)
		layout_file_destroy(library->files[i]);
	free(library->files);
	*library = (struct layout_library){0};
}

static bool has_version(const struct layout_file *file, const char *version)
{
	for (u32 i = 0; i < file->nversions; i++)
		if (!strcmp(file->versions[i], version))
			return true;
	return false;
}

struct error *layout_library_find(const struct layout_schema *schema, const struct image *img, const char *version,
        const char *how, struct layout **ret)
{
	const struct layout_file *found = NULL;
	struct layout_library library;
	struct error *err = layout_library_load(schema, &library);

	if (err)
		return err;
	for (u32 i = 0; i < library.n && !found; i++)
		if (version ? has_version(library.files[i], version) : layout_file_has_build_id(library.files[i], img))
			found = library.files[i];
	if (found)
		err = layout_copy(found->layout, ret);
	if (found && !err)
		err = layout_detail(*ret, LAYOUT_LIBRARY, "%s, by %s", found->name, how);
	layout_library_free(&library);
	return err;
}
