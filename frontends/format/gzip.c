/* SPDX-License-Identifier: Apache-2.0 */
#include "gzip.h"

#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (MAX_WBITS + 16) /* zlib.h: 16 more than the window's bits asks for a gzip header */
#define GZIP_LEVEL  2                /* a profile of a million stacks is to be written in about a second */
#define GZIP_MEMORY 9

struct gzip {
	z_stream z;
	FILE *out;
	unsigned char buffer[64 << 10];
};

struct error *gzip_create(FILE *out, struct gzip **ret)
{
	struct gzip *gz = calloc(1, sizeof(*gz));

	if (!gz)
		return &error_no_memory;
	gz->out = out;
	if (deflateInit2(&gz->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(gz);
		return &error_no_memory;
	}
	*ret = gz;
	return NULL;
}

void gzip_destroy(struct gzip *gz)
{
	if (!gz)
		return;
	deflateEnd(&gz->z);
	free(gz);
}

static void push(struct gzip *gz, int flush)
{
	do {
		gz->z.next_out = gz->buffer;
		gz->z.avail_out = sizeof(gz->buffer);
		deflate(&gz->z, flush);
		fwrite(gz->buffer, 1, sizeof(gz->buffer) - gz->z.avail_out, gz->out);
	} while (!gz->z.avail_out);
}

void gzip_write(struct gzip *gz, const void *bytes, size_t size)
{
	gz->z.next_in = (unsigned char *)bytes;
	gz->z.avail_in = (unsigned)size;
	push(gz, Z_NO_FLUSH);
}

void gzip_finish(struct gzip *gz)
{
	gzip_write(gz, NULL, 0);
	push(gz, Z_FINISH);
}
