/* SPDX-License-Identifier: Apache-2.0 */
#include <dwarf.h>
#include <elf.h>
#include <stdlib.h>

#include "cfi_internal.h"
#include "cleanup.h"

#define DW64_LENGTH  0xffffffffu
#define CIE_HASH_MIN 64

/* aligned, indirect, and the bases that only a running process has */
static bool pointer_base(const struct cfi_cursor *c, const struct cfi_source *source, u8 encoding, u64 *ret)
{
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_textrel: /* libgcc takes 0 for these two on x86-64 (unwind-dw2-fde-dip.c, 12.2) */
	case DW_EH_PE_datarel:
		*ret = 0;
		return true;
	case DW_EH_PE_pcrel:
		*ret = source->addr + (u64)(c->at - source->data);
		return true;
	default:
		return false;
	}
}

static u64 pointer_value(struct cfi_cursor *c, u8 encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return cursor_u64(c);
	case DW_EH_PE_uleb128:
		return cursor_uleb(c);
	case DW_EH_PE_udata2:
		return cursor_u16(c);
	case DW_EH_PE_udata4:
		return cursor_u32(c);
	case DW_EH_PE_sleb128:
		return (u64)cursor_sleb(c);
	case DW_EH_PE_sdata2:
		return (u64)(s64)(s16)cursor_u16(c);
	case DW_EH_PE_sdata4:
		return (u64)(s64)(s32)cursor_u32(c);
	default:
		c->bad = true;
		return 0;
	}
}

u64 cfi_pointer(struct cfi_cursor *c, const struct cfi_source *source, u8 encoding)
{
	u64 base, at;

	if (encoding == DW_EH_PE_aligned) {
		at = source->addr + (u64)(c->at - source->data);
		cursor_take(c, -at & 7);
		return cursor_u64(c);
	}
	if (encoding & DW_EH_PE_indirect || !pointer_base(c, source, encoding, &base)) {
		c->bad = true;
		return 0;
	}
	return base + pointer_value(c, encoding);
}

/* The personality is not needed, only its length; what it points to does not matter. */
static void skip_personality(struct cfi_cursor *c, const struct cfi_source *source)
{
	u8 encoding = cursor_u8(c);

	if (encoding == DW_EH_PE_aligned)
		cfi_pointer(c, source, encoding);
	else if (encoding != DW_EH_PE_omit)
		pointer_value(c, encoding);
}

/* What the letters behind 'z' say. An unknown letter ends it: the data's length is known. */
static void read_augmentation(struct cfi_cursor *c, const char *letters, struct cfi_cie *cie)
{
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = cursor_u8(c);
			break;
		case 'P':
			skip_personality(c, cie->source);
			break;
		case 'L':
			cursor_u8(c);
			break;
		case 'S':
			cie->signal = true;
			break;
		default:
			return;
		}
	}
}

static const char *take_string(struct cfi_cursor *c)
{
	const u8 *nul = memchr(c->at, 0, cursor_left(c));

	return (const char *)cursor_take(c, nul ? (u64)(nul - c->at) + 1 : UINT64_MAX);
}

/* Everything of a CIE behind its id. */
static bool read_cie(struct cfi_cursor *c, struct cfi_cie *cie)
{
	struct cfi_cursor extra;
	u8 version = cursor_u8(c);
	const char *letters;
	u64 size;

	if (version != 1 && version != 3 && version != 4)
		return false;
	letters = take_string(c);
	if (!letters || (*letters && *letters != 'z'))
		return false;
	if (version == 4 && (cursor_u8(c) != 8 || cursor_u8(c) != 0)) /* address size, segment selector size */
		return false;
	cie->code_align = cursor_uleb(c);
	cie->data_align = cursor_sleb(c);
	cie->return_column = version == 1 ? cursor_u8(c) : cursor_uleb(c);
	if (*letters == 'z') {
		cie->sized = true;
		size = cursor_uleb(c);
		extra = (struct cfi_cursor){.at = cursor_take(c, size), .end = c->at};
		if (c->bad)
			return false;
		read_augmentation(&extra, letters + 1, cie);
		c->bad |= extra.bad;
	}
	if (c->bad || cie->return_column >= ARCH_NREGS)
		return false;
	return cfi_run_cie(cie, c->at, cursor_left(c));
}

/* An entry's length; moves end to the end of the entry. False: no more entries. */
static bool entry_open(struct cfi_cursor *c, struct cfi_cursor *body, bool *dw64)
{
	u64 size = cursor_u32(c);

	*dw64 = size == DW64_LENGTH;
	if (*dw64)
		size = cursor_u64(c);
	if (c->bad || size > cursor_left(c))
		return false;
	*body = (struct cfi_cursor){.at = c->at, .end = c->at + size};
	c->at = body->end;
	return true;
}

static bool is_cie_id(const struct cfi_source *source, bool dw64, u64 id)
{
	if (!source->debug)
		return id == 0;
	return id == (dw64 ? UINT64_MAX : UINT32_MAX);
}

/* In .eh_frame this field has 4 bytes also behind a 64-bit length (LSB 5.0, 10.6.1). */
static u64 read_id(struct cfi_cursor *c, const struct cfi_source *source, bool dw64)
{
	return source->debug && dw64 ? cursor_u64(c) : cursor_u32(c);
}

static bool grow(void *array, u32 n, u32 *room, size_t size)
{
	u32 want = *room ? *room * 2 : 64;
	void *grown;

	if (n < *room)
		return true;
	grown = want > *room ? reallocarray(*(void **)array, want, size) : NULL;
	if (!grown)
		return false;
	*(void **)array = grown;
	*room = want;
	return true;
}

static u32 *cie_bucket(const struct cfi_parsed *p, const struct cfi_source *source, u64 offset)
{
	u32 i = (u32)((offset ^ source->debug) * 0x9e3779b97f4a7c15ull >> 32);

	for (;; i++) {
		u32 *bucket = &p->cie_hash[i & (p->cie_hash_size - 1)];

		if (!*bucket || (p->cies[*bucket - 1].offset == offset && p->cies[*bucket - 1].source == source))
			return bucket;
	}
}

static struct error *cie_hash_grow(struct cfi_parsed *p)
{
	u32 size = p->cie_hash_size ? p->cie_hash_size * 2 : CIE_HASH_MIN;

	if (p->ncies * 2 < p->cie_hash_size)
		return NULL;
	free(p->cie_hash);
	p->cie_hash = calloc(size, sizeof(*p->cie_hash));
	if (!p->cie_hash)
		return &error_no_memory;
	p->cie_hash_size = size;
	for (u32 i = 0; i < p->ncies; i++)
		*cie_bucket(p, p->cies[i].source, p->cies[i].offset) = i + 1;
	return NULL;
}

/* The CIE at offset, parsed when an FDE first refers to it; a corrupt one is kept as bad. */
static struct error *cie_at(struct cfi_parsed *p, const struct cfi_source *source, u64 offset, u32 *ret)
{
	struct cfi_cursor c = {.at = source->data, .end = source->data + source->size}, body;
	struct error *err = cie_hash_grow(p);
	struct cfi_cie *cie;
	u32 *bucket;
	bool dw64;

	if (err)
		return err;
	bucket = cie_bucket(p, source, offset);
	if (*bucket) {
		*ret = *bucket - 1;
		return NULL;
	}
	if (!grow(&p->cies, p->ncies, &p->cies_room, sizeof(*p->cies)))
		return &error_no_memory;
	cie = &p->cies[p->ncies];
	*cie = (struct cfi_cie){.source = source, .offset = offset};
	cie->bad = !cursor_take(&c, offset) || !entry_open(&c, &body, &dw64) ||
	           !is_cie_id(source, dw64, read_id(&body, source, dw64)) || !read_cie(&body, cie);
	p->ncorrupt += cie->bad;
	*ret = p->ncies;
	*bucket = ++p->ncies;
	return NULL;
}

static struct error *add_function(struct cfi_parsed *p, const struct cfi_function *fn)
{
	if (p->nfunctions == p->functions_room) {
		size_t room = p->functions_room ? p->functions_room * 2 : 256;
		struct cfi_function *grown = reallocarray(p->functions, room, sizeof(*grown));

		if (!grown)
			return &error_no_memory;
		p->functions = grown;
		p->functions_room = room;
	}
	p->functions[p->nfunctions++] = *fn;
	return NULL;
}

/* An FDE whose CIE is known: where it lies, its instructions. False: corrupt. */
static bool read_function(struct cfi_cursor *c, const struct cfi_cie *cie, struct cfi_function *fn)
{
	fn->start = cfi_pointer(c, cie->source, cie->encoding);
	if (cie->encoding == DW_EH_PE_aligned)
		fn->end = fn->start + cursor_u64(c);
	else
		fn->end = fn->start + pointer_value(c, cie->encoding & 0x0f);
	if (cie->sized)
		cursor_take(c, cursor_uleb(c));
	fn->code = c->at;
	fn->code_size = (u32)cursor_left(c);
	return !c->bad && fn->end >= fn->start;
}

static struct error *read_fde(struct image *img, struct cfi_parsed *p, const struct cfi_source *source, u64 cie_offset,
        struct cfi_cursor *body)
{
	struct cfi_function fn;
	struct error *err;

	if (cie_offset >= source->size) {
		p->ncorrupt++;
		return NULL;
	}
	err = cie_at(p, source, cie_offset, &fn.cie);
	if (err)
		return err;
	if (p->cies[fn.cie].bad || !read_function(body, &p->cies[fn.cie], &fn)) {
		p->ncorrupt++;
		return NULL;
	}
	if (fn.start == fn.end)
		return NULL;
	if (image_has_code(img, fn.start, fn.end))
		return add_function(p, &fn);
	/* the linker leaves debug entries of functions that it dropped, at address 0 or 1 */
	p->ncorrupt += !source->debug || fn.start > 1;
	return NULL;
}

struct error *cfi_parse_source(struct image *img, struct cfi_parsed *p, const struct cfi_source *source)
{
	struct cfi_cursor c = {.at = source->data, .end = source->data + source->size}, body;
	struct error *err = NULL;
	bool dw64;

	while (!err && cursor_left(&c) && entry_open(&c, &body, &dw64)) {
		const u8 *at = body.at;
		u64 id;

		if (!cursor_left(&body)) { /* a terminator: crtend.o's may stand in the middle of a section */
			if (source->open)
				return NULL;
			continue;
		}
		id = read_id(&body, source, dw64);
		if (body.bad)
			p->ncorrupt++;
		else if (!is_cie_id(source, dw64, id))
			err = read_fde(img, p, source, source->debug ? id : (u64)(at - source->data) - id, &body);
	}
	if (c.bad || (!err && cursor_left(&c)))
		p->ncorrupt++;
	return err;
}

static bool load_range(struct image *img, struct cfi_parsed *p, u64 addr, u64 size)
{
	if (!size || size > img->size)
		return false;
	p->owned = malloc(size);
	if (p->owned && image_read(img, p->owned, size, addr)) {
		p->source[0] = (struct cfi_source){.data = p->owned, .size = size, .addr = addr};
		return true;
	}
	free(TAKE(p->owned));
	return false;
}

/* Without section headers: where .eh_frame_hdr says that .eh_frame starts. */
static bool eh_frame_start(struct image *img, u64 *ret)
{
	u8 bytes[16] = {0};
	const struct cfi_source hdr = {.data = bytes, .size = sizeof(bytes), .addr = img->eh_frame_hdr};
	struct cfi_cursor c = {.at = bytes + 4, .end = bytes + sizeof(bytes)};

	if (img->eh_frame_hdr_size < sizeof(bytes) || !image_read(img, bytes, sizeof(bytes), img->eh_frame_hdr) ||
	        bytes[0] != 1)
		return false;
	*ret = cfi_pointer(&c, &hdr, bytes[1]);
	if ((bytes[1] & 0x70) == DW_EH_PE_datarel)
		*ret += hdr.addr;
	return !c.bad;
}

static void load_eh_frame(struct image *img, struct cfi_parsed *p)
{
	u64 addr, size;

	if (image_section_range(img, ".eh_frame", &addr, &size) && load_range(img, p, addr, size))
		return;
	if (!eh_frame_start(img, &addr))
		return;
	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *seg = &img->segments[i];

		if (addr < seg->vaddr || addr - seg->vaddr >= seg->filesz)
			continue;
		if (load_range(img, p, addr, seg->filesz - (addr - seg->vaddr)))
			p->source[0].open = true;
		return;
	}
}

static void load_debug_frame(struct image *img, struct image *debug, struct cfi_parsed *p)
{
	u64 addr;
	Elf_Data *data = image_section(img, ".debug_frame", &addr);

	if (!data && debug)
		data = image_section(debug, ".debug_frame", &addr);
	if (data)
		p->source[1] =
		        (struct cfi_source){.data = data->d_buf, .size = data->d_size, .addr = addr, .debug = true};
}

struct error *cfi_parse(struct image *img, struct image *debug, struct cfi_parsed *ret)
{
	struct error *err = NULL;

	*ret = (struct cfi_parsed){0};
	load_eh_frame(img, ret);
	load_debug_frame(img, debug, ret);
	for (u32 i = 0; !err && i < 2; i++)
		if (ret->source[i].data)
			err = cfi_parse_source(img, ret, &ret->source[i]);
	return err;
}

void cfi_parsed_free(struct cfi_parsed *parsed)
{
	free(parsed->owned);
	free(parsed->cies);
	free(parsed->cie_hash);
	free(parsed->functions);
}
