/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <xxhash.h>

#include "cfi/cfi_search_cache.h"
#include "perl_image.h"

#define NAME_SIZE 48
#define PART_BITS 8

/* What precedes the sites, in words of the cache. */
enum { AT_NXS, AT_NENTRIES, AT_CATCHES, AT_PUSHES, AT_ENTRIES, AT_SITES = AT_ENTRIES + PERL_ENTRIES_MAX };
_Static_assert(SEARCH_RESULT_MAX >= AT_SITES + 2 * PERL_SITES_MAX, "all fit");

static void name_search(const struct perl_layout *l, char *ret)
{
	snprintf(ret, NAME_SIZE, "perl code 1 %016lx", (u64)XXH3_64bits(l, sizeof(*l)));
}

bool perl_code_load(struct image *img, const struct perl_layout *l, struct perl_code *ret)
{
	struct search_result found;
	struct perl_code code = {0};
	char name[NAME_SIZE];

	name_search(l, name);
	if (!search_cache_load(img, name, &found) || found.n < AT_SITES || (found.n - AT_SITES) % 2 ||
	        (found.n - AT_SITES) / 2 > PERL_SITES_MAX || found.values[AT_NENTRIES] > PERL_ENTRIES_MAX)
		return false;
	code.n = (found.n - AT_SITES) / 2;
	code.nxs = (u32)found.values[AT_NXS];
	code.nentries = (u32)found.values[AT_NENTRIES];
	code.catches = found.values[AT_CATCHES];
	code.pushes = found.values[AT_PUSHES];
	for (u32 i = 0; i < code.nentries; i++) {
		code.entries[i] = found.values[AT_ENTRIES + i];
		if (!image_has_code(img, code.entries[i], code.entries[i]))
			return false;
	}
	for (u32 i = 0; i < code.n; i++) {
		u64 start = found.values[AT_SITES + 2 * i], word = found.values[AT_SITES + 2 * i + 1];

		code.sites[i] = (struct perl_site){start, start + (word >> PART_BITS), (u8)word};
		if (!image_has_code(img, start, code.sites[i].end))
			return false;
	}
	*ret = code;
	return true;
}

void perl_code_store(struct image *img, const struct perl_layout *l, const struct perl_code *code)
{
	struct search_result found = {.n = AT_SITES + 2 * code->n};
	char name[NAME_SIZE];

	found.values[AT_NXS] = code->nxs;
	found.values[AT_NENTRIES] = code->nentries;
	found.values[AT_CATCHES] = code->catches;
	found.values[AT_PUSHES] = code->pushes;
	for (u32 i = 0; i < code->nentries; i++)
		found.values[AT_ENTRIES + i] = code->entries[i];
	for (u32 i = 0; i < code->n; i++) {
		const struct perl_site *s = &code->sites[i];

		found.values[AT_SITES + 2 * i] = s->start;
		found.values[AT_SITES + 2 * i + 1] = (s->end - s->start) << PART_BITS | s->part;
	}
	name_search(l, name);
	search_cache_store(img, name, &found);
}
