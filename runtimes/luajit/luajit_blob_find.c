/* SPDX-License-Identifier: Apache-2.0 */
/* Where the VM's code lies: the function that dispatches most. */
#include "luajit_image.h"

#include <stdlib.h>
#include <string.h>

#include "binary/image_scan.h"
#include "cleanup.h"
#include "cfi/cfi_search_cache.h"

#define DISPATCHES_MIN 60 /* of the interpreter: one at the end of nearly each of its 97 instructions */
#define BLOB_MAX       (256u << 10)
#define OVERLAP        3 /* one byte less than an instruction that is looked for */

/* Counts instructions that dispatch, a function at a time, until one has enough: that is the VM. */
struct search {
	const struct cfi *cfi;
	const struct cfi_fde *fde; /* of the last one */
	u32 count;                 /* in it */
	u32 all;
};

static bool search_bytes(struct search *s, const u8 *bytes, size_t size, u64 addr)
{
	static const u8 dispatch[] = {0x41, 0xff, 0x24, 0xee}; /* jmp [r14 + rbp * 8] */
	const u8 *end = bytes + size, *p = bytes;

	for (; (p = memmem(p, end - p, dispatch, sizeof(dispatch))); p += sizeof(dispatch)) {
		const struct cfi_fde *fde = cfi_fde_at(s->cfi, addr + (p - bytes));

		s->all++;
		s->count = fde == s->fde ? s->count + 1 : 1;
		s->fde = fde;
		if (fde && s->count >= DISPATCHES_MIN && fde->end - fde->start <= BLOB_MAX)
			return true;
	}
	return false;
}

/* vm_ffi_call lies right behind, with an FDE of its own that leaves out its prologue. */
static u64 blob_end(struct image *img, const struct cfi_fde *fde)
{
	static const u8 prologue[] = {0x55, 0x48, 0x89, 0xe5, 0x53};
	const struct cfi_fde *next = fde + 1;
	u8 bytes[sizeof(prologue)];

	if (next == img->cfi->fdes + img->cfi->nfdes || next->start != fde->end || next->end - fde->start > BLOB_MAX ||
	        next->end - next->start < sizeof(prologue) || !image_read(img, bytes, sizeof(bytes), next->start))
		return fde->end;
	return memcmp(bytes, prologue, sizeof(bytes)) ? fde->end : next->end;
}

static struct error *no_fde(const struct image *img)
{
	return error_hint(
	        error_new(ERROR_UNSUPPORTED, "%s holds LuaJIT, but its .eh_frame does not describe the VM", img->path),
	        "it was built with LUAJIT_NO_UNWIND, or stripped of .eh_frame; its Lua frames are left out");
}

/* Is it where an earlier run has found it? */
static bool is_there(struct search *search, struct image *img, u64 start)
{
	const struct cfi_fde *fde = cfi_fde_at(img->cfi, start);
	size_t size = fde && fde->end - fde->start <= BLOB_MAX ? fde->end - fde->start : 0;
	cleanup(free) u8 *bytes = size ? malloc(size) : NULL;

	return bytes && image_read(img, bytes, size, fde->start) && search_bytes(search, bytes, size, fde->start);
}

/* Most files hold none, which is kept, too, as a result without values. */
static void keep(const struct search *search, struct image *img, bool found)
{
	if (found)
		search_cache_store(
		        img, LUAJIT_BLOB_SEARCH, &(struct search_result){.values = {search->fde->start}, .n = 1});
	else if (search->all < DISPATCHES_MIN)
		search_cache_store(img, LUAJIT_BLOB_SEARCH, &(struct search_result){.n = 0});
}

static bool find(struct search *search, struct image *img)
{
	bool found = false;
	struct image_scan scan;
	struct search_result cached;

	if (search_cache_load(img, LUAJIT_BLOB_SEARCH, &cached)) {
		if (!cached.n || is_there(search, img, cached.values[0]))
			return cached.n;
		*search = (struct search){.cfi = img->cfi};
	}
	if (!image_scan_start(&scan, img, ".text", OVERLAP))
		return false;
	while (!found && image_scan_next(&scan))
		found = search_bytes(search, scan.bytes, scan.size, scan.addr);
	if (!scan.failed)
		keep(search, img, found);
	image_scan_end(&scan);
	return found;
}

struct error *luajit_blob_find(struct image *img, u64 *start, u64 *end)
{
	struct search search = {.cfi = img->cfi};

	*start = *end = 0;
	if (!find(&search, img))
		return search.all >= DISPATCHES_MIN ? no_fde(img) : NULL;
	*start = search.fde->start;
	*end = blob_end(img, search.fde);
	return NULL;
}
