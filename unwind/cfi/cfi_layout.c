/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cfi_internal.h"

#define RULES_MAX  (1u << 24) /* a row has 24 bits for its rule */
#define ROWS_MAX   (CFI_PIECE_MAX / sizeof(u32))
#define PAGES_MAX  (CFI_PIECE_MAX / sizeof(u16))
#define LOCALS_MAX (CFI_PIECE_MAX / sizeof(struct cfi_rule))

/* The piece being made. Its rules are numbers into all rules. */
struct piece {
	u64 start;
	u32 npages, nrows, nrules;
	u16 index[PAGES_MAX];
	u32 rows[ROWS_MAX];
	u32 rules[LOCALS_MAX];
};

struct page_row {
	u32 rule;
	u32 offset;
};

struct cfi_layout {
	u64 seed; /* of the hash: a file cannot choose rules that collide */
	/* all rules, each once */
	struct cfi_rule *rules;
	u32 nrules, rules_room;
	u32 *hash;     /* rule + 1; 0: free; as many as twice rules_room */
	u32 *in_piece; /* per rule: the number of the last piece that uses it … */
	u32 *local;    /* … and its number there */

	bool open;
	u32 rule; /* that holds now */
	u64 page; /* address of the page being made */
	u32 nrows;
	struct page_row row[CFI_PAGE_SIZE];

	struct cfi_blob_piece *pieces; /* finished; offsets into bytes */
	u32 npieces, pieces_room;
	u8 *bytes;
	size_t size, room;
	struct piece piece;
};

static u64 rule_hash(u64 seed, const struct cfi_rule *rule)
{
	u64 word[4], hash = seed;

	memcpy(word, rule, sizeof(word));
	for (u32 i = 0; i < 4; i++) {
		hash = (hash ^ word[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 32;
	}
	return hash;
}

static u32 *rule_bucket(const struct cfi_layout *l, const struct cfi_rule *rule)
{
	u32 mask = l->rules_room * 2 - 1;

	for (u32 i = (u32)rule_hash(l->seed, rule);; i++) {
		u32 *bucket = &l->hash[i & mask];

		if (!*bucket || !memcmp(&l->rules[*bucket - 1], rule, sizeof(*rule)))
			return bucket;
	}
}

static bool resize(void *array, size_t n, size_t size)
{
	void *grown = reallocarray(*(void **)array, n, size);

	if (grown)
		*(void **)array = grown;
	return grown;
}

static struct error *rules_grow(struct cfi_layout *l)
{
	u32 room = l->rules_room ? l->rules_room * 2 : 1024;

	if (room > RULES_MAX || !resize(&l->rules, room, sizeof(*l->rules)) ||
	        !resize(&l->in_piece, room, sizeof(*l->in_piece)) || !resize(&l->local, room, sizeof(*l->local)) ||
	        !resize(&l->hash, room * 2, sizeof(*l->hash)))
		return &error_no_memory;
	l->rules_room = room;
	memset(l->hash, 0, room * 2 * sizeof(*l->hash));
	for (u32 i = 0; i < l->nrules; i++)
		*rule_bucket(l, &l->rules[i]) = i + 1;
	return NULL;
}

static struct error *intern(struct cfi_layout *l, const struct cfi_rule *rule, u32 *ret)
{
	struct error *err = l->nrules == l->rules_room ? rules_grow(l) : NULL;
	u32 *bucket;

	if (err)
		return err;
	bucket = rule_bucket(l, rule);
	if (!*bucket) {
		l->rules[l->nrules] = *rule;
		l->in_piece[l->nrules] = 0;
		*bucket = ++l->nrules;
	}
	*ret = *bucket - 1;
	return NULL;
}

/* What a table of these numbers looks like; its head is filled, its size returned. */
static u32 table_shape(u32 npages, u32 nrows, u32 nrules, struct cfi_table *ret)
{
	ret->npages = npages;
	ret->nrows = nrows;
	ret->nrules = nrules;
	ret->index = sizeof(*ret);
	ret->rows = (ret->index + (npages + 1) * (u32)sizeof(u16) + 3) & ~3u;
	ret->rules = (ret->rows + nrows * (u32)sizeof(u32) + 7) & ~7u;
	return ret->rules + nrules * (u32)sizeof(struct cfi_rule);
}

u32 cfi_table_size(u32 npages, u32 nrows, u32 nrules, struct cfi_table *ret)
{
	if (npages >= PAGES_MAX || nrows > ROWS_MAX || nrules > LOCALS_MAX)
		return UINT32_MAX;
	return table_shape(npages, nrows, nrules, ret);
}

static struct error *bytes_reserve(struct cfi_layout *l, size_t size)
{
	size_t room = l->room ? l->room : ARENA_SLAB_SIZE;

	while (room - l->size < size)
		room *= 2;
	if (room != l->room && !resize(&l->bytes, room, 1))
		return &error_no_memory;
	l->room = room;
	return NULL;
}

static void write_table(const struct cfi_layout *l, const struct cfi_table *table, u8 *to, u32 size)
{
	const struct piece *p = &l->piece;
	struct cfi_rule *rules = (struct cfi_rule *)(to + table->rules);

	memset(to, 0, size);
	memcpy(to, table, sizeof(*table));
	memcpy(to + table->index, p->index, (p->npages + 1) * sizeof(u16));
	memcpy(to + table->rows, p->rows, p->nrows * sizeof(u32));
	for (u32 i = 0; i < p->nrules; i++)
		rules[i] = l->rules[p->rules[i]];
}

static struct error *piece_finish(struct cfi_layout *l, u64 end)
{
	struct piece *p = &l->piece;
	struct cfi_table table;
	u32 size = table_shape(p->npages, p->nrows, p->nrules, &table);
	struct error *err = bytes_reserve(l, size);

	if (err)
		return err;
	if (l->npieces == l->pieces_room) {
		if (!resize(&l->pieces, l->pieces_room ? l->pieces_room * 2 : 16, sizeof(*l->pieces)))
			return &error_no_memory;
		l->pieces_room = l->pieces_room ? l->pieces_room * 2 : 16;
	}
	p->index[p->npages] = (u16)p->nrows;
	write_table(l, &table, l->bytes + l->size, size);
	l->pieces[l->npieces++] = (struct cfi_blob_piece){p->start, end, l->size, size};
	l->size += size; /* a multiple of 8 */
	return NULL;
}

static void piece_start(struct cfi_layout *l, u64 start)
{
	l->piece.start = start;
	l->piece.npages = l->piece.nrows = l->piece.nrules = 0;
}

/* The number of a rule in the piece being made. Pieces count from 1. */
static u32 localize(struct cfi_layout *l, u32 rule)
{
	if (l->in_piece[rule] != l->npieces + 1) {
		l->in_piece[rule] = l->npieces + 1;
		l->local[rule] = l->piece.nrules;
		l->piece.rules[l->piece.nrules++] = rule;
	}
	return l->local[rule];
}

/* Would the page fit into the piece? Counts a rule that the page brings twice as two: a bound is enough. */
static bool page_fits(const struct cfi_layout *l)
{
	const struct piece *p = &l->piece;
	struct cfi_table table;
	u32 added = 0;

	for (u32 i = 0; i < l->nrows; i++)
		added += l->in_piece[l->row[i].rule] != l->npieces + 1;
	return cfi_table_size(p->npages + 1, p->nrows + l->nrows, p->nrules + added, &table) <= CFI_PIECE_MAX;
}

static struct error *page_finish(struct cfi_layout *l)
{
	struct piece *p = &l->piece;
	struct error *err;

	if (!page_fits(l)) {
		err = piece_finish(l, l->page);
		if (err)
			return err;
		piece_start(l, l->page);
	}
	p->index[p->npages++] = (u16)p->nrows;
	for (u32 i = 0; i < l->nrows; i++)
		p->rows[p->nrows++] = cfi_row(localize(l, l->row[i].rule), l->row[i].offset);
	return NULL;
}

static void page_start(struct cfi_layout *l, u64 page)
{
	l->page = page;
	l->nrows = 1;
	l->row[0] = (struct page_row){l->rule, 0};
}

/* Finishes pages until the one of addr. */
static struct error *move_to_page(struct cfi_layout *l, u64 addr)
{
	while (addr - l->page >= CFI_PAGE_SIZE) {
		struct error *err = page_finish(l);

		if (err)
			return err;
		page_start(l, l->page + CFI_PAGE_SIZE);
	}
	return NULL;
}

static void page_put(struct cfi_layout *l, u32 rule, u32 offset)
{
	struct page_row *last = &l->row[l->nrows - 1];

	l->rule = rule;
	if (last->offset == offset && l->nrows > 1 && last[-1].rule == rule)
		l->nrows--;
	else if (last->offset == offset)
		last->rule = rule;
	else if (last->rule != rule)
		l->row[l->nrows++] = (struct page_row){rule, offset};
}

static struct error *open_piece(struct cfi_layout *l, u64 addr)
{
	const struct cfi_rule none = cfi_bare_rule(CFI_NONE);
	struct error *err = intern(l, &none, &l->rule);

	if (err)
		return err;
	l->open = true;
	addr &= ~(u64)(CFI_PAGE_SIZE - 1);
	piece_start(l, addr);
	page_start(l, addr);
	return NULL;
}

struct error *cfi_layout_row(struct cfi_layout *l, u64 addr, const struct cfi_rule *rule)
{
	struct error *err = l->open ? NULL : open_piece(l, addr);
	u32 number;

	if (!err)
		err = intern(l, rule, &number);
	if (!err)
		err = move_to_page(l, addr);
	if (!err)
		page_put(l, number, (u32)(addr - l->page));
	return err;
}

struct error *cfi_layout_end(struct cfi_layout *l, u64 addr)
{
	struct error *err;

	if (!l->open)
		return NULL;
	l->open = false;
	err = move_to_page(l, addr - 1);
	if (!err)
		err = page_finish(l);
	return err ? err : piece_finish(l, addr);
}

struct error *cfi_layout_create(struct cfi_layout **ret)
{
	struct cfi_layout *l = calloc(1, sizeof(*l));

	if (!l)
		return &error_no_memory;
	if (getrandom(&l->seed, sizeof(l->seed), GRND_NONBLOCK) != sizeof(l->seed))
		l->seed = (uintptr_t)l;
	*ret = l;
	return NULL;
}

void cfi_layout_destroy(struct cfi_layout *l)
{
	if (!l)
		return;
	free(l->rules);
	free(l->hash);
	free(l->in_piece);
	free(l->local);
	free(l->pieces);
	free(l->bytes);
	free(l);
}

struct error *cfi_layout_finish(
        struct cfi_layout *l, const struct cfi_fde *fdes, u32 nfdes, u64 ncorrupt, struct cfi **ret)
{
	u64 fdes_at = sizeof(struct cfi_blob) + l->npieces * sizeof(*l->pieces);
	u64 bytes_at = fdes_at + nfdes * sizeof(*fdes);
	struct cfi_blob *blob = malloc(bytes_at + l->size);
	struct cfi_blob_piece *pieces = (struct cfi_blob_piece *)(blob + 1);

	if (!blob)
		return &error_no_memory;
	*blob = (struct cfi_blob){
	        .size = bytes_at + l->size, .ncorrupt = ncorrupt, .npieces = l->npieces, .nfdes = nfdes};
	for (u32 i = 0; i < l->npieces; i++) {
		pieces[i] = l->pieces[i];
		pieces[i].offset += bytes_at;
	}
	if (nfdes)
		memcpy((u8 *)blob + fdes_at, fdes, nfdes * sizeof(*fdes));
	if (l->size)
		memcpy((u8 *)blob + bytes_at, l->bytes, l->size);
	return cfi_from_blob(blob, false, ret);
}
