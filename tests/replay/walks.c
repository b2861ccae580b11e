/* SPDX-License-Identifier: Apache-2.0 */
#include "walks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "binary/memory.h"

#define MAGIC    "yrtwalk2"
#define FILE_MAX (64u << 20)
#define LEVEL    19

static void die(const char *what, const char *path)
{
	fprintf(stderr, "%s: %s\n", path, what);
	exit(1);
}

static void *take_memory(size_t size)
{
	void *ret = calloc(1, size + 1);

	if (!ret)
		die("out of memory", "walks");
	return ret;
}

/* --- the file: a zstd frame of numbers and bytes in the order of the structs --- */

struct in {
	const u8 *at, *end;
	const char *path;
};

static void take(struct in *in, void *ret, size_t size)
{
	if (size > (size_t)(in->end - in->at))
		die("ends too early", in->path);
	memcpy(ret, in->at, size);
	in->at += size;
}

static u32 take_number(struct in *in, u32 max)
{
	u32 n;

	take(in, &n, sizeof(n));
	if (n > max)
		die("a number is too large", in->path);
	return n;
}

static void take_walk(struct in *in, struct walk_record *r)
{
	take(in, r->registers.reg, sizeof(r->registers.reg));
	take(in, &r->registers.thread_pointer, sizeof(u64));
	r->stop = take_number(in, 1000);
	r->nframes = take_number(in, WALKS_FRAMES_MAX);
	r->frames = take_memory(r->nframes * sizeof(*r->frames));
	take(in, r->frames, r->nframes * sizeof(*r->frames));
	r->npieces = take_number(in, WALKS_PIECES_MAX);
	r->pieces = take_memory(r->npieces * sizeof(*r->pieces));
	for (u32 i = 0; i < r->npieces; i++) {
		struct walks_piece *p = &r->pieces[i];

		take(in, &p->addr, sizeof(p->addr));
		p->size = take_number(in, 1 << 20);
		p->readable = take_number(in, 1);
		p->bytes = take_memory(p->size);
		if (p->readable)
			take(in, p->bytes, p->size);
	}
}

static u8 *unpack(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	u8 *packed = take_memory(FILE_MAX), *ret = take_memory(FILE_MAX);
	size_t n = f ? fread(packed, 1, FILE_MAX, f) : 0;

	if (!n)
		die("unreadable", path);
	fclose(f);
	*size = ZSTD_decompress(ret, FILE_MAX, packed, n);
	free(packed);
	if (ZSTD_isError(*size))
		die("is no recording of walks", path);
	return ret;
}

struct walks *walks_load(const char *path)
{
	struct walks *w = take_memory(sizeof(*w));
	size_t size;
	u8 *bytes = unpack(path, &size);
	struct in in = {bytes, bytes + size, path};
	char magic[sizeof(MAGIC)];

	take(&in, magic, sizeof(magic));
	if (strcmp(magic, MAGIC) != 0)
		die("is no recording of walks", path);
	w->entry.regions = take_number(&in, UINT32_MAX);
	w->entry.nregions = take_number(&in, REGIONS_MAX);
	take(&in, w->entry.resume, sizeof(w->entry.resume));
	w->npages = take_number(&in, WALKS_PAGES_MAX);
	w->nwalks = take_number(&in, WALKS_MAX);
	for (u32 i = 0; i < w->npages; i++) {
		w->pages[i].offset = take_number(&in, UINT32_MAX);
		w->pages[i].bytes = take_memory(WALKS_PAGE);
		take(&in, w->pages[i].bytes, WALKS_PAGE);
	}
	for (u32 i = 0; i < w->nwalks; i++)
		take_walk(&in, &w->walk[i]);
	free(bytes);
	return w;
}

static void put_walk(FILE *out, const struct walk_record *r)
{
	fwrite(r->registers.reg, sizeof(r->registers.reg), 1, out);
	fwrite(&r->registers.thread_pointer, sizeof(u64), 1, out);
	fwrite(&r->stop, sizeof(u32), 1, out);
	fwrite(&r->nframes, sizeof(u32), 1, out);
	fwrite(r->frames, sizeof(*r->frames), r->nframes, out);
	fwrite(&r->npieces, sizeof(u32), 1, out);
	for (u32 i = 0; i < r->npieces; i++) {
		const struct walks_piece *p = &r->pieces[i];

		fwrite(&p->addr, sizeof(p->addr), 1, out);
		fwrite(&p->size, sizeof(u32), 1, out);
		fwrite(&p->readable, sizeof(u32), 1, out);
		if (p->readable)
			fwrite(p->bytes, 1, p->size, out);
	}
}

void walks_save(const struct walks *w, const char *path)
{
	char *plain;
	size_t size, n;
	FILE *out = open_memstream(&plain, &size);
	void *packed;

	fwrite(MAGIC, sizeof(MAGIC), 1, out);
	fwrite(&w->entry.regions, sizeof(u32), 1, out);
	fwrite(&w->entry.nregions, sizeof(u32), 1, out);
	fwrite(w->entry.resume, sizeof(w->entry.resume), 1, out);
	fwrite(&w->npages, sizeof(u32), 1, out);
	fwrite(&w->nwalks, sizeof(u32), 1, out);
	for (u32 i = 0; i < w->npages; i++) {
		fwrite(&w->pages[i].offset, sizeof(u32), 1, out);
		fwrite(w->pages[i].bytes, WALKS_PAGE, 1, out);
	}
	for (u32 i = 0; i < w->nwalks; i++)
		put_walk(out, &w->walk[i]);
	fclose(out);
	packed = take_memory(ZSTD_compressBound(size));
	n = ZSTD_compress(packed, ZSTD_compressBound(size), plain, size, LEVEL);
	out = fopen(path, "wb");
	if (ZSTD_isError(n) || !out || fwrite(packed, 1, n, out) != n || fclose(out))
		die("could not be written", path);
	printf("%s: %u walks, %u pages of tables, %zu bytes\n", path, w->nwalks, w->npages, n);
	free(packed);
	free(plain);
}

void walks_free(struct walks *w)
{
	for (u32 i = 0; i < w->nwalks; i++) {
		for (u32 k = 0; k < w->walk[i].npieces; k++)
			free(w->walk[i].pieces[k].bytes);
		free(w->walk[i].pieces);
		free(w->walk[i].frames);
	}
	for (u32 i = 0; !w->arena && i < w->npages; i++)
		free(w->pages[i].bytes);
	if (w->arena)
		arena_destroy(w->arena);
	free(w);
}

/* --- walking --- */

void walks_place(struct walks *w)
{
	u32 end = 0, offset;

	if (arena_create(NULL, &w->arena))
		die("no arena", "walks");
	for (u32 i = 0; i < w->npages; i++)
		end = w->pages[i].offset > end ? w->pages[i].offset : end;
	while (arena_size(w->arena) < (u64)end + WALKS_PAGE)
		if (arena_alloc(w->arena, ARENA_SLAB_SIZE - 64, &offset))
			die("the tables are too large", "walks");
	for (u32 i = 0; i < w->npages; i++) {
		u8 *there = arena_at(w->arena, w->pages[i].offset, WALKS_PAGE);

		memcpy(there, w->pages[i].bytes, WALKS_PAGE);
		free(w->pages[i].bytes);
		w->pages[i].bytes = there;
	}
}

struct replay {
	struct memory memory;
	const struct walk_record *record;
	u32 reads, unknown, failing;
};

static bool replay_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct replay *r = (struct replay *)mem;

	if (r->reads++ == r->failing)
		return false;
	for (u32 i = 0; i < r->record->npieces; i++) {
		const struct walks_piece *p = &r->record->pieces[i];

		if (p->readable ? addr - p->addr <= p->size && size <= p->size - (addr - p->addr)
		                : addr == p->addr && size == p->size) {
			if (p->readable)
				memcpy(dst, p->bytes + (addr - p->addr), size);
			return p->readable;
		}
	}
	r->unknown++;
	return false;
}

void walks_again(const struct walks *w, u32 i, u32 failing, struct walks_result *ret)
{
	struct replay replay = {.memory.read = replay_read, .record = &w->walk[i], .failing = failing};
	struct modules modules = {.arena = w->arena};
	struct process p = {.entry = w->entry, .modules = &modules, .memory = &replay.memory};

	ret->stop = unwind_stack(&p, &w->walk[i].registers, ret->frames, WALKS_FRAMES_MAX, &ret->nframes);
	ret->reads = replay.reads;
	ret->unknown = replay.unknown;
	free(modules.caches);
}

bool walks_same(const struct walk_record *r, const struct walks_result *now)
{
	return r->stop == now->stop && r->nframes == now->nframes &&
	       !memcmp(r->frames, now->frames, r->nframes * sizeof(*r->frames));
}
