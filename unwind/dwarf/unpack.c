/* SPDX-License-Identifier: Apache-2.0 */
#include "unpack.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <zstd.h>

#include "binary/elf_table.h"
#include "grow.h"

#define INPUT        (128u << 10)
#define SAVE_EVERY   (16ull << 20) /* a state is 85 KiB */
#define ZLIB_HEADER  2u
#define ZLIB_DEFLATE 8u
#define ZLIB_DICT    0x20u

struct saved {
	struct inflate_state state;
	u64 in, out; /* offsets in the packed and in the unpacked stream */
};

struct unpacker {
	struct image *img;
	enum packing packing;
	u64 offset, size, unpacked;
	u64 in, out; /* in: of what input[] has not */
	u8 *input;   /* NULL: at rest, neither of what follows is there */
	size_t next, have;
	struct inflate_state *state;
	ZSTD_DCtx *zstd;
	struct saved **saved; /* [n]: at or behind n * SAVE_EVERY */
	u32 nsaved;
};

static bool check_zlib(struct image *img, u64 offset, u64 size)
{
	u8 header[ZLIB_HEADER];

	return size > ZLIB_HEADER && elf_read(img, header, ZLIB_HEADER, offset) && (header[0] & 15) == ZLIB_DEFLATE &&
	       !(header[1] & ZLIB_DICT) && (header[0] << 8 | header[1]) % 31 == 0;
}

static void restart(struct unpacker *u)
{
	u->in = u->packing == PACKING_ZLIB ? ZLIB_HEADER : 0;
	u->out = u->next = u->have = 0;
	if (u->state)
		isal_inflate_init(u->state);
	if (u->zstd)
		ZSTD_DCtx_reset(u->zstd, ZSTD_reset_session_only);
}

void unpacker_rest(struct unpacker *u)
{
	for (u32 i = 0; i < u->nsaved; i++)
		free(u->saved[i]);
	free(u->saved);
	free(u->input);
	free(u->state);
	ZSTD_freeDCtx(u->zstd);
	u->saved = NULL;
	u->nsaved = 0;
	u->input = NULL;
	u->state = NULL;
	u->zstd = NULL;
	restart(u);
}

static bool wake(struct unpacker *u)
{
	if (u->input)
		return true;
	u->input = malloc(INPUT);
	if (u->packing == PACKING_ZLIB)
		u->state = malloc(sizeof(*u->state));
	else
		u->zstd = ZSTD_createDCtx();
	if (u->input && (u->state || u->zstd)) {
		restart(u);
		return true;
	}
	unpacker_rest(u);
	return false;
}

struct unpacker *unpacker_create(struct image *img, enum packing packing, u64 offset, u64 size, u64 unpacked)
{
	struct unpacker *u;

	if (offset > img->size || size > img->size - offset ||
	        (packing == PACKING_ZLIB && !check_zlib(img, offset, size)))
		return NULL;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->img = img;
	u->packing = packing;
	u->offset = offset;
	u->size = size;
	u->unpacked = unpacked;
	restart(u);
	return u;
}

void unpacker_destroy(struct unpacker *u)
{
	if (u)
		unpacker_rest(u);
	free(u);
}

u64 unpacker_at(const struct unpacker *u)
{
	return u->out;
}

/* Only a convenience: without memory for it the stream starts anew instead. */
static void save(struct unpacker *u)
{
	struct saved *s;

	if (u->packing != PACKING_ZLIB || u->out < (u64)(u->nsaved + 1) * SAVE_EVERY)
		return;
	s = grow(&u->saved, u->nsaved, sizeof(*u->saved)) ? NULL : malloc(sizeof(*s));
	if (!s)
		return;
	s->state = *u->state;
	s->in = u->in - (u->have - u->next);
	s->out = u->out;
	u->saved[u->nsaved++] = s;
}

void unpacker_seek(struct unpacker *u, u64 offset)
{
	u32 best = u->nsaved;

	while (best && u->saved[best - 1]->out > offset)
		best--;
	if (u->out <= offset && (!best || u->saved[best - 1]->out <= u->out))
		return;
	restart(u);
	if (best) {
		*u->state = u->saved[best - 1]->state;
		u->in = u->saved[best - 1]->in;
		u->out = u->saved[best - 1]->out;
	}
}

static bool refill(struct unpacker *u)
{
	u64 left = u->size - u->in;
	size_t size = left < INPUT ? left : INPUT;

	if (u->next < u->have)
		return true;
	if (!size || !elf_read(u->img, u->input, size, u->offset + u->in))
		return false;
	u->in += size;
	u->next = 0;
	u->have = size;
	return true;
}

/* Input may be used up while output still sits in the state. */
static size_t inflate_some(struct unpacker *u, u8 *dst, size_t size)
{
	bool more = refill(u);

	u->state->next_in = u->input + u->next;
	u->state->avail_in = more ? u->have - u->next : 0;
	u->state->next_out = dst;
	u->state->avail_out = size;
	if (isal_inflate(u->state) != ISAL_DECOMP_OK)
		return 0;
	u->next = u->have - u->state->avail_in;
	return !more && u->state->avail_out == size ? 0 : size - u->state->avail_out;
}

static size_t zstd_some(struct unpacker *u, u8 *dst, size_t size)
{
	ZSTD_outBuffer out = {dst, size, 0};
	bool more = refill(u);
	ZSTD_inBuffer in = {u->input, more ? u->have : 0, more ? u->next : 0};

	if (ZSTD_isError(ZSTD_decompressStream(u->zstd, &out, &in)))
		return 0;
	u->next = more ? in.pos : u->next;
	return out.pos;
}

bool unpacker_next(struct unpacker *u, u8 *dst, size_t size)
{
	u64 idle = 0, before;
	size_t done = 0, n;

	if (!wake(u))
		return false;
	while (done < size) {
		before = u->in;
		n = u->packing == PACKING_ZLIB ? inflate_some(u, dst + done, size - done)
		                               : zstd_some(u, dst + done, size - done);
		/* a call may eat input and give nothing yet, but not for ever */
		idle = n || u->in != before ? 0 : idle + 1;
		if (idle > 2)
			return false;
		done += n;
		u->out += n;
	}
	save(u);
	return true;
}
