/* SPDX-License-Identifier: Apache-2.0 */
#include "go_file.h"

#include <elf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cleanup.h"
#include "search.h"

#define RELAS_A_READ 1024u
#define DYNAMIC_MAX  4096u

void go_file_init(struct go_file *f, struct image *img)
{
	*f = (struct go_file){.img = img};
}

static void forget(struct go_file *f)
{
	for (u32 i = 0; i < GO_BLOCKS; i++)
		f->block[i].from = f->block[i].end = 0;
}

void go_file_free(struct go_file *f)
{
	for (u32 i = 0; i < GO_BLOCKS; i++)
		free(f->block[i].bytes);
	free(f->relocs);
	*f = (struct go_file){0};
}

static u32 first_reloc(const struct go_file *f, u64 at)
{
	u32 i = SEARCH(f->nrelocs, k, f->relocs[k].at < at);

	return i;
}

/* Words that lie in two blocks are not relocated: pointers are aligned. */
static void relocate(const struct go_file *f, struct go_block *b)
{
	for (u32 i = first_reloc(f, b->addr + b->from); i < f->nrelocs && f->relocs[i].at + 8 <= b->addr + b->end; i++)
		memcpy(b->bytes + (f->relocs[i].at - b->addr), &f->relocs[i].value, 8);
}

/* The part of a block that one segment has, which is the one that addr lies in. */
static bool fill(struct go_file *f, struct go_block *b, u64 addr)
{
	b->addr = addr & ~(u64)(GO_BLOCK_SIZE - 1);
	b->from = b->end = 0;
	if (!b->bytes && !(b->bytes = malloc(GO_BLOCK_SIZE))) {
		f->no_memory = true;
		return false;
	}
	for (u32 i = 0; i < f->img->nsegments; i++) {
		const struct image_segment *seg = &f->img->segments[i];
		u64 start = MAX(b->addr, seg->vaddr), end = MIN(b->addr + GO_BLOCK_SIZE, seg->vaddr + seg->filesz);

		if (addr < start || addr >= end)
			continue;
		if (!image_read(f->img, b->bytes + (start - b->addr), end - start, start))
			return false;
		b->from = (u32)(start - b->addr);
		b->end = (u32)(end - b->addr);
		relocate(f, b);
		return true;
	}
	return false;
}

/* The block with addr, NULL if the file does not have it. */
static struct go_block *block_at(struct go_file *f, u64 addr)
{
	struct go_block *b = &f->block[addr >> GO_BLOCK_BITS & (GO_BLOCKS - 1)];
	u64 at = addr - b->addr;

	if (at < b->end && at >= b->from)
		return b;
	return fill(f, b, addr) ? b : NULL;
}

bool go_read(struct go_file *f, void *dst, u32 size, u64 addr)
{
	while (size) {
		struct go_block *b = block_at(f, addr);
		u32 n = b ? MIN(size, b->end - (u32)(addr - b->addr)) : 0;

		if (!n)
			return false;
		memcpy(dst, b->bytes + (addr - b->addr), n);
		dst = (u8 *)dst + n;
		addr += n;
		size -= n;
	}
	return true;
}

bool go_u8(struct go_file *f, u64 addr, u8 *ret)
{
	struct go_block *b = block_at(f, addr);

	if (!b)
		return false;
	*ret = b->bytes[addr - b->addr];
	return true;
}

bool go_u32(struct go_file *f, u64 addr, u32 *ret)
{
	return go_read(f, ret, sizeof(*ret), addr);
}

bool go_u64(struct go_file *f, u64 addr, u64 *ret)
{
	return go_read(f, ret, sizeof(*ret), addr);
}

u32 go_string(struct go_file *f, char *dst, u32 max, u64 addr)
{
	u32 n = 0;
	u8 c;

	while (n < max - 1 && go_u8(f, addr + n, &c) && c)
		dst[n++] = (char)c;
	dst[n] = 0;
	return n;
}

struct rela_place {
	u64 addr, size;
};

/* Where the dynamic linker's relocations lie, by the dynamic section. */
static bool find_relas(struct image *img, struct rela_place *ret)
{
	cleanup(free) Elf64_Dyn *dyn = NULL;
	size_t n, size = 0;
	GElf_Phdr ph;

	*ret = (struct rela_place){0};
	if (elf_getphdrnum(img->elf, &n))
		return false;
	for (size_t i = 0; i < n && !size; i++)
		if (gelf_getphdr(img->elf, (int)i, &ph) && ph.p_type == PT_DYNAMIC)
			size = MIN(ph.p_filesz / sizeof(*dyn), DYNAMIC_MAX);
	dyn = calloc(size + 1, sizeof(*dyn));
	if (!dyn || !size || !image_read(img, dyn, size * sizeof(*dyn), ph.p_vaddr))
		return false;
	for (size_t i = 0; i < size && dyn[i].d_tag != DT_NULL; i++) {
		if (dyn[i].d_tag == DT_RELA)
			ret->addr = dyn[i].d_un.d_ptr;
		if (dyn[i].d_tag == DT_RELASZ)
			ret->size = dyn[i].d_un.d_val;
	}
	return ret->addr && ret->size >= sizeof(Elf64_Rela);
}

/* Calls see for each word that holds an address of the file itself, until it returns true. True: it did. */
static bool each_relative(struct image *img, bool (*see)(void *ctx, u64 at, u64 value), void *ctx)
{
	cleanup(free) Elf64_Rela *buf = malloc(RELAS_A_READ * sizeof(*buf));
	struct rela_place place;
	u64 left;

	if (!buf || !find_relas(img, &place))
		return false;
	left = place.size / sizeof(*buf);
	while (left) {
		u64 n = MIN(left, RELAS_A_READ);

		if (!image_read(img, buf, n * sizeof(*buf), place.addr))
			return false;
		for (u64 i = 0; i < n; i++)
			if (ELF64_R_TYPE(buf[i].r_info) == R_X86_64_RELATIVE &&
			        see(ctx, buf[i].r_offset, (u64)buf[i].r_addend))
				return true;
		place.addr += n * sizeof(*buf);
		left -= n;
	}
	return false;
}

struct keeping {
	struct go_file *f;
	u64 start, end;
	u32 room;
};

static bool keep(void *ctx, u64 at, u64 value)
{
	struct keeping *k = ctx;
	struct go_file *f = k->f;

	if (at < k->start || at >= k->end)
		return false;
	if (f->nrelocs == k->room) {
		u32 room = k->room * 2 + 64;
		struct go_reloc *grown = reallocarray(f->relocs, room, sizeof(*grown));

		f->no_memory |= !grown;
		if (!grown)
			return true;
		f->relocs = grown;
		k->room = room;
	}
	f->relocs[f->nrelocs++] = (struct go_reloc){at, value};
	return false;
}

static int compare_relocs(const void *a, const void *b)
{
	const struct go_reloc *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

struct error *go_file_relocate(struct go_file *f, u64 start, u64 end)
{
	struct keeping k = {.f = f, .start = start, .end = end, .room = f->nrelocs};

	if (f->img->type != ET_DYN)
		return NULL;
	each_relative(f->img, keep, &k);
	if (f->nrelocs)
		qsort(f->relocs, f->nrelocs, sizeof(*f->relocs), compare_relocs);
	forget(f);
	return f->no_memory ? &error_no_memory : NULL;
}

struct pointing {
	u64 value, after, at;
};

static bool points(void *ctx, u64 at, u64 value)
{
	struct pointing *p = ctx;

	if (value == p->value && at >= p->after && at < p->at)
		p->at = at;
	return false;
}

bool go_file_find(struct go_file *f, const struct image_segment *seg, u64 bits, u64 mask, u64 after, u64 *ret)
{
	u64 at = (MAX(seg->vaddr, after) + 7) & ~7ULL, end = seg->vaddr + seg->filesz, word;

	while (at + 8 <= end) {
		struct go_block *b = block_at(f, at);

		if (!b)
			return false;
		for (u64 stop = MIN(b->addr + b->end, end); at < stop; at += 8) {
			if (at + 8 > stop)
				continue;
			memcpy(&word, b->bytes + (at - b->addr), 8);
			if ((word & mask) == bits) {
				*ret = at;
				return true;
			}
		}
	}
	return false;
}

bool go_file_points_to(struct go_file *f, u64 value, u64 after, u64 *ret)
{
	struct pointing p = {value, after, UINT64_MAX};

	if (f->img->type == ET_DYN)
		each_relative(f->img, points, &p);
	if (p.at != UINT64_MAX) {
		*ret = p.at;
		return true;
	}
	for (u32 i = 0; i < f->img->nsegments; i++)
		if (f->img->segments[i].flags & PF_W &&
		        go_file_find(f, &f->img->segments[i], value, UINT64_MAX, after, ret))
			return true;
	return false;
}
