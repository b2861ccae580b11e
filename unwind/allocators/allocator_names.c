/* SPDX-License-Identifier: Apache-2.0 */
#include "allocator_names.h"

#include <string.h>

#include "symbols/symbols.h"

/* glibc before musl: programs that are linked with it statically have __libc_start_main(), too. */
const struct allocator_name allocator_names[] = {
        {"jemalloc", "libjemalloc", {"mallctl", "je_mallctl", "_rjem_mallctl"}},
        {"mimalloc", "libmimalloc", {"mi_malloc", "mi_malloc_aligned", "mi_version"}},
        {"tcmalloc", NULL, {"MallocExtension_Internal_GetStats", "MallocExtension_Internal_GetNumericProperty"}},
        {"tcmalloc (gperftools)", "libtcmalloc", {"tc_malloc"}},
        {"snmalloc", "libsnmalloc", {"sn_malloc"}},
        {"glibc", NULL, {"_IO_2_1_stdout_"}},
        {"musl", "ld-musl-", {"__malloc_donate", "__libc_start_main"}},
        {0},
};

const struct allocator_name *allocator_of_image(struct image *img)
{
	struct symbol sym;

	for (const struct allocator_name *a = allocator_names; a->name; a++)
		for (int i = 0; i < ALLOCATOR_SYMBOLS && a->symbols[i]; i++)
			if (symbols_lookup(img, a->symbols[i], &sym))
				return a;
	return NULL;
}

const struct allocator_name *allocator_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (const struct allocator_name *a = allocator_names; a->name; a++)
		if (a->library && !strncmp(name, a->library, strlen(a->library)))
			return a;
	return NULL;
}
