/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of an nmethod, scopes and line numbers of any content: the input is a byte of choices, then PcDescs, scopes
 * and metadata. What is found must be bounded; a chain ends with the method that was compiled.
 */
#include "runtimes/hotspot/names/hotspot_lines.h"
#include "runtimes/hotspot/names/hotspot_scopes.h"

#include <stdlib.h>
#include <string.h>

#define PCS_MAX 64
#define METHODS 4

static void must(bool so)
{
	if (!so)
		abort();
}

static void check_chain(const struct hotspot_tables *t, const struct hotspot_pc *pc)
{
	static struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	u32 n = hotspot_scopes_at(t, pc, scopes);

	must(n <= HOTSPOT_SCOPES_MAX);
	for (u32 i = 0; i < n; i++)
		must(scopes[i].method && scopes[i].bci <= HOTSPOT_NO_BCI);
	if (n)
		must(scopes[n - 1].method == t->method);
}

static void check_around(const struct hotspot_tables *t, u32 offset)
{
	const struct hotspot_pc *before, *after;

	hotspot_pcs_around(t, offset, &before, &after);
	if (before) {
		must(before >= t->pcs && before < t->pcs + t->npcs);
		check_chain(t, before);
	}
	if (after) {
		must(after >= t->pcs && after < t->pcs + t->npcs);
		check_chain(t, after);
	}
}

static void check_lines(const u8 *data, u32 size, bool no_zero)
{
	u32 used = hotspot_lines_size(data, size, no_zero);

	must(used <= size);
	for (u32 bci = 0; bci < 64; bci++)
		hotspot_line(data, size, no_zero, bci);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u64 metadata[METHODS] = {0x1000, 0x2000, 0, 0x3001};
	struct hotspot_pc pcs[PCS_MAX];
	struct hotspot_tables t = {.method = 0x1000, .pcs = pcs, .metadata = metadata, .nmetadata = METHODS};
	u32 n;

	if (size < 2)
		return 0;
	t.no_zero = data[0] & 1;
	check_lines(data + 1, (u32)size - 1, t.no_zero);
	n = data[1] % PCS_MAX;
	data += 2;
	size -= 2;
	if (size < n * sizeof(*pcs))
		return 0;
	memcpy(pcs, data, n * sizeof(*pcs));
	t.npcs = n;
	t.scopes = data + n * sizeof(*pcs);
	t.nscopes = (u32)(size - n * sizeof(*pcs));
	for (u32 i = 0; i < n; i++)
		check_around(&t, (u32)pcs[i].pc);
	check_around(&t, 0);
	return 0;
}
