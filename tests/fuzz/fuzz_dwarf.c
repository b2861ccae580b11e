/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inlined functions and lines of a hostile file: either the input is the whole file, or a sound ELF header is put in
 * front of sections that are cut out of it, so that their parsers are reached at once. Whatever is found must be within
 * bounds, and the same when asked again.
 */
#include <stdlib.h>
#include <string.h>

#include "elf_head.h"
#include "unwind/symbols/inlines.h"

#define ASKED 96u

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
	image_put(img);
	return 0;
}
