/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A section of debug information, read piece by piece. It has address space for the whole section, but memory only for
 * the parts that were used recently. Compressed sections (SHF_COMPRESSED with zlib or zstd, and the older .zdebug_*)
 * are unpacked as a stream; for zlib a saved state every few MiB makes going back cheap. The file is not mapped,
 * because it may be truncated at any time.
 */
#ifndef YRT_DWARF_SECTION_H
#define YRT_DWARF_SECTION_H

#include <types.h>

#include "binary/image.h"

#define SECTION_CHUNK  (1ull << 18)
#define SECTION_MAX    (16ull << 30) /* unpacked */
#define SECTION_CHUNKS 4u            /* in memory at once, unless one request needs more */
#define SECTION_WIDE   24u           /* of entries: those of inlined functions lie anywhere */
#define SECTION_RANDOM 24u           /* of strings, which are read in no order */

struct unpacker;   /* section.c */
struct read_ahead; /* ahead.h */

struct dwarf_section {
	struct image *img; /* NULL: absent */
	u64 size;          /* unpacked */
	u64 offset;        /* in the file, of an unpacked one */
	u8 *bytes;         /* within place, at the start of a chunk's size */
	void *place;
	u64 *used; /* of each chunk: when it was last asked for; 0: not in memory */
	u64 clock;
	u32 present, most, nchunks; /* most: at once */
	struct unpacker *unpacker;  /* NULL: not compressed */
	struct read_ahead *ahead;   /* NULL: none is running */
	u32 next;                   /* the chunk that the stream gives next */
	u32 granted;                /* the first that the thread may not write to yet */
};

/* ".debug_info" and so on. img must outlive it. An absent or unreadable section is one of size 0. */
void section_open(struct dwarf_section *s, struct image *img, const char *name);
void section_close(struct dwarf_section *s);
/* Gives its memory back; it can be read again, from the start. */
void section_rest(struct dwarf_section *s);
/* Announces that the section will be read from start to end: a thread unpacks ahead. */
void section_sequential(struct dwarf_section *s);
/* Announces offsets in order, though with gaps: little is kept. */
void section_ordered(struct dwarf_section *s);
/* len bytes at offset, valid until the next call; NULL: not within the section, or the file is corrupt there. */
const u8 *section_need(struct dwarf_section *s, u64 offset, u64 len);
/* A string, at most max bytes of it: its bytes (valid until the next call) and length. NULL: no string there. */
const char *section_string(struct dwarf_section *s, u64 offset, u64 max, u64 *ret_len);

#endif
