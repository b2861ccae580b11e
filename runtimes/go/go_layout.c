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
	const struct layout_file *series = find_series(library, release, false),
	                         *found = newest ? find_series(library, release, true) : series;
	struct error *err = found && !(newest && series) ? layout_copy(found->layout, ret) : NULL;

	if (!err && *ret)
		err = layout_detail(*ret, LAYOUT_LIBRARY, newest ? "%s, the newest" : "%s, by release", found->name);
	return err;
}

struct error *go_layout_find(struct image *img, const char *release, enum go_layout_from from, struct layout **ret)
{
	struct layout_library library;
	struct error *err;

	*ret = NULL;
	if (from == GO_LAYOUT_DEBUG)
		return layout_whole_from_debug(&go_layout_schema, img, "", ret);
	err = layout_library_load(&go_layout_schema, &library);
	if (err)
		return err;
	err = from_library(&library, release, from == GO_LAYOUT_NEWEST, ret);
	layout_library_free(&library);
	return err;
}
