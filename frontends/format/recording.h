/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording (.yrt): a whole profile in a file, to be drawn again elsewhere.
 *
 * The file, in little-endian order: a header of 16 bytes (RECORDING_MAGIC, version, 0), then sections. A section is a
 * struct section_header and its stored bytes, packed by zstd where that pays:
 *
 *	meta       JSON: how the profile was made, statistics (--stats), words of the kinds, totals of all below
 *	images     path and build-id of each, from number 1 on
 *	functions  kind, flags (enum frame_flag), line, image, address, name, module, file of each, from number 2 on
 *	nodes      in preorder, the root first: levels above a child of the node before it, function, count
 *	more       of the nodes of the next section, in their order: what else was counted (profile_meta.more)
 *	defined    of the functions of the next section, in their order: the line where each is defined; 0: unknown
 *	times      when samples were taken: the step (ns), then of some of the nodes before it, in order: nodes above
 *	           the one before it in this section, how many samples, and of each the steps since the one before it,
 *	           of the first since the start
 *	end        nothing
 *
 * meta comes first; images, functions and nodes may come in several sections, what is referred to before what refers
 * to it. Numbers are LEB128, strings have their length in front. A section of an unknown type is skipped, so what old
 * readers can do without may be added; any other change raises the version.
 *
 * A file that ends early is cut: what is whole is a profile, and meta says how much is missing.
 */
#ifndef YRT_FORMAT_RECORDING_H
#define YRT_FORMAT_RECORDING_H

#include <stddef.h>

#include "filter.h"

#define RECORDING_MAGIC   "\x89yrt\r\n\x1a\n" /* a transfer as text breaks it */
#define RECORDING_VERSION 1
#define RECORDING_HEADER  16
#define RECORDING_SECTION (16u << 20)
#define RECORDING_COUNT   (1ull << 53) /* of all samples, at most: JSON's readers know no more */

enum recording_section {
	SECTION_META = 1,
	SECTION_IMAGES,
	SECTION_FUNCTIONS,
	SECTION_NODES,
	SECTION_END,
	SECTION_MORE,
	SECTION_TIMES,
	SECTION_DEFINED
};
enum recording_encoding { ENCODING_RAW, ENCODING_ZSTD };

struct section_header { /* little-endian */
	u32 type, encoding;
	u64 stored, raw;
	u64 content; /* XXH3 of the stored bytes */
	u64 header;  /* XXH3 of the header before it: distinguishes a wrong size from a file that ends early */
};
_Static_assert(sizeof(struct section_header) == 40, "as described above");

struct recording {            /* what was read besides the profile */
	u64 present, missing; /* samples: read, whatever the filters did; counted by meta and not there */
	bool cut;             /* the file ends early */
};

/* Reads from in, past its header, into a new profile what s lets through. name: of the file, for messages. */
struct error *recording_read(FILE *in, const char *name, struct filter *s, struct recording *ret);
/* Whether a file that begins with these RECORDING_HEADER bytes is one. An error if it is of a newer version. */
struct error *recording_check(const u8 *header, const char *name, bool *ret);

#endif
