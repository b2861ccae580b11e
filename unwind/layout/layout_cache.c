/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "cfi/cfi_cache_dir.h"
#include "cleanup.h"
#include "layout.h"

#define VERSION  1 /* raise it when layout_dwarf.c finds something else */
#define TEXT_MAX (1u << 20)

/* The first line: where the layout is from, and what that is for people. */
#define HEAD "# from %u %s\n"

static u64 schema_hash(const struct layout_schema *schema)
{
	u64 hash = VERSION;

	for (u32 i = 0; i < schema->n; i++) {
		const char *name = schema->fields[i].name;

		hash = XXH3_64bits_withSeed(name, strlen(name) + 1, hash * 2 + schema->fields[i].optional);
	}
	return hash;
}

static char *path_of(const struct layout_schema *schema, const struct image *img)
{
	return cache_path(img->cache_dir, img, schema_hash(schema), ".layout");
}

static char *read_text(const char *path, size_t *ret_size)
{
	cleanup(close) int fd = cache_open(path, ret_size);
	cleanup(free) char *text = fd >= 0 && *ret_size < TEXT_MAX ? calloc(1, *ret_size + 1) : NULL;

	if (!text || read(fd, text, *ret_size) != (ssize_t)*ret_size)
		return NULL;
	return TAKE(text);
}

/* What was parsed is of the library, by its word. */
static struct error *restore_source(struct layout *l, enum layout_source source, const char *detail)
{
	for (u32 i = 0; i < l->schema->n; i++)
		if (l->fills[i].source != LAYOUT_UNKNOWN)
			l->fills[i].source = source;
	free(TAKE(l->details[LAYOUT_LIBRARY]));
	return *detail ? layout_detail(l, source, "%s", detail) : NULL;
}

static struct error *parse(
        const struct layout_schema *schema, const char *path, char *text, size_t size, struct layout **ret)
{
	char *newline = strchr(text, '\n');
	struct layout_file *file;
	unsigned int source;
	struct error *err;
	int detail = 0;

	if (!newline || sscanf(text, "# from %u%n", &source, &detail) < 1 || text[detail++] != ' ' ||
	        text + detail > newline || (source != LAYOUT_DWARF && source != LAYOUT_DEBUG_FILE))
		return NULL;
	err = layout_parse(schema, path, text, size, &file);
	if (err || !file) {
		if (err != &error_no_memory)
			error_free(TAKE(err));
		return err;
	}
	*newline = '\0';
	err = restore_source(file->layout, source, text + detail);
	if (!err)
		err = layout_copy(file->layout, ret);
	layout_file_destroy(file);
	return err;
}

struct error *layout_cache_load(const struct layout_schema *schema, const struct image *img, struct layout **ret)
{
	cleanup(free) char *path = path_of(schema, img);
	size_t size;
	cleanup(free) char *text = path ? read_text(path, &size) : NULL;

	return text ? parse(schema, path, text, size, ret) : NULL;
}

/* The one source of all that is known; LAYOUT_UNKNOWN: there are several. */
static enum layout_source source_of(const struct layout *l)
{
	enum layout_source source = LAYOUT_UNKNOWN;

	for (u32 i = 0; i < l->schema->n; i++) {
		enum layout_source own = l->fills[i].source;

		if (own != LAYOUT_UNKNOWN && source != LAYOUT_UNKNOWN && own != source)
			return LAYOUT_UNKNOWN;
		source = own != LAYOUT_UNKNOWN ? own : source;
	}
	return source;
}

void layout_cache_store(const struct image *img, const struct layout *l)
{
	enum layout_source source = source_of(l);
	const char *detail = l->details[source] ? l->details[source] : "";
	cleanup(free) char *path = source != LAYOUT_UNKNOWN && !strchr(detail, '\n') ? path_of(l->schema, img) : NULL;
	cleanup(free) char *text = NULL;
	size_t size;
	FILE *out = path ? open_memstream(&text, &size) : NULL;

	if (!out)
		return;
	fprintf(out, HEAD "runtime %s\n", source, detail, l->schema->runtime);
	layout_print_known(l, out);
	if (!fclose(out))
		cache_put(img->cache_dir, path, text, size);
}
