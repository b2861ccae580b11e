/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_layout.h"

#include <stddef.h>
#include <string.h>

#include "binary/image.h"

#define SERIES (sizeof("Lua 5.4.") - 1)

#define LAYOUT lua_layout
static const struct layout_field fields[] = {LUA_MEMBERS(LAYOUT_MEMBER, LAYOUT_OPTIONAL)};

const struct layout_schema lua_layout_schema = {.runtime = "lua", LAYOUT_FIELDS(fields)};

/*
 * "Lua 5.4.6": the file of that release, else of the newest release of its series that is known: a series has hardly
 * ever changed a layout in its later releases.
 */
static const struct layout_file *by_release(const struct layout_library *library, const char *release)
{
	const struct layout_file *best = NULL;
	const char *newest = "";

	for (u32 i = 0; i < library->n; i++)
		for (u32 k = 0; k < library->files[i]->nversions; k++) {
			const char *version = library->files[i]->versions[k];

			if (!strcmp(version, release))
				return library->files[i];
			if (!strncmp(version, release, SERIES) && strcmp(version, newest) > 0) {
				best = library->files[i];
				newest = version;
			}
		}
	return best;
}

static struct error *find_by_release(const char *release, struct layout **ret)
{
	const struct layout_file *found;
	struct layout_library library;
	struct error *err = layout_library_load(&lua_layout_schema, &library);

	if (err)
		return err;
	found = by_release(&library, release);
	if (found)
		err = layout_copy(found->layout, ret);
	if (found && !err)
		err = layout_detail(*ret, LAYOUT_LIBRARY, "%s, by release", found->name);
	layout_library_free(&library);
	return err;
}

struct error *lua_layout_find(struct image *img, const char *release, struct layout **ret)
{
	struct error *err;

	*ret = NULL;
	err = layout_whole_from_debug(&lua_layout_schema, img, "", ret);
	if (!err && !*ret)
		err = layout_library_find(&lua_layout_schema, img, NULL, "build-id", ret);
	if (!err && !*ret)
		err = find_by_release(release, ret);
	if (!err && !*ret)
		err = error_hint(
		        error_new(ERROR_UNSUPPORTED, "%s holds \"%s\", whose layout is not known", img->path, release),
		        "its Lua frames are left out; install its debug package, or run `yrt layout` on a build of it "
		        "with -g and "
		        "name the folder of the result in YRT_LAYOUTS");
	return err;
}
