/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs move their text to anonymous memory at the same addresses, to get huge pages for it (node --use-largepages,
 * MySQL, HHVM, Chrome OS, liblppreload). Where all bytes are still those of the file, the mapping is treated as one of
 * the file: its rows and names hold.
 */
#ifndef YRT_MOVED_TEXT_H
#define YRT_MOVED_TEXT_H

#include <sys/types.h>
#include <types.h>

#include "binary/maps.h"

struct memory;

#define MOVED_TEXTS_MAX 64 /* of one process whose answer is kept */
struct moved_texts {
	struct moved_text {
		u64 start, end, offset, ino;
		bool same;
	} known[MOVED_TEXTS_MAX];
	u32 n; /* so far: the last ones are kept */
};

/*
 * Makes lines of moved text lines of their files. Candidates are compared with the file once, whole; bytes that a
 * breakpoint replaced do not count. *texts: NULL at first; free it.
 */
void moved_text_restore(struct moved_texts **texts, pid_t pid, struct memory *memory, struct maps *maps);

#endif
