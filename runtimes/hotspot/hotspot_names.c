/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hotspot_names {
	const struct hotspot_code *code;
};

struct error *hotspot_names_create(const struct vmstructs *v, const struct hotspot_layout *l,
        const struct hotspot_code *code, struct hotspot_names **ret)
{
	*ret = malloc(sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	(*ret)->code = code;
	return NULL;
}

void hotspot_names_destroy(struct hotspot_names *n)
{
	free(n);
}

/* Code of any kind by the name of its blob. */
bool hotspot_name_frame(struct hotspot_names *n, struct memory *m, const struct frame *f, struct frame_name *ret)
{
	struct hotspot_blob blob;

	if (hotspot_kind(f) != HOTSPOT_STUB || !hotspot_blob_at(n->code, m, frame_addr(f), &blob))
		return false;
	memset(ret, 0, sizeof(*ret));
	snprintf(ret->name, sizeof(ret->name), "%s", blob.name);
	ret->identity = blob.at;
	return true;
}

u32 hotspot_expand(struct hotspot_names *n, struct memory *m, const struct frame *frames, u32 i, u32 count, u32 flags,
        struct frame *ret, u32 max, u32 *eaten)
{
	*eaten = 0;
	return 0;
}
