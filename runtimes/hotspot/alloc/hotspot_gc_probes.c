/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <string.h>

#include "hotspot_alloc_code.h"

#define NOTE_PROBE 3 /* NT_STAPSDT */
#define NOP        0x90

struct probe { /* what the note of a USDT probe begins with (sys/sdt.h) */
	u64 pc, base, semaphore;
};

static size_t note_align(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* Two strings, and the arguments, behind it. */
static bool is_gc_begin(const u8 *desc, size_t size)
{
	static const char name[] = "hotspot\0gc__begin";

	return size >= sizeof(struct probe) + sizeof(name) && !memcmp(desc + sizeof(struct probe), name, sizeof(name));
}

/* An address as the linker left it; if the file's sections have been moved since (prelink), the base shows by how
 * much. */
static bool probe_place(struct image *img, const u8 *desc, u64 *ret)
{
	u64 base, size;
	struct probe p;
	u8 first;

	memcpy(&p, desc, sizeof(p));
	if (!image_section_range(img, ".stapsdt.base", &base, &size) || p.semaphore)
		return false;
	*ret = p.pc + (base - p.base);
	return image_read(img, &first, 1, *ret) && first == NOP;
}

u32 hotspot_gc_probes(struct image *img, u64 *ret, u32 max)
{
	Elf_Data *notes = image_section(img, ".note.stapsdt", NULL);
	const u8 *at = notes ? notes->d_buf : NULL;
	size_t left = notes ? notes->d_size : 0;
	u32 n = 0;

	while (left >= sizeof(Elf64_Nhdr) && n < max) {
		Elf64_Nhdr nh;
		size_t name, desc;

		memcpy(&nh, at, sizeof(nh));
		at += sizeof(nh);
		left -= sizeof(nh);
		name = note_align(nh.n_namesz);
		desc = note_align(nh.n_descsz);
		if (name > left || desc > left - name)
			break;
		if (nh.n_type == NOTE_PROBE && is_gc_begin(at + name, nh.n_descsz) &&
		        probe_place(img, at + name, &ret[n]))
			n++;
		at += name + desc;
		left -= name + desc;
	}
	return n;
}
