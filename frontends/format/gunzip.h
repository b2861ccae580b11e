/* SPDX-License-Identifier: Apache-2.0 */
/* A whole gzip file into memory. */
#ifndef YRT_FORMAT_GUNZIP_H
#define YRT_FORMAT_GUNZIP_H

#include <stdio.h>
#include <types.h>

#include "unwind/error.h"

/* At most 256 MiB of in, which unpack to about 1 GiB at most. *ret is the caller's to free, after an error, too. name:
 * for errors. */
struct error *gunzip_all(FILE *in, const char *name, u8 **ret, size_t *size);

#endif
