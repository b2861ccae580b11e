/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_scopes.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "hotspot_unsigned5.h"
#include "search.h"

#define PCS_BYTES_MAX      (4u << 20)
#define SCOPES_BYTES_MAX   (4u << 20)
#define METADATA_BYTES_MAX (1u << 20)
#define PC_DESC_MAX        64
#define SENTINEL_FIRST     (-1)

static bool is_sound(const struct hotspot_layout *l, const struct hotspot_nmethod *nm)
{
	u32 size = l->pc_desc_size.at;

	return size >= 8 && size <= PC_DESC_MAX && l->pc_desc_pc.at + 4u <= size && l->pc_desc_scope.at + 4u <= size &&
	       nm->pcs_end - nm->pcs <= PCS_BYTES_MAX && nm->scopes_end - nm->scopes <= SCOPES_BYTES_MAX &&
	       nm->metadata_end - nm->metadata <= METADATA_BYTES_MAX;
}

/* PcDescs to ret, without what is none. False: they are not in order. */
static bool parse_pcs(const struct hotspot_layout *l, const u8 *bytes, u32 n, struct hotspot_pc *ret, u32 *nret)
{
	s32 last = SENTINEL_FIRST;

	*nret = 0;
	for (u32 i = 0; i < n; i++, bytes += l->pc_desc_size.at) {
		struct hotspot_pc pc;

		memcpy(&pc.pc, bytes + l->pc_desc_pc.at, sizeof(pc.pc));
		memcpy(&pc.scope, bytes + l->pc_desc_scope.at, sizeof(pc.scope));
		if (pc.pc == SENTINEL_FIRST || (i + 1 == n && !pc.scope))
			continue; /* a sentinel */
		if (pc.pc <= last)
			return false;
		last = pc.pc;
		ret[(*nret)++] = pc;
	}
	return true;
}

/* In one block: the tables, metadata, PcDescs as they are used, scopes. */
static struct hotspot_tables *lay_out(const struct hotspot_nmethod *nm, u32 npcs)
{
	u32 nscopes = (u32)(nm->scopes_end - nm->scopes), nmetadata = (u32)(nm->metadata_end - nm->metadata) / 8;
	u32 bytes = (u32)(sizeof(struct hotspot_tables) + nmetadata * 8 + npcs * sizeof(struct hotspot_pc) + nscopes);
	struct hotspot_tables *t = malloc(bytes);

	if (!t)
		return NULL;
	*t = (struct hotspot_tables){
	        .method = nm->method, .level = nm->level, .bytes = bytes, .nscopes = nscopes, .nmetadata = nmetadata};
	t->metadata = (u64 *)(t + 1);
	t->pcs = (struct hotspot_pc *)(t->metadata + nmetadata);
	t->scopes = (u8 *)(t->pcs + npcs);
	return t;
}

static bool read_tables(const struct hotspot_layout *l, struct memory *m, const struct hotspot_nmethod *nm,
        struct hotspot_tables *t, u8 *descs, u32 n)
{
	if (n && (!memory_read(m, descs, (size_t)n * l->pc_desc_size.at, nm->pcs) ||
	                 !parse_pcs(l, descs, n, (struct hotspot_pc *)t->pcs, &t->npcs)))
		return false;
	return (!t->nscopes || memory_read(m, (u8 *)t->scopes, t->nscopes, nm->scopes)) &&
	       (!t->nmetadata || memory_read(m, (u64 *)t->metadata, 8ul * t->nmetadata, nm->metadata));
}

struct hotspot_tables *hotspot_tables_read(const struct hotspot_layout *l, const struct hotspot_code *c,
        struct memory *m, u64 nmethod, u32 compile_id, bool no_zero)
{
	struct hotspot_nmethod nm;
	struct hotspot_tables *t;
	cleanup(free) u8 *descs = NULL;
	u32 n;

	if (!hotspot_nmethod_read(c, m, nmethod, compile_id, &nm) || !is_sound(l, &nm))
		return NULL;
	n = (u32)(nm.pcs_end - nm.pcs) / l->pc_desc_size.at;
	descs = malloc((size_t)n * l->pc_desc_size.at + 1);
	t = descs ? lay_out(&nm, n) : NULL;
	if (!t)
		return NULL;
	t->no_zero = no_zero;
	if (read_tables(l, m, &nm, t, descs, n))
		return t;
	free(t);
	return NULL;
}

/* The scope at an offset, and where the one is that it was inlined into. */
static bool read_scope(const struct hotspot_tables *t, u32 offset, struct hotspot_scope *ret, u32 *sender)
{
	struct hotspot_stream s = {.at = t->scopes + offset, .end = t->scopes + t->nscopes, .no_zero = t->no_zero};
	u32 index, bci;

	*sender = hotspot_read_uint(&s);
	index = hotspot_read_uint(&s);
	bci = hotspot_read_uint(&s);
	if (s.broken || !index || index > t->nmetadata || *sender >= offset)
		return false;
	ret->method = t->metadata[index - 1];
	ret->bci = bci ? bci - 1 : 0; /* counted from -1, which is the entry */
	if (ret->bci > HOTSPOT_NO_BCI)
		ret->bci = HOTSPOT_NO_BCI;
	return ret->method && !(ret->method & 7);
}

u32 hotspot_scopes_at(
        const struct hotspot_tables *t, const struct hotspot_pc *pc, struct hotspot_scope ret[HOTSPOT_SCOPES_MAX])
{
	u32 offset = (u32)pc->scope, n = 0;

	if (!offset) {
		ret[0] = (struct hotspot_scope){t->method, HOTSPOT_NO_BCI};
		return 1;
	}
	while (offset) {
		if (n == HOTSPOT_SCOPES_MAX || offset >= t->nscopes || !read_scope(t, offset, &ret[n++], &offset))
			return 0;
	}
	return ret[n - 1].method == t->method ? n : 0;
}

void hotspot_pcs_around(
        const struct hotspot_tables *t, u32 offset, const struct hotspot_pc **before, const struct hotspot_pc **after)
{
	u32 at = SEARCH(t->npcs, k, (u32)t->pcs[k].pc < offset);

	*before = at ? &t->pcs[at - 1] : NULL;
	*after = at < t->npcs ? &t->pcs[at] : NULL;
}
