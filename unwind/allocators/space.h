/* SPDX-License-Identifier: Apache-2.0 */
/* All memory of a process, or of a core: its mappings, how much of each is in memory, and who has accounted for it. */
#ifndef YRT_SPACE_H
#define YRT_SPACE_H

#include <types.h>

#include "binary/core_file.h"
#include "binary/maps.h"
#include "binary/memory.h"
#include "pages.h"

struct space_map {
	struct amount all, claimed; /* without blocks; all.size is the mapping's */
	bool shared;
	bool named_stack; /* [stack] */
};

struct space {
	pid_t pid;              /* 0: a core, or a test */
	struct core_file *core; /* not owned */
	struct memory *memory;
	struct maps maps;
	struct space_map *of; /* of each line of maps */
	struct pages *pages;
	bool swapped_too; /* read pages that are swapped out */
};

/* core: NULL, or what is read in place of pid; it must outlive ret. ERROR_NO_PROCESS, ERROR_PERMISSION. */
struct error *space_open(pid_t pid, struct core_file *core, struct space *ret);
void space_close(struct space *s);

/* The index of the mapping that holds addr; maps.nlines: none. */
u32 space_find(const struct space *s, u64 addr);
/* Private memory without a file that may be written, as allocators use. */
bool space_is_anonymous(const struct space *s, u32 map);
/* The writable memory of a file's data, if this mapping begins it: what is mapped of it, and the .bss behind. */
bool space_data(const struct space *s, u32 map, u64 *start, u64 *end);
/* The same without memory behind it that is not the file's, if that much is left: for what tries each of its words. */
bool space_variables(const struct space *s, u32 map, u64 least, u64 *start, u64 *end);
/* [start, end) is accounted for by somebody, with so much of it in memory and swapped out. */
void space_claim(struct space *s, u64 start, u64 end);
/* Has anybody claimed a part of it? */
bool space_is_claimed(const struct space *s, u32 map);

#endif
