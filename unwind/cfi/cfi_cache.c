/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "cfi_cache_dir.h"
#include "cfi_internal.h"
#include "cleanup.h"

#define CACHE_MAGIC   "yrt cfi"
#define CACHE_VERSION 35 /* raise it when rows, rules, or what the compiler makes of an instruction change */

static u64 blob_checksum(const struct cfi_blob *blob)
{
	const u8 *from = (const u8 *)&blob->size;

	return XXH3_64bits(from, (size_t)((const u8 *)blob + blob->size - from));
}

static bool is_ours(const struct cfi_blob *blob, const struct image *img, u64 debug_size)
{
	u8 id[BUILD_ID_MAX];
	u32 n = image_identity(img, id);

	return !memcmp(blob->magic, CACHE_MAGIC, sizeof(blob->magic)) && blob->version == CACHE_VERSION &&
	       blob->image_size == img->size && blob->debug_size == debug_size && blob->identity_len == n &&
	       !memcmp(blob->identity, id, n);
}

static bool reg_valid(u8 reg)
{
	return reg < ARCH_NREGS || reg == CFI_NO_REG;
}

static bool rules_valid(const struct cfi_rule *rule, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (rule[i].kind >= CFI_KINDS || rule[i].cfa_reg >= ARCH_NREGS || rule[i].index_reg >= ARCH_NREGS ||
		        !reg_valid(rule[i].slot_reg) || !reg_valid(rule[i].ra_reg))
			return false;
	return true;
}

/* The rows of a page: the first at offset 0, ascending, each with a rule. */
static bool page_valid(const u32 *row, u32 n, u32 nrules)
{
	bool ok = n && !(row[0] & (CFI_PAGE_SIZE - 1)) && row[0] >> CFI_PAGE_BITS < nrules;

	for (u32 i = 1; i < n; i++)
		ok &= (row[i] & (CFI_PAGE_SIZE - 1)) > (row[i - 1] & (CFI_PAGE_SIZE - 1)) &&
		      row[i] >> CFI_PAGE_BITS < nrules;
	return ok;
}

static bool table_valid(const struct cfi_table *t, u64 size, u64 npages)
{
	struct cfi_table shape;
	const u16 *index;

	if (size < sizeof(*t) || t->npages != npages ||
	        cfi_table_size(t->npages, t->nrows, t->nrules, &shape) != size || memcmp(t, &shape, sizeof(*t)))
		return false;
	index = (const u16 *)((const u8 *)t + t->index);
	if (index[0] != 0 || index[t->npages] != t->nrows)
		return false;
	for (u32 i = 0; i < t->npages; i++)
		if (index[i + 1] <= index[i] || index[i + 1] > t->nrows ||
		        !page_valid(
		                (const u32 *)((const u8 *)t + t->rows) + index[i], index[i + 1] - index[i], t->nrules))
			return false;
	return rules_valid((const struct cfi_rule *)((const u8 *)t + t->rules), t->nrules);
}

static bool piece_valid(const struct cfi_blob *blob, const struct cfi_blob_piece *p, u64 after)
{
	u64 npages = (p->end - p->start + CFI_PAGE_SIZE - 1) >> CFI_PAGE_BITS;

	return p->start >= after && p->end > p->start && p->end - p->start <= UINT32_MAX &&
	       !(p->start % CFI_PAGE_SIZE) && !(p->offset % 8) && p->size <= CFI_PIECE_MAX && p->offset <= blob->size &&
	       p->size <= blob->size - p->offset &&
	       table_valid((const struct cfi_table *)((const u8 *)blob + p->offset), p->size, npages);
}

static bool content_valid(const struct cfi_blob *blob)
{
	const struct cfi_blob_piece *piece = (const struct cfi_blob_piece *)(blob + 1);
	const struct cfi_fde *fde;
	u64 room = blob->size - sizeof(*blob), after = 0;

	if (blob->npieces > room / sizeof(*piece))
		return false;
	room -= blob->npieces * sizeof(*piece);
	if (blob->nfdes > room / sizeof(*fde))
		return false;
	for (u32 i = 0; i < blob->npieces; after = piece[i++].end)
		if (!piece_valid(blob, &piece[i], after))
			return false;
	fde = (const struct cfi_fde *)(piece + blob->npieces);
	for (u32 i = 0; i < blob->nfdes; i++)
		if (fde[i].end <= fde[i].start || (i && fde[i].start < fde[i - 1].end))
			return false;
	return true;
}

static struct cfi_blob *map_file(const char *path, size_t *ret_size)
{
	cleanup(close) int fd = cache_open(path, ret_size);
	void *map;

	if (fd < 0 || *ret_size < sizeof(struct cfi_blob))
		return NULL;
	map = mmap(NULL, *ret_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	return map == MAP_FAILED ? NULL : map;
}

bool cfi_is_cached(const struct image *img, const char *dir)
{
	cleanup(free) char *path = cache_path(dir, img, img->size, ".cfi");

	return path && !access(path, R_OK);
}

struct cfi *cfi_cache_load(const char *dir, const struct image *img, u64 debug_size)
{
	cleanup(free) char *path = cache_path(dir, img, img->size, ".cfi");
	struct cfi_blob *blob;
	struct cfi *cfi;
	struct error *err;
	size_t size;

	blob = path ? map_file(path, &size) : NULL;
	if (!blob)
		return NULL;
	if (blob->size != size || !is_ours(blob, img, debug_size) || blob_checksum(blob) != blob->checksum ||
	        !content_valid(blob)) {
		munmap(blob, size);
		return NULL;
	}
	err = cfi_from_blob(blob, true, &cfi);
	error_free(err);
	if (err)
		return NULL;
	cfi->from_cache = true;
	return cfi;
}

void cfi_cache_store(const char *dir, const struct image *img, u64 debug_size, struct cfi *cfi)
{
	cleanup(free) char *path = cache_path(dir, img, img->size, ".cfi");
	struct cfi_blob *blob = cfi_blob_of(cfi);

	if (!path)
		return;
	memcpy(blob->magic, CACHE_MAGIC, sizeof(blob->magic));
	blob->version = CACHE_VERSION;
	blob->image_size = img->size;
	blob->debug_size = debug_size;
	blob->identity_len = image_identity(img, blob->identity);
	blob->checksum = blob_checksum(blob);
	cache_put(dir, path, blob, blob->size);
}
