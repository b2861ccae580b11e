/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads symbols in a separate thread. For a large file this takes tens of ms, for which the thread that follows
 * processes must not wait. The reader opens each file anew, so it shares nothing with others except its
 * results.
 */
#ifndef YRT_NAME_READER_H
#define YRT_NAME_READER_H

#include <stdbool.h>
#include <sys/types.h>

#include "c_names.h"
#include "error.h"
#include "binary/image.h"
#include "symbols.h"

struct name_reader;

struct error *name_reader_create(struct name_reader **ret);
void name_reader_destroy(struct name_reader *r); /* NULL is fine */
/* The thread, for setpriority(). */
pid_t name_reader_tid(const struct name_reader *r);
/* Signals (EPOLLIN | EPOLLET) when something was read. */
int name_reader_fd(const struct name_reader *r);
struct file_names { /* what a stripped file gives besides */
	bool read;  /* false: it was not looked for */
	struct c_names by_language;
};

/*
 * Are all names of img loaded that there will ever be? If not, they are requested. True: *ret becomes the caller's,
 * once, so do not ask again. img then owns its symbols, and, if it was stripped, its classes (rtti.h). root as for
 * symbols_load(). img must live as long as the reader.
 */
bool name_reader_has(struct name_reader *r, struct image *img, const char *root, struct file_names *ret);
/* Waits for all that was asked for. */
void name_reader_wait(struct name_reader *r);

#endif
