/* SPDX-License-Identifier: Apache-2.0 */
#include "demangled.h"

#include <stdlib.h>
#include <xxhash.h>

#include "symbols.h"

struct error *demangled_name(struct demangled_names *names, const char *name, const char **ret)
{
	u64 key = XXH3_64bits(&name, sizeof(name)) | 1;
	const u64 *known;
	struct error *err;
	char *text;

	*ret = name;
	if (!symbol_is_mangled(name))
		return NULL;
	known = table_get(&names->shown, key);
	if (known) {
		*ret = (const char *)(uintptr_t)*known;
		return NULL;
	}
	text = symbol_demangle_whole(name);
	if (!text)
		return &error_no_memory;
	err = table_put(&names->shown, key, (u64)(uintptr_t)text);
	if (err)
		free(text);
	else
		*ret = text;
	return err;
}

void demangled_free(struct demangled_names *names)
{
	for (size_t i = 0; i < names->shown.capacity; i++)
		if (names->shown.entries[i].key)
			free((void *)(uintptr_t)names->shown.entries[i].value);
	table_free(&names->shown);
}
