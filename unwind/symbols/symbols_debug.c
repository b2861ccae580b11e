/* SPDX-License-Identifier: Apache-2.0 */
/* Where names are that are not in the file itself. */
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cleanup.h"
#include "binary/elf_table.h"
#include "binary/root.h"
#include "symbols.h"

#define DEBUG_DIR          "/usr/lib/debug"
#define PATH_ROOM          4096
#define LINK_NAME_MAX      255
#define CRC_CHUNK          (64u << 10)
#define CRC_FILE_MAX       (2ull << 30)
#define UNPACKED_MAX       (64u << 20)
#define DECODER_MEMORY_MAX (80ull << 20) /* what xz -9 needs is 65 MiB */

struct debug_link {
	char name[LINK_NAME_MAX + 1];
	u32 crc;
};

struct search {
	struct image *img;
	int root;                      /* -1: the host's */
	const struct debug_link *link; /* NULL: found by build-id, which must match then */
	struct image *found;
	char *misfit; /* the first file that lay there but belongs to another build */
};

static bool crc_holds(struct image *img, u32 expected)
{
	cleanup(free) u8 *buf = malloc(CRC_CHUNK);
	uLong crc = crc32(0, NULL, 0);
	size_t size;
	u64 at;

	if (!buf || img->size > CRC_FILE_MAX)
		return false;
	for (at = 0; at < img->size; at += size) {
		size = img->size - at < CRC_CHUNK ? img->size - at : CRC_CHUNK;
		if (!elf_read(img, buf, size, at))
			return false;
		crc = crc32(crc, buf, size);
	}
	return crc == expected;
}

static bool belongs(const struct search *search, struct image *debug)
{
	const struct image *img = search->img;

	if (debug->machine != img->machine || (debug->dev == img->dev && debug->ino == img->ino))
		return false;
	if (img->build_id_len && debug->build_id_len)
		return img->build_id_len == debug->build_id_len &&
		       !memcmp(img->build_id, debug->build_id, img->build_id_len);
	return search->link && crc_holds(debug, search->link->crc);
}

/* True: found, or err is set. */
static bool try_path(struct search *search, struct error **err, const char *format, ...)
{
	struct image *debug;
	char path[PATH_ROOM];
	va_list args;
	int fd, len;

	va_start(args, format);
	len = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	fd = len < PATH_ROOM ? root_open_file(search->root, path, 0) : -1;
	if (fd < 0)
		return false;
	*err = image_open(fd, path, &debug);
	if (*err == &error_no_memory)
		return true;
	if (*err) {
		error_free(*err);
		*err = NULL;
		return false;
	}
	if (belongs(search, debug)) {
		search->found = debug;
		return true;
	}
	image_put(debug);
	if (!search->misfit)
		search->misfit = strdup(path);
	return false;
}

static bool try_build_id(struct search *search, struct error **err)
{
	char hex[IMAGE_ID_TEXT];

	if (search->img->build_id_len < 2)
		return false;
	image_id_text(search->img, hex);
	return try_path(search, err, DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2);
}

static bool try_cache_in(struct search *search, struct error **err, const char *variable, const char *below)
{
	const char *dir = getenv(variable);
	char hex[IMAGE_ID_TEXT];

	if (!dir || !*dir)
		return false;
	image_id_text(search->img, hex);
	return try_path(search, err, "%s%s/%s/debuginfo", dir, below, hex);
}

/* What debuginfod's client has got before lies here (elfutils 0.188, debuginfod/debuginfod-client.c). */
static bool try_cache(struct search *search, struct error **err)
{
	search->root = -1;
	return search->img->build_id_len && (try_cache_in(search, err, "DEBUGINFOD_CACHE_PATH", "") ||
	                                            try_cache_in(search, err, "HOME", "/.debuginfod_client_cache") ||
	                                            try_cache_in(search, err, "XDG_CACHE_HOME", "/debuginfod_client") ||
	                                            try_cache_in(search, err, "HOME", "/.cache/debuginfod_client"));
}

static bool try_link(struct search *search, struct error **err)
{
	const char *path = search->img->path, *slash = strrchr(path, '/'), *name = search->link->name;
	int dir = slash ? slash - path : 0;

	if (*path != '/' || dir > PATH_ROOM)
		return false;
	return try_path(search, err, "%.*s/%s", dir, path, name) ||
	       try_path(search, err, "%.*s/.debug/%s", dir, path, name) ||
	       try_path(search, err, DEBUG_DIR "%.*s/%s", dir, path, name);
}

/* A name, zeroes up to a multiple of 4, a CRC; the name leads nowhere else. */
static bool read_link(struct image *img, struct debug_link *ret)
{
	Elf_Data *data = image_section(img, ".gnu_debuglink", NULL);
	size_t len;

	if (!data)
		return false;
	len = strnlen(data->d_buf, data->d_size);
	if (!len || len > LINK_NAME_MAX || (len & ~3ul) + 8 > data->d_size || memchr(data->d_buf, '/', len))
		return false;
	memcpy(ret->name, data->d_buf, len);
	ret->name[len] = 0;
	memcpy(&ret->crc, (char *)data->d_buf + (len & ~3ul) + 4, sizeof(ret->crc));
	return true;
}

static bool try_roots(
        struct search *search, int root, struct error **err, bool (*try)(struct search *, struct error **))
{
	search->root = root;
	if (root >= 0 && try(search, err))
		return true;
	search->root = -1;
	return try(search, err);
}

static struct error *search_all(struct search *search, const char *root)
{
	cleanup(close) int fd = root_open(root);
	struct error *err = NULL;
	struct debug_link link;

	if (try_roots(search, fd, &err, try_build_id) || try_cache(search, &err))
		return err;
	if (read_link(search->img, &link)) {
		search->link = &link;
		try_roots(search, fd, &err, try_link);
	}
	return err;
}

struct error *symbols_debug_file(struct image *img, const char *root, struct image **ret)
{
	struct search search = {.img = img};
	struct error *err = search_all(&search, root);

	free(search.misfit);
	if (!err)
		*ret = search.found;
	if (!err && search.found)
		search.found->cache_dir = img->cache_dir;
	return err;
}

char *symbols_debug_misfit(struct image *img, const char *root)
{
	struct search search = {.img = img};

	error_free(search_all(&search, root));
	image_put(search.found);
	if (!search.found)
		return search.misfit;
	free(search.misfit);
	return NULL;
}

/* Grows with what really comes out, so a small bomb is bounded by UNPACKED_MAX. */
static struct error *unpack(lzma_stream *xz, char **ret, size_t *ret_size)
{
	cleanup(free) char *out = NULL;
	size_t room = xz->avail_in * 4 + 4096;
	lzma_ret status = LZMA_OK;
	char *grown;

	for (; status == LZMA_OK && room <= UNPACKED_MAX; room *= 2) {
		grown = realloc(out, room);
		if (!grown)
			return &error_no_memory;
		out = grown;
		xz->next_out = (u8 *)out + xz->total_out;
		xz->avail_out = room - xz->total_out;
		status = lzma_code(xz, LZMA_FINISH);
	}
	if (status == LZMA_STREAM_END) {
		*ret_size = xz->total_out;
		*ret = TAKE(out);
	}
	return NULL;
}

struct error *symbols_minidebug(struct image *img, struct image **ret)
{
	Elf_Data *data = image_section(img, ".gnu_debugdata", NULL);
	lzma_stream xz = LZMA_STREAM_INIT;
	char *bytes = NULL;
	struct error *err;
	size_t size;

	*ret = NULL;
	if (!data || data->d_size > UNPACKED_MAX || lzma_stream_decoder(&xz, DECODER_MEMORY_MAX, 0) != LZMA_OK)
		return NULL;
	xz.next_in = data->d_buf;
	xz.avail_in = data->d_size;
	err = unpack(&xz, &bytes, &size);
	lzma_end(&xz);
	if (err || !bytes)
		return err;
	err = image_from_memory(bytes, size, img->path, ret);
	if (err == &error_no_memory)
		return err;
	error_free(err);
	return NULL;
}
