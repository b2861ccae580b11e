/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inlined functions, lines, types, variables and parameters of a hostile file: either the input is the whole file, or a
 * sound ELF header is put in front of sections that are cut out of it, so that their parsers are reached at once.
 * Whatever is found must be within bounds, and the same when asked again.
 */
#include <stdlib.h>
#include <string.h>

#include "elf_head.h"
#include "unwind/dwarf/types.h"
#include "unwind/symbols/inlines.h"

#define ASKED    96u
#define ANSWERED 200u /* names of each space */
#define NESTED   4u

static const char *const names[] = {"", ".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_line_str",
        ".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets", ".debug_aranges", ".shstrtab"};

#define SECTIONS  (sizeof(names) / sizeof(*names))
#define NAME_ROOM 24u

struct framed {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	Elf64_Shdr sh[SECTIONS];
	char names[SECTIONS * NAME_ROOM];
	u8 bytes[];
};

/* Two bytes each say how much of the rest a section gets; one bit, whether it is said to be compressed. */
static void cut_sections(struct framed *file, const u8 *data, size_t size)
{
	size_t head = 2 * (SECTIONS - 2), at = head, len;

	memcpy(file->bytes, data, size);
	for (size_t i = 1; i < SECTIONS; i++) {
		u16 word = 0;

		if (i < SECTIONS - 1)
			memcpy(&word, data + 2 * (i - 1), 2);
		len = at < size ? (word & 0x7fff) % (size - at + 1) : 0;
		strcpy(file->names + i * NAME_ROOM, names[i]);
		file->sh[i] = (Elf64_Shdr){.sh_name = i * NAME_ROOM,
		        .sh_type = SHT_PROGBITS,
		        .sh_flags = word & 0x8000 ? SHF_COMPRESSED : 0,
		        .sh_offset = sizeof(*file) + at,
		        .sh_size = len};
		at += len;
	}
	file->sh[SECTIONS - 1] = (Elf64_Shdr){.sh_name = (SECTIONS - 1) * NAME_ROOM,
	        .sh_type = SHT_STRTAB,
	        .sh_offset = offsetof(struct framed, names),
	        .sh_size = sizeof(file->names)};
}

static void *frame(const u8 *data, size_t size)
{
	struct framed *file = calloc(1, sizeof(*file) + size);

	file->eh = elf_head(offsetof(struct framed, ph), offsetof(struct framed, sh), SECTIONS);
	file->ph = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x1000, .p_memsz = 0x4000};
	cut_sections(file, data, size);
	return file;
}

static u64 sum_of(const struct inline_frame *frames, u32 n)
{
	u64 sum = 0;

	if (n > INLINES_MAX)
		abort();
	for (u32 i = 0; i < n; i++)
		sum = sum * 31 + frames[i].line + frames[i].column + (frames[i].name ? strlen(frames[i].name) : 0) +
		      (frames[i].file ? strlen(frames[i].file) : 0);
	return sum;
}

static u64 look(struct inlines *in, u64 addr)
{
	const struct inline_frame *frames;
	u32 n;

	if (inlines_find(in, addr, &frames, &n))
		abort();
	return sum_of(frames, n);
}

static struct error *found(void *ctx, u32 index, const struct inline_frame *frames, u32 n)
{
	((u64 *)ctx)[index] = sum_of(frames, n);
	return NULL;
}

static void ask(struct image *img)
{
	struct inlines *in;
	u64 addrs[ASKED], all[ASKED], again[ASKED];

	if (inlines_open(img, "", &in))
		abort();
	if (!in)
		return;
	for (u32 i = 0; i < ASKED; i++)
		addrs[i] = i * 16 + (i & 1 ? 0x1000 : 0);
	if (inlines_find_all(in, addrs, ASKED, found, all))
		abort();
	for (u32 i = 0; i < ASKED; i++)
		if (look(in, addrs[i]) != look(in, addrs[i]))
			abort();
	inlines_rest(in);
	if (inlines_find_all(in, addrs, ASKED, found, again) || memcmp(all, again, sizeof(all)))
		abort();
	inlines_close(in);
}

struct asking {
	struct types *types;
	enum type_space space;
	u32 left;
};

/* Touches all of it, and aborts where two ways of asking disagree. */
static void look_at(const struct type *type, u32 depth)
{
	const struct type_member *members = NULL;
	struct type_member found;
	u32 n;

	if (!type || !depth)
		return;
	n = type_members(type, &members);
	if (!type->name || (type->kind == TYPE_POINTER && !type->to))
		abort();
	type_attribute(type, 0x1c); /* DW_AT_const_value */
	for (u32 i = 0; i < n && i < ASKED; i++) {
		if (!members[i].type || members[i].bits > 64 || members[i].word > 8)
			abort();
		if (members[i].name && (!type_member(type, members[i].name, &found) || !found.type))
			abort();
		look_at(members[i].type, depth - 1);
	}
	look_at(type->to, depth - 1);
}

static void look_at_parameter(void *ctx, const char *name)
{
	if (!name)
		abort();
}

static void look_at_name(void *ctx, const char *name)
{
	struct asking *a = ctx;
	struct type_variable v;
	struct type_function f;
	const struct type *type;
	s64 number;

	if (!a->left || !a->left--)
		return;
	if (a->space <= TYPES_PLAIN) {
		look_at(types_find(a->types, a->space, name), NESTED);
		types_disagree(a->types, a->space, name);
	} else if (a->space == TYPES_VARIABLE && types_variable(a->types, name, &v)) {
		look_at(v.type, NESTED);
	} else if (a->space == TYPES_FUNCTION && types_function(a->types, name, &f)) {
		look_at(f.type, NESTED);
		types_parameters(a->types, name, look_at_parameter, NULL);
		types_parameter(a->types, name, "n", &type);
	} else if (types_enumerator(a->types, name, &number, &type)) {
		look_at(type, NESTED);
	}
}

static void ask_types(struct image *img)
{
	struct asking a = {0};

	if (types_open(img, &a.types))
		abort();
	if (!a.types)
		return;
	for (a.space = TYPES_STRUCT; a.space <= TYPES_ENUMERATOR; a.space++) {
		a.left = ANSWERED;
		types_names(a.types, a.space, look_at_name, &a);
	}
	types_close(a.types);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool framed = size > 2 * SECTIONS && data[0] & 1;
	struct image *img;
	struct error *err;
	void *bytes;

	if (!size)
		return 0;
	data++;
	size--;
	bytes = framed ? frame(data, size) : memcpy(malloc(size + 1), data, size);
	err = image_from_memory(bytes, framed ? sizeof(struct framed) + size : size, "fuzz", &img);
	if (err) {
		if (framed)
			abort();
		error_free(err);
		return 0;
	}
	ask(img);
	ask_types(img);
	image_put(img);
	return 0;
}
