/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of a live process as /proc/PID/maps lists them. */
#ifndef YRT_MAPS_H
#define YRT_MAPS_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "error.h"

struct map_line {
	u64 start, end, offset;
	u32 prot;  /* PROT_READ … */
	dev_t dev; /* as the kernel's mapping gives it, which need not be what stat says (overlay, btrfs) */
	u64 ino;   /* 0: no file */
	u64 file_start, file_end; /* another mapping, by which the file can be opened; 0: this one (process.c) */
	char *path;               /* path, [name], or "" (of shared memory without a file, too); " (deleted)" removed */
};

struct maps {
	struct map_line *lines; /* ascending */
	u32 nlines;
	u64 text_hash; /* of the lines of code as the kernel wrote them */
};

struct error *maps_read(pid_t pid, struct maps *ret);
/*
 * Are the lines of code still the same as when maps_read() returned this text_hash? Costs a third of maps_read().
 * False: maybe not.
 */
bool maps_code_is(pid_t pid, u64 text_hash);
void maps_free(struct maps *maps);
/* Do they have this start of the first thread's stack? Without such a line nobody knows: true. */
bool maps_have_stack(const struct maps *maps, u64 stack);
/* Of all that matters for code: maps with equal code have equal hashes. */
u64 maps_hash(const struct maps *maps);
/*
 * Opens the file behind a mapping, also if it was deleted or is in another mount namespace. -1: not possible (errno).
 * The file that the path names now is not taken for the mapped one. If the process is gone, opens the file of that path
 * here.
 */
int map_open(pid_t pid, const struct map_line *line);

#endif
