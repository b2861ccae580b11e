/* SPDX-License-Identifier: Apache-2.0 */
#include "core_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "cleanup.h"

#define PART      (1u << 20)
#define SIZE_MOST (1ull << 40)

enum packing { PLAIN, GZIP, XZ, ZSTD };

struct unpack {
	const char *path;
	int from, to;
	u64 size; /* written */
	bool cut;
	u8 in[PART], out[PART];
	size_t have; /* in in[] */
};

static enum packing packing_of(const u8 *magic, size_t n)
{
	if (n >= 2 && magic[0] == 0x1f && magic[1] == 0x8b)
		return GZIP;
	if (n >= 6 && !memcmp(magic,
	                      "\xfd"
	                      "7zXZ",
	                      6))
		return XZ;
	return n >= 4 && !memcmp(magic, "\x28\xb5\x2f\xfd", 4) ? ZSTD : PLAIN;
}

bool core_is_packed(const u8 *magic, size_t n)
{
	return packing_of(magic, n) != PLAIN;
}

static struct error *cannot_write(void)
{
	return error_hint(error_errno(errno, "cannot unpack the core"), "TMPDIR names a directory with more room");
}

static struct error *put(struct unpack *u, size_t n)
{
	size_t at = 0;

	while (at < n && !u->out[at])
		at++;
	if (n > SIZE_MOST - u->size)
		return error_new(ERROR_INPUT, "%s unpacks to more than 1 TiB", u->path);
	for (; at < n;) {
		ssize_t done = pwrite(u->to, u->out + at, n - at, (off_t)(u->size + at));

		if (done < 0 && errno != EINTR)
			return cannot_write();
		at += done > 0 ? (size_t)done : 0;
	}
	u->size += n;
	return NULL;
}

/* More input; have 0: there is none. */
static struct error *take(struct unpack *u)
{
	ssize_t n;

	do
		n = read(u->from, u->in, sizeof(u->in));
	while (n < 0 && errno == EINTR);
	u->have = n > 0 ? (size_t)n : 0;
	return n < 0 ? error_new(ERROR_INPUT, "cannot read %s: %s", u->path, strerror(errno)) : NULL;
}

static struct error *copy(struct unpack *u)
{
	struct error *err = NULL;

	while (!err && u->have) {
		memcpy(u->out, u->in, u->have);
		err = put(u, u->have);
		if (!err)
			err = take(u);
	}
	return err;
}

static struct error *corrupt(const struct unpack *u)
{
	return error_new(ERROR_INPUT, "%s is compressed, but its data is corrupt", u->path);
}

static struct error *unpack_gzip(struct unpack *u)
{
	struct error *err = NULL;
	z_stream z = {0};
	int code = Z_OK;

	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return &error_no_memory;
	while (!err && u->have && code != Z_STREAM_END) {
		z.next_in = u->in;
		z.avail_in = (uInt)u->have;
		do {
			z.next_out = u->out;
			z.avail_out = PART;
			code = inflate(&z, Z_NO_FLUSH);
			err = code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? put(u, PART - z.avail_out)
			                                                                  : corrupt(u);
		} while (!err && code == Z_OK && (z.avail_in || !z.avail_out));
		if (!err && code != Z_STREAM_END)
			err = take(u);
	}
	u->cut = code != Z_STREAM_END;
	inflateEnd(&z);
	return err;
}

static struct error *unpack_xz(struct unpack *u)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret code = lzma_stream_decoder(&z, 1ull << 30, 0);
	struct error *err = code == LZMA_OK ? NULL : &error_no_memory;

	while (!err && u->have && code != LZMA_STREAM_END) {
		z.next_in = u->in;
		z.avail_in = u->have;
		do {
			z.next_out = u->out;
			z.avail_out = PART;
			code = lzma_code(&z, LZMA_RUN);
			err = code == LZMA_OK || code == LZMA_STREAM_END || code == LZMA_BUF_ERROR
			              ? put(u, PART - z.avail_out)
			              : corrupt(u);
		} while (!err && code == LZMA_OK && (z.avail_in || !z.avail_out));
		if (!err && code != LZMA_STREAM_END)
			err = take(u);
	}
	u->cut = code != LZMA_STREAM_END;
	lzma_end(&z);
	return err;
}

static struct error *unpack_zstd(struct unpack *u)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	struct error *err = z ? NULL : &error_no_memory;
	size_t left = 1;

	while (!err && u->have) {
		ZSTD_inBuffer in = {u->in, u->have, 0};

		do {
			ZSTD_outBuffer out = {u->out, PART, 0};

			left = ZSTD_decompressStream(z, &out, &in);
			err = ZSTD_isError(left) ? corrupt(u) : put(u, out.pos);
			if (out.pos < PART && in.pos == in.size)
				break;
		} while (!err);
		if (!err)
			err = take(u);
	}
	u->cut = left != 0;
	ZSTD_freeDStream(z);
	return err;
}

static int open_nameless(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

struct error *core_unpack(int fd, const char *path, int *ret, bool *cut)
{
	static struct error *(*const how[])(struct unpack * u) = {
	        [PLAIN] = copy, [GZIP] = unpack_gzip, [XZ] = unpack_xz, [ZSTD] = unpack_zstd};
	cleanup(free) struct unpack *u = calloc(1, sizeof(*u));
	struct error *err;

	*ret = -1;
	if (!u)
		return &error_no_memory;
	u->path = path;
	u->from = fd;
	u->to = open_nameless();
	if (u->to < 0)
		return cannot_write();
	err = take(u);
	if (!err)
		err = how[packing_of(u->in, u->have)](u);
	if (!err && ftruncate(u->to, (off_t)u->size))
		err = cannot_write();
	if (err) {
		close(u->to);
		return err;
	}
	*ret = u->to;
	*cut = u->cut;
	return NULL;
}
