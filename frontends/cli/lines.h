/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of input in batches of as many as are available, so that a script gets its answer and a long list is one batch.
 */
#ifndef YRT_CLI_LINES_H
#define YRT_CLI_LINES_H

#include "unwind/error.h"
#include <types.h>

/*
 * line() for each line (without its newline; it stays until pause() returns), pause() when nothing more is there at the
 * moment, and at the end. A batch is at most some MiB. The first error of any of them ends it.
 */
struct error *lines_read(
        int fd, struct error *(*line)(void *ctx, const char *text), struct error *(*pause)(void *ctx), void *ctx);

/* The number that text starts with, as llvm-symbolizer takes it: 0x, 0 and 0b give the base, "CODE" may be in front. */
bool address_parse(const char *text, u64 *ret);

#endif
