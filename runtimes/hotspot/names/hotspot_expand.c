/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "hotspot_names_state.h"
#include "hotspot_scopes.h"
#include "runtimes/hotspot/layout/hotspot_layout.h"
#include "runtimes/hotspot/memory/hotspot_blocks.h"

/*
 * Prefetches what the expansion of a stack is going to read, for all its nmethods at once. Each step (from nmethod to
 * Method, ConstMethod, ConstantPool, class, and Symbols) is one system call for all of them instead of one for each. It
 * only fills pages; the code that uses them checks their contents.
 */

#define HOTSPOT_PREFETCH_MAX 64

/* Addresses to read; 0: nothing is read there. */
struct step {
	u64 at[HOTSPOT_PREFETCH_MAX];
};

static void fetch(struct hotspot_blocks *b, const struct step *s, u32 n, u32 offset)
{
	u64 at[HOTSPOT_PREFETCH_MAX] = {0};

	for (u32 i = 0; i < n; i++)
		at[i] = s->at[i] ? s->at[i] + offset : 0;
	hotspot_blocks_prefetch(b, at, n);
}

/* The number at an offset of each; 0 where it can not be read. */
static void take(struct hotspot_blocks *b, const struct step *from, u32 n, struct layout_member m, struct step *ret)
{
	for (u32 i = 0; i < n; i++) {
		ret->at[i] = 0;
		if (from->at[i] &&
		        !memory_read(hotspot_blocks_kept(b), &ret->at[i], m.size < 8 ? m.size : 8, from->at[i] + m.at))
			ret->at[i] = 0;
	}
}

/* The pointers at an offset of each. */
static void follow(struct hotspot_blocks *b, const struct step *from, u32 n, struct layout_member m, struct step *ret)
{
	fetch(b, from, n, m.at);
	take(b, from, n, (struct layout_member){m.at, 8}, ret);
}

/* PcDescs, scopes, metadata: behind the code, or in memory of their own. */
static void fetch_tables(const struct hotspot_layout *l, struct hotspot_blocks *b, const struct step *nmethods, u32 n)
{
	const struct layout_member members[] = {l->nm_scopes_data_begin, l->nm_immutable_data, l->blob_mutable_data};

	for (u32 i = 0; i < sizeof(members) / sizeof(*members); i++) {
		struct step at;

		if (!members[i].size)
			continue;
		follow(b, nmethods, n, members[i], &at);
		fetch(b, &at, n, 0);
	}
}

/* A Symbol of the pool, by its index in a member of ConstMethod. */
static void fetch_symbols(const struct hotspot_layout *l, struct hotspot_blocks *b, const struct step *constants,
        const struct step *pools, u32 n, struct layout_member index)
{
	struct step at, symbols;

	take(b, constants, n, index, &at);
	for (u32 i = 0; i < n; i++)
		at.at[i] = at.at[i] && pools->at[i] ? pools->at[i] + l->pool_size.at + 8 * (at.at[i] & 0xffff) : 0;
	follow(b, &at, n, (struct layout_member){0, 8}, &symbols);
	fetch(b, &symbols, n, 0);
}

/* Fills b for these n <= HOTSPOT_PREFETCH_MAX addresses of nmethods. */
static void hotspot_prefetch(const struct hotspot_layout *l, struct hotspot_blocks *b, const u64 *nmethods, u32 n)
{
	struct step first = {{0}}, methods, constants, pools, holders, symbols;

	memcpy(first.at, nmethods, n * sizeof(*nmethods));
	fetch(b, &first, n, 0);
	follow(b, &first, n, l->nm_method, &methods);
	fetch_tables(l, b, &first, n);
	follow(b, &methods, n, l->method_const, &constants);
	follow(b, &constants, n, l->const_pool, &pools);
	follow(b, &pools, n, l->pool_holder, &holders);
	follow(b, &holders, n, l->klass_name, &symbols);
	fetch(b, &symbols, n, 0);
	fetch_symbols(l, b, &constants, &pools, n, l->const_name);
	fetch_symbols(l, b, &constants, &pools, n, l->const_signature);
}

#define HEAD_BYTES   512
#define VERIFIED_MAX (1u << 16)

/* What an offset of an nmethod stands for, innermost first. */
struct site {
	u32 n;
	struct frame frames[];
};

/* The methods at a place, and how many of them, from the root, are certain. */
struct chain {
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	u32 n, certain;
	bool exact; /* the bytecode of the last certain one, too */
};

bool hotspot_names_stands(const struct hotspot_names *n, const struct frame *f, u64 method)
{
	const struct hotspot_layout *l = n->l;
	u32 block = l->block_size.at, id = block + l->nm_compile_id.at, at = block + l->nm_method.at;
	u32 size = id > at ? id + 4 : at + 8, now_id;
	u8 bytes[HEAD_BYTES]; /* of the HeapBlock: length, and whether it is used; then the nmethod */
	u64 now;

	if (size > sizeof(bytes) || !memory_read(hotspot_blocks_direct(n->blocks), bytes, size, frame_addr(f) - block))
		return false;
	memcpy(&now_id, bytes + id, sizeof(now_id));
	memcpy(&now, bytes + at, sizeof(now));
	return bytes[block / 2] && now_id == hotspot_cookie(f) && now == method;
}

/* How far two chains are the same, from the root: deeper methods only if they are called from the same bytecode. */
static void compare(struct chain *c, const struct hotspot_scope *other, u32 n)
{
	u32 least = c->n < n ? c->n : n, same = 0;
	const struct hotspot_scope *a = c->scopes + c->n, *b = other + n;

	while (same < least && (--a)->method == (--b)->method) {
		same++;
		c->exact = a->bci == b->bci;
		if (!c->exact)
			break;
	}
	c->certain = same;
	c->exact = c->exact && same == c->n && same == n;
}

/* At a place that no PcDesc gives exactly: that of the next one, as the JVM does, checked against the one before. */
static void make_near(const struct hotspot_tables *t, const struct hotspot_pc *before, const struct hotspot_pc *after,
        struct chain *c)
{
	struct hotspot_scope other[HOTSPOT_SCOPES_MAX];
	u32 n = before && after ? hotspot_scopes_at(t, before, other) : 0;

	if (after || before)
		c->n = hotspot_scopes_at(t, after ? after : before, c->scopes);
	if (c->n && n)
		compare(c, other, n);
	else
		c->certain = 1;
}

static void make_chain(const struct hotspot_tables *t, u32 offset, bool call, struct chain *c)
{
	const struct hotspot_pc *before, *after;

	hotspot_pcs_around(t, offset, &before, &after);
	c->n = c->certain = 0;
	c->exact = false;
	if (call && after && (u32)after->pc == offset) {
		c->n = c->certain = hotspot_scopes_at(t, after, c->scopes);
		c->exact = true;
	} else {
		make_near(t, before, after, c);
	}
	if (!c->n) {
		c->scopes[0] = (struct hotspot_scope){t->method, HOTSPOT_NO_BCI};
		c->n = c->certain = 1;
		c->exact = true;
	}
}

/* Frame i of the chain, whose last one is the root. */
static bool make_frame(struct hotspot_names *n, struct memory *m, const struct hotspot_tables *t, const struct chain *c,
        u32 i, u32 flags, struct frame *ret)
{
	const struct hotspot_scope *s = &c->scopes[i];
	u32 from_root = c->n - i, marks = i + 1 < c->n ? FRAME_INLINED : 0, cookie;

	if (from_root > c->certain || (from_root == c->certain && !c->exact && flags & EXPAND_LINES))
		marks |= FRAME_APPROX;
	if (!hotspot_names_learn(n, m, s->method, &cookie))
		return false;
	ret->where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, marks, s->method);
	ret->detail = hotspot_method(t->level, s->bci, cookie) | HOTSPOT_CLASSED;
	return true;
}

static struct site *make_site(struct hotspot_names *n, struct memory *m, const struct frame *f,
        const struct hotspot_tables *t, u32 flags, size_t *bytes)
{
	struct chain c;
	struct site *site;

	make_chain(t, hotspot_pc_offset(f), frame_flags(f) & FRAME_RETADDR, &c);
	if (frame_flags(f) & FRAME_APPROX && c.certain == c.n) {
		c.certain--;
		c.exact = true; /* of its caller: that is where it was inlined */
	}
	*bytes = sizeof(*site) + c.n * sizeof(struct frame);
	site = calloc(1, *bytes);
	if (!site)
		return NULL;
	while (site->n < c.n && make_frame(n, m, t, &c, site->n, flags, &site->frames[site->n]))
		site->n++;
	if (site->n == c.n && hotspot_names_stands(n, f, t->method))
		return site;
	free(site);
	return NULL;
}

/* Tables are kept only if a site was made of them. */
static struct site *find_site(
        struct hotspot_names *n, struct memory *m, const struct frame *f, u32 flags, size_t *bytes)
{
	u64 key = hotspot_cache_key(frame_addr(f), hotspot_cookie(f));
	struct hotspot_tables *known = hotspot_cache_get(&n->tables, key), *t = known;
	struct site *site;

	if (!hotspot_names_ready(n, m))
		return NULL;
	if (!known)
		t = hotspot_tables_read(n->l, n->code, m, frame_addr(f), hotspot_cookie(f), n->no_zero);
	site = t ? make_site(n, m, f, t, flags, bytes) : NULL;
	if (!known && site)
		hotspot_cache_put(&n->tables, key, t, t->bytes);
	else if (!known)
		free(t);
	return site;
}

static u64 site_key(const struct frame *f, u32 flags)
{
	return hotspot_cache_key(f->where ^ (u64)(flags & EXPAND_LINES) << 56, f->detail);
}

static bool is_unknown(const struct hotspot_names *n, const struct frame *f, u32 flags)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_HOTSPOT &&
	       hotspot_kind(f) == HOTSPOT_NMETHOD && !hotspot_cache_get(&n->sites, site_key(f, flags));
}

/* Pages for frame i and those behind it, of which all were in use before. */
static struct memory *memory_of(struct hotspot_names *n, const struct frame *frames, u32 i, u32 count, u32 flags)
{
	u64 nmethods[HOTSPOT_PREFETCH_MAX];
	u32 put = 0;

	if (!n->stack || n->stale) {
		hotspot_blocks_renew(n->fresh, hotspot_blocks_direct(n->blocks));
		n->stale = false;
		n->ahead = 0;
	}
	if (n->stack && i >= n->ahead) {
		for (; i < count && put < HOTSPOT_PREFETCH_MAX; i++)
			if (is_unknown(n, &frames[i], flags))
				nmethods[put++] = frame_addr(&frames[i]);
		n->ahead = i;
		if (put > 1)
			hotspot_prefetch(n->l, n->fresh, nmethods, put);
	}
	return hotspot_blocks_kept(n->fresh);
}

static const struct site *site_of(struct hotspot_names *n, const struct frame *frames, u32 i, u32 count, u32 flags)
{
	const struct frame *f = &frames[i];
	u64 key = site_key(f, flags);
	struct site *site = hotspot_cache_get(&n->sites, key);
	size_t bytes;

	if (site)
		return site;
	site = find_site(n, memory_of(n, frames, i, count, flags), f, flags, &bytes);
	return site && hotspot_cache_put(&n->sites, key, site, bytes) ? site : NULL;
}

/* From the kept pages if they give what the JVM itself gave before, else from the JVM: pages are of different times.
 */
static bool read_cookie(struct hotspot_names *n, struct memory *m, const struct frame *f, u32 *ret)
{
	u64 key;

	if (!hotspot_names_classed(n, m, frame_addr(f), hotspot_cookie(f), ret))
		return false;
	if (table_get(&n->verified, hotspot_cache_key(frame_addr(f), *ret)))
		return true;
	if (!hotspot_names_classed(n, hotspot_blocks_direct(n->blocks), frame_addr(f), hotspot_cookie(f), ret))
		return false;
	if (n->verified.used > VERIFIED_MAX)
		table_free(&n->verified);
	key = hotspot_cache_key(frame_addr(f), *ret);
	return table_get(&n->verified, key) || !table_put(&n->verified, key, 1);
}

/* An interpreted method, as the walker pushed it, with a cookie that holds for longer; 0, which names nothing: it is
 * gone. */
static u32 expand_method(struct hotspot_names *n, struct memory *m, const struct frame *f, struct frame *ret)
{
	u32 cookie;

	if (f->detail & HOTSPOT_CLASSED)
		return 0;
	if (!read_cookie(n, m, f, &cookie))
		cookie = 0;
	ret->where = f->where;
	ret->detail = (u32)f->detail | (u64)cookie << 32 | HOTSPOT_CLASSED;
	return 1;
}

/* Is it Continuation.enterSpecial, a native method below which a virtual thread runs? */
static bool enters_virtual_thread(struct hotspot_names *n, struct memory *m, const struct site *site)
{
	struct frame_name name = {.name = ""};

	return site->n == 1 && hotspot_bci(&site->frames[0]) == HOTSPOT_NO_BCI &&
	       hotspot_name_frame(n, m, &site->frames[0], &name) &&
	       !strcmp(name.name, "jdk.internal.vm.Continuation.enterSpecial");
}

u32 hotspot_expand(struct hotspot_names *n, struct memory *m, const struct frame *frames, u32 i, u32 count, u32 flags,
        struct frame *ret, u32 max, u32 *eaten)
{
	const struct site *site = NULL;

	*eaten = 0;
	m = hotspot_blocks_of(n->blocks, m);
	if (hotspot_kind(&frames[i]) == HOTSPOT_METHOD)
		return *eaten = expand_method(n, m, &frames[i], ret);
	if (hotspot_kind(&frames[i]) == HOTSPOT_NMETHOD && max >= RUNTIME_EXPAND_MAX)
		site = site_of(n, frames, i, count, flags);
	if (!site)
		return 0;
	if (!(flags & EXPAND_CARRIERS) && enters_virtual_thread(n, m, site)) {
		*eaten = count - i;
		return 0;
	}
	*eaten = 1;
	if (flags & EXPAND_MERGE) {
		ret[0] = site->frames[site->n - 1];
		return 1;
	}
	memcpy(ret, site->frames, site->n * sizeof(*ret));
	return site->n;
}

static bool is_inlined_at(const struct hotspot_tables *t, const struct hotspot_pc *pc, u64 method)
{
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	u32 n = hotspot_scopes_at(t, pc, scopes);

	for (u32 i = 0; i + 1 < n; i++) /* the last is the root */
		if (scopes[i].method == method)
			return true;
	return false;
}

bool hotspot_has_inlined(struct hotspot_names *n, struct memory *m, u64 nmethod, u64 method, u64 *into)
{
	cleanup(free) struct hotspot_tables *t =
	        hotspot_names_ready(n, m) ? hotspot_tables_read(n->l, n->code, m, nmethod, 0, n->no_zero) : NULL;
	bool named = false;

	for (u32 i = 0; t && i < t->nmetadata && !named; i++)
		named = t->metadata[i] == method;
	*into = t ? t->method : 0;
	for (u32 i = 0; named && i < t->npcs; i++)
		if (is_inlined_at(t, &t->pcs[i], method))
			return true;
	return false;
}
