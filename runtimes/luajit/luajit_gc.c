/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_gc.h"

#include <string.h>

#include "cleanup.h"
#include "frame_code.h"
#include "cfi/cfi.h"
#include "binary/image_scan.h"
#include "runtime.h"

#define OP_STORE     0xc7 /* mov dword [register + offset], constant */
#define MODRM_SHORT  0x40 /* the offset has one byte; register in bits 0-2 */
#define MODRM_LONG   0x80 /* four bytes */
#define MODRM_SIB    4    /* instead of a register: one more byte follows */
#define STORE_BYTES  11
#define NEAR_BYTES   (512u << 10)
#define WRITTEN      2 /* functions of the source: lj_gc_step(), lj_gc_fullgc() */
#define IN_COLLECTOR (~(u32)LUAJIT_VMST_GC)

/* The store of a constant at `offset` of an object that begins at p, of which 11 bytes are there. */
static bool is_store(const u8 *p, u32 offset, u32 value)
{
	u8 modrm = p[1] & ~7u, sib = (p[1] & 7) == MODRM_SIB;
	const u8 *at = p + 2 + sib;
	u32 size = modrm == MODRM_LONG ? 4 : 1, seen = 0, constant;

	if (p[0] != OP_STORE || (modrm != MODRM_LONG && modrm != MODRM_SHORT))
		return false;
	memcpy(&seen, at, size);
	memcpy(&constant, at + size, sizeof(constant));
	return seen == offset && constant == value && (size == 4 || offset < 128);
}

static void add(struct luajit_gc *gc, const struct cfi_fde *fde)
{
	for (u32 i = 0; i < gc->n; i++)
		if (gc->start[i] == fde->start)
			return;
	if (gc->n == LUAJIT_GC_FUNCTIONS)
		return;
	gc->start[gc->n] = fde->start;
	gc->end[gc->n++] = fde->end;
}

static void find_in(const struct image_scan *s, const struct cfi *cfi, u32 offset, struct luajit_gc *gc)
{
	const u8 *end = s->bytes + s->own, *p = s->bytes;

	for (; p < end && (p = memchr(p, OP_STORE, end - p)); p++) {
		u64 at = p - s->bytes;
		const struct cfi_fde *fde;

		if (at + STORE_BYTES > s->size || !is_store(p, offset, IN_COLLECTOR))
			continue;
		fde = cfi_fde_at(cfi, s->addr + at);
		if (fde)
			add(gc, fde);
	}
}

/* All of LuaJIT is linked together, but where a compiler has moved functions apart. */
static void find_near(struct image *img, u32 offset, u64 vm, struct luajit_gc *ret)
{
	struct image_scan piece = {.addr = vm > NEAR_BYTES ? vm - NEAR_BYTES : 0};
	u64 end = vm + NEAR_BYTES;
	cleanup(free) u8 *bytes = NULL;

	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *s = &img->segments[i];

		if (vm - s->vaddr >= s->filesz)
			continue;
		piece.addr = piece.addr < s->vaddr ? s->vaddr : piece.addr;
		end = end - s->vaddr > s->filesz ? s->vaddr + s->filesz : end;
	}
	piece.size = piece.own = end - piece.addr;
	bytes = malloc(piece.size);
	piece.bytes = bytes;
	if (bytes && image_read(img, bytes, piece.size, piece.addr))
		find_in(&piece, img->cfi, offset, ret);
}

void luajit_gc_find(struct image *img, const struct luajit_layout *l, u64 vm, struct luajit_gc *ret)
{
	struct image_scan scan;

	*ret = (struct luajit_gc){0};
	find_near(img, l->g_vmstate.at, vm, ret);
	if (ret->n >= WRITTEN || !image_scan_start(&scan, img, ".text", STORE_BYTES - 1))
		return;
	while (image_scan_next(&scan))
		find_in(&scan, img->cfi, l->g_vmstate.at, ret);
	image_scan_end(&scan);
}

static bool is_native(const struct frame *f)
{
	return frame_kind(f) == FRAME_NATIVE;
}

static bool is_script(const struct frame *f, u64 mask, u64 detail)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_LUAJIT && (f->detail & mask) == detail;
}

static bool is_work(const struct frame *f)
{
	return is_script(f, 3ull << LUAJIT_FUNCTION_BITS, (u64)LUAJIT_FAST << LUAJIT_FUNCTION_BITS) &&
	       frame_addr(f) == LUAJIT_WORK + LUAJIT_VMST_GC;
}

u32 luajit_gc_order(const struct luajit_gc *gc, u64 bias, const struct frame *frames, u32 i, u32 n, struct frame *ret,
        u32 max, u32 *eaten)
{
	struct frame work = {.where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, LUAJIT_WORK + LUAJIT_VMST_GC),
	        .detail = luajit_detail(LUAJIT_FAST, LUAJIT_NO_POS, LUAJIT_VMST_GC)};
	u32 end = i, behind, put = 0;
	bool has_work;

	*eaten = 0;
	if (i && is_native(&frames[i - 1])) /* its run was looked at already */
		return 0;
	while (end < n && is_native(&frames[end]) && end - i + 2 < max)
		end++;
	behind = frame_behind(gc->start, gc->end, gc->n, bias, frames, i, end);
	has_work = end < n && is_work(&frames[end]);
	if (behind == i || (end < n && is_native(&frames[end])))
		return 0;
	if (end + has_work < n && is_script(&frames[end + has_work], LUAJIT_JIT,
	                                  LUAJIT_JIT)) /* traces collect by a helper of their own */
		behind = end;
	if (has_work && behind == end)
		return 0;
	for (u32 k = i; k < end; k++) {
		ret[put++] = frames[k];
		if (k + 1 == behind)
			ret[put++] = work;
	}
	*eaten = end - i + has_work;
	return put;
}
