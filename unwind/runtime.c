/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

#include "search.h"

const struct runtime_ops *const runtimes[] = {
#define RUNTIME(id, name) &name##_runtime,
#include "../runtimes/list.h"
#undef RUNTIME
        NULL,
};

const struct runtime_ops *runtime_by_id(enum runtime_id id)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if ((*r)->id == id)
			return *r;
	return NULL;
}

const struct mapping *mapping_find(const struct mapping *mappings, u32 n, u64 addr)
{
	u32 at = SEARCH(n, k, addr >= mappings[k].end);

	return at < n && addr >= mappings[at].start ? &mappings[at] : NULL;
}
