/* SPDX-License-Identifier: Apache-2.0 */
#include "gunzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "unwind/cleanup.h"

#define PACKED_MOST   (256u << 20)
#define UNPACKED_MOST (1u << 30)

static struct error *read_all(FILE *in, const char *name, u8 **ret, size_t *size)
{
	size_t room = 0, n = 0, got;
	u8 *bytes = NULL;

	do {
		u8 *more = realloc(bytes, room = 2 * room + (64 << 10));

		if (!more) {
			free(bytes);
			return &error_no_memory;
		}
		bytes = more;
		n += got = fread(bytes + n, 1, room - n, in);
	} while (got && n < PACKED_MOST);
	*ret = bytes;
	*size = n;
	if (n >= PACKED_MOST || ferror(in)) /* bytes are the caller's */
		return error_new(
		        ERROR_INPUT, "cannot read %s: %s", name, ferror(in) ? strerror(errno) : "it is too large");
	return NULL;
}

/* False: it is not a gzip file, ends early, or is too large. */
static bool inflate_all(z_stream *z, u8 **ret, size_t *size)
{
	size_t room = 0;
	int code = Z_OK;

	while (code == Z_OK && room < UNPACKED_MOST) {
		u8 *more = realloc(*ret, room = 2 * room + (256 << 10));

		if (!more)
			return false;
		*ret = more;
		z->next_out = more + *size;
		z->avail_out = (unsigned)(room - *size);
		code = inflate(z, Z_NO_FLUSH);
		*size = room - z->avail_out;
		if (code == Z_OK && z->avail_out)
			return false;
	}
	return code == Z_STREAM_END;
}

static struct error *unpack(u8 *packed, size_t n, const char *name, u8 **ret, size_t *size)
{
	z_stream z = {.next_in = packed, .avail_in = (unsigned)n};
	bool good;

	if (inflateInit2(&z, MAX_WBITS + 16) != Z_OK)
		return &error_no_memory;
	good = inflate_all(&z, ret, size);
	inflateEnd(&z);
	return good ? NULL : error_new(ERROR_INPUT, "%s is not a complete gzip file", name);
}

struct error *gunzip_all(FILE *in, const char *name, u8 **ret, size_t *size)
{
	cleanup(free) u8 *packed = NULL;
	size_t n = 0;
	struct error *err = read_all(in, name, &packed, &n);

	*ret = NULL;
	*size = 0;
	return err ? err : unpack(packed, n, name, ret, size);
}
