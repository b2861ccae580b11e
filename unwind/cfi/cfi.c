/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/param.h>

#include "cfi_internal.h"
#include "search.h"

struct cfi_own {
	struct cfi cfi;
	struct cfi_blob *blob;
	bool mapped;
};

static void free_blob(struct cfi_blob *blob, bool mapped)
{
	if (mapped)
		munmap(blob, blob->size);
	else
		free(blob);
}

struct error *cfi_from_blob(struct cfi_blob *blob, bool mapped, struct cfi **ret)
{
	const struct cfi_blob_piece *from = (const struct cfi_blob_piece *)(blob + 1);
	struct cfi_piece *pieces = calloc(blob->npieces ? blob->npieces : 1, sizeof(*pieces));
	struct cfi_own *own = calloc(1, sizeof(*own));

	if (!own || !pieces) {
		free(own);
		free(pieces);
		free_blob(blob, mapped);
		return &error_no_memory;
	}
	for (u32 i = 0; i < blob->npieces; i++)
		pieces[i] =
		        (struct cfi_piece){from[i].start, from[i].end, (u32)from[i].size, (u8 *)blob + from[i].offset};
	own->blob = blob;
	own->mapped = mapped;
	own->cfi = (struct cfi){
	        .npieces = blob->npieces, .pieces = pieces, .nfdes = blob->nfdes, .ncorrupt = blob->ncorrupt};
	own->cfi.fdes = (const struct cfi_fde *)(from + blob->npieces);
	own->cfi.private = own;
	*ret = &own->cfi;
	return NULL;
}

struct cfi_blob *cfi_blob_of(const struct cfi *cfi)
{
	return ((struct cfi_own *)cfi->private)->blob;
}

void cfi_destroy(struct cfi *cfi)
{
	struct cfi_own *own = cfi ? cfi->private : NULL;

	if (!own)
		return;
	free_blob(own->blob, own->mapped);
	free(cfi->pieces);
	free(own);
}

/* Puts the tables into the cache, and takes them from there if that succeeded: a file's pages need no memory of ours
 * while nobody looks at them. */
static struct cfi *store(const char *dir, const struct image *img, u64 debug_size, struct cfi *cfi)
{
	struct cfi *stored;

	cfi_cache_store(dir, img, debug_size, cfi);
	stored = cfi_cache_load(dir, img, debug_size);
	if (!stored)
		return cfi;
	cfi_destroy(cfi);
	stored->from_cache = false;
	return stored;
}

struct error *cfi_load(struct image *img, const struct cfi_options *options, struct cfi **ret)
{
	const char *dir = options ? options->cache_dir : NULL;
	u64 debug_size = options && options->debug ? options->debug->size : 0;
	struct cfi *cfi = dir ? cfi_cache_load(dir, img, debug_size) : NULL;
	struct error *err;

	if (!cfi) {
		err = cfi_compile(img, options, &cfi);
		if (err)
			return err;
		if (dir)
			cfi = store(dir, img, debug_size, cfi);
	}
	img->destroy.cfi = cfi_destroy;
	*ret = cfi;
	return NULL;
}

void cfi_rest(struct cfi *cfi)
{
	struct cfi_own *own = cfi->private;

	if (own->mapped)
		madvise(own->blob, own->blob->size, MADV_DONTNEED);
}

const struct cfi_fde *cfi_fde_at(const struct cfi *cfi, u64 addr)
{
	u32 at = SEARCH(cfi ? cfi->nfdes : 0, k, cfi->fdes[k].end <= addr);

	return cfi && at < cfi->nfdes && cfi->fdes[at].start <= addr ? &cfi->fdes[at] : NULL;
}

bool cfi_is_sparse(const struct image *img, const struct cfi *cfi)
{
	u64 covered = 0;

	for (u32 i = 0; i < cfi->nfdes; i++)
		covered += cfi->fdes[i].end - cfi->fdes[i].start;
	return cfi_covers_little(img, covered);
}

static bool entries_sorted(const struct cfi_entry *entries, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (entries[i].addr < entries[i - 1].addr)
			return false;
	return true;
}

struct error *cfi_from_entries(const struct cfi_entry *entries, size_t n, u64 start, u64 end, struct cfi **ret)
{
	struct cfi_layout *layout;
	struct error *err;

	if (end <= start || !entries_sorted(entries, n))
		return error_new(ERROR_INPUT, "unwind rows of [%#llx, %#llx) are not in order",
		        (unsigned long long)start, (unsigned long long)end);
	err = cfi_layout_create(&layout);
	if (err)
		return err;
	for (size_t i = 0; !err && i < n && entries[i].addr < end; i++)
		err = cfi_layout_row(layout, MAX(entries[i].addr, start), &entries[i].rule);
	if (!err)
		err = cfi_layout_end(layout, end);
	if (!err)
		err = cfi_layout_finish(layout, NULL, 0, 0, ret);
	cfi_layout_destroy(layout);
	return err;
}

static const struct cfi_piece *find_piece(const struct cfi *cfi, u64 addr)
{
	u32 i = SEARCH(cfi->npieces, k, cfi->pieces[k].end <= addr);

	return i < cfi->npieces && addr >= cfi->pieces[i].start ? &cfi->pieces[i] : NULL;
}

bool cfi_has_any(const struct cfi *cfi, u64 start, u64 end)
{
	u32 at = cfi ? SEARCH(cfi->npieces, k, cfi->pieces[k].end <= start) : 0;

	return cfi && at < cfi->npieces && cfi->pieces[at].start < end;
}

bool cfi_find(const struct cfi *cfi, u64 addr, struct cfi_rule *ret)
{
	const struct cfi_piece *piece = find_piece(cfi, addr);
	const struct cfi_table *t = piece ? piece->bytes : NULL;
	const u32 *rows;
	const u16 *index;
	u64 page;
	u32 i;

	if (!t)
		return false;
	page = (addr - piece->start) >> CFI_PAGE_BITS;
	index = (const u16 *)((const u8 *)t + t->index) + page;
	rows = (const u32 *)((const u8 *)t + t->rows);
	for (i = index[1] - 1u; (rows[i] & (CFI_PAGE_SIZE - 1)) > (addr & (CFI_PAGE_SIZE - 1)); i--)
		;
	*ret = ((const struct cfi_rule *)((const u8 *)t + t->rules))[rows[i] >> CFI_PAGE_BITS];
	return ret->kind != CFI_NONE;
}
