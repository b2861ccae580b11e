/* SPDX-License-Identifier: Apache-2.0 */
#include "jit_cfi.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "cleanup.h"
#include "grow.h"

#define MAPPING_MAX  (16ull << 20) /* bytes of one that is searched */
#define BYTES_MAX    (64ull << 20) /* of all */
#define CODE_MAX     (4u << 20)    /* bytes of code that are followed where no section describes it */
#define SECTIONS_MAX 65536u
#define CIE_MIN      12u /* bytes behind its length */
#define CIE_MAX      64u

struct found {
	struct cfi_section *sections;
	u32 nsections;
	void **owned;
	u32 nowned;
	u64 bytes;
};

static bool is_code(const struct mapping *m)
{
	return m->anonymous && (m->prot & PROT_EXEC) && !m->image && (!m->name || !*m->name);
}

static bool may_tell(const struct mapping *m)
{
	return m->anonymous && m->prot == PROT_READ && (!m->name || !*m->name) && m->end - m->start <= MAPPING_MAX;
}

static u32 half(const u8 *at)
{
	u32 ret;

	memcpy(&ret, at, sizeof(ret));
	return ret;
}

/* A CIE with an augmentation of known length, as all compilers make it. */
static bool is_cie(const u8 *at, size_t left)
{
	return left > 4 + CIE_MIN && half(at) >= CIE_MIN && half(at) <= CIE_MAX && !half(at + 4) && at[8] == 1 &&
	       at[9] == 'z';
}

/* How long is the section that begins here? Its last entry has no length. */
static size_t section_size(const u8 *at, size_t left)
{
	size_t size = 0;

	while (left - size >= 4 && half(at + size)) {
		if (half(at + size) > left - size - 4)
			return size;
		size += 4 + half(at + size);
	}
	return size;
}

static struct error *add_section(struct found *f, const u8 *at, size_t size, u64 addr)
{
	struct error *err;

	if (f->nsections == SECTIONS_MAX)
		return NULL;
	err = grow(&f->sections, f->nsections, sizeof(*f->sections));
	if (!err)
		f->sections[f->nsections++] = (struct cfi_section){at, size, addr};
	return err;
}

static struct error *search(struct found *f, const u8 *bytes, size_t size, u64 addr)
{
	struct error *err = NULL;

	for (size_t at = 0; !err && at + 8 < size; at += 8) {
		if (!is_cie(bytes + at, size - at))
			continue;
		size_t n = section_size(bytes + at, size - at);

		err = add_section(f, bytes + at, n, addr + at);
		at += n & ~7ull;
	}
	return err;
}

static struct error *look_at(struct found *f, struct memory *mem, const struct mapping *m)
{
	size_t size = m->end - m->start;
	u8 *bytes = f->bytes + size <= BYTES_MAX ? malloc(size) : NULL;
	u32 before = f->nsections;
	struct error *err;

	if (!bytes)
		return NULL;
	f->bytes += size;
	err = memory_read(mem, bytes, size, m->start) ? search(f, bytes, size, m->start) : NULL;
	if (!err && f->nsections > before)
		err = grow(&f->owned, f->nowned, sizeof(*f->owned));
	if (err || f->nsections == before) {
		free(bytes);
		return err;
	}
	f->owned[f->nowned++] = bytes;
	return NULL;
}

/* Never 0. Code counts, because its memory may hold another one, of the same size, under the same sections. */
static u64 hash_of(const struct found *f, const struct cfi_memory_code *code)
{
	u64 sum = 1;

	for (u32 i = 0; i < f->nsections; i++)
		sum = XXH3_64bits_withSeed(f->sections[i].data, f->sections[i].size, sum ^ f->sections[i].addr);
	sum = XXH3_64bits_withSeed(code->segments, code->n * sizeof(*code->segments), sum);
	return XXH3_64bits_withSeed(code->bytes, code->size, sum) | 1;
}

/* Reads the code of segments, one behind the other. What cannot be read is nowhere. */
static void *read_code(struct memory *mem, struct image_segment *code, u32 n, u64 *size)
{
	u8 *bytes = malloc(CODE_MAX);

	*size = 0;
	for (u32 i = 0; bytes && i < n; i++) {
		u64 part = code[i].filesz;

		code[i].offset = UINT64_MAX;
		if (part > CODE_MAX - *size || !memory_read(mem, bytes + *size, part, code[i].vaddr))
			continue;
		code[i].offset = *size;
		*size += part;
	}
	return bytes;
}

static struct error *compile(
        struct found *f, struct memory *mem, const struct mapping *mappings, u32 n, u64 *hash, struct cfi **ret)
{
	cleanup(free) struct image_segment *segments = calloc(n + 1, sizeof(*segments));
	struct cfi_memory_code code = {.segments = segments};
	cleanup(free) void *bytes = NULL;
	u64 sum;

	if (!segments)
		return &error_no_memory;
	for (u32 i = 0; i < n; i++)
		if (is_code(&mappings[i])) {
			u64 size = mappings[i].end - mappings[i].start;

			segments[code.n++] = (struct image_segment){
			        .vaddr = mappings[i].start, .memsz = size, .filesz = size, .flags = PF_X};
		}
	bytes = read_code(mem, segments, code.n, &code.size);
	code.bytes = bytes;
	if (!bytes)
		return &error_no_memory;
	sum = hash_of(f, &code);
	if (sum == *hash)
		return NULL;
	*hash = sum;
	return cfi_from_memory(f->sections, f->nsections, &code, ret);
}

struct error *jit_cfi_find(struct memory *mem, const struct mapping *mappings, u32 n, u64 *hash, struct cfi **ret)
{
	struct found f = {0};
	struct error *err = NULL;
	bool any = false;

	*ret = NULL;
	for (u32 i = 0; i < n && !any; i++)
		any = is_code(&mappings[i]);
	for (u32 i = 0; i < n && any && !err; i++)
		if (may_tell(&mappings[i]))
			err = look_at(&f, mem, &mappings[i]);
	if (!err && f.nsections)
		err = compile(&f, mem, mappings, n, hash, ret);
	else if (!err)
		*hash = 0;
	for (u32 i = 0; i < f.nowned; i++)
		free(f.owned[i]);
	free(f.owned);
	free(f.sections);
	return err;
}
