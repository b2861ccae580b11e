/* SPDX-License-Identifier: Apache-2.0 */
#include "go_layout.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LAYOUT go_layout
static const struct layout_field fields[] = {GO_MEMBERS(LAYOUT_MEMBER, LAYOUT_OPTIONAL)};

const struct layout_schema go_layout_schema = {.runtime = "go", LAYOUT_FIELDS(fields)};

unsigned long go_release_minor(const char *release)
{
	return !strncmp(release, "go1.", 4) && isdigit((unsigned char)release[4]) ? strtoul(release + 4, NULL, 10) : 0;
}

/* newest: of the highest series that is known. */
static const struct layout_file *find_series(const struct layout_library *library, const char *release, bool newest)
{
	const struct layout_file *best = NULL;
	unsigned long highest = 0;

	for (u32 i = 0; i < library->n; i++)
		for (u32 k = 0; k < library->files[i]->nversions; k++) {
			unsigned long series = go_release_minor(library->files[i]->versions[k]);

			if (newest ? series > highest : series && series == go_release_minor(release)) {
				best = library->files[i];
				highest = series;
			}
		}
	return best;
}

static struct error *from_library(
        const struct layout_library *library, const char *release, bool newest, struct layout **ret)
{
	const struct layout_file *found = find_series(library, release, newest);
	struct error *err = found ? layout_copy(found->layout, ret) : NULL;

	if (found && !err)
		err = layout_detail(*ret, LAYOUT_LIBRARY, newest ? "%s, the newest" : "%s, by release", found->name);
	return err;
}

static struct error *find_layout(struct image *img, const char *release, bool newest, struct layout **ret)
{
	struct layout_library library;
	struct error *err = layout_library_load(&go_layout_schema, &library);

	*ret = NULL;
	if (err)
		return err;
	err = from_library(&library, release, false, ret);
	if (!err && !*ret)
		err = layout_whole_from_debug(&go_layout_schema, img, "", ret);
	if (!err && !*ret && newest)
		err = from_library(&library, release, true, ret);
	if (!err && !*ret)
		err = error_hint(error_new(ERROR_UNSUPPORTED, "%s was built by %s, whose structures are not known",
		                         img->path, release),
		        "run `yrt layout --runtime go` on a program of that release that is not stripped, and name the "
		        "folder of the "
		        "result in YRT_LAYOUTS");
	layout_library_free(&library);
	return err;
}

struct error *go_layout_find(struct image *img, const char *release, struct layout **ret)
{
	return find_layout(img, release, true, ret);
}

struct error *go_layout_known(struct image *img, const char *release, struct layout **ret)
{
	return find_layout(img, release, false, ret);
}
