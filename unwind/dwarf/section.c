/* SPDX-License-Identifier: Apache-2.0 */

#include "section.h"

#include <gelf.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <types.h>
#include <zstd.h>

#include "binary/elf_table.h"
#include "binary/image.h"
#include "grow.h"
#include "thread_start.h"

/* A compressed section as a stream that can go back. */

enum packing {
	PACKING_ZLIB,
	PACKING_ZSTD,
};

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

/* Back to the start, without buffers and saved positions. */
static void unpacker_rest(struct unpacker *u)
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

/*
 * For size compressed bytes at offset of the file. NULL: no memory, or not a stream of that kind. It takes no buffers
 * before the first unpacker_next().
 */
static struct unpacker *unpacker_create(struct image *img, enum packing packing, u64 offset, u64 size, u64 unpacked)
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

static void unpacker_destroy(struct unpacker *u)
{
	if (u)
		unpacker_rest(u);
	free(u);
}

/* Where the next bytes belong. */
static u64 unpacker_at(const struct unpacker *u)
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

/* Goes to the best saved position at or before offset; it never goes forward past what unpacker_next() has unpacked. */
static void unpacker_seek(struct unpacker *u, u64 offset)
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

/* The next size bytes; false: the stream is corrupt or ends, or there is no memory. */
static bool unpacker_next(struct unpacker *u, u8 *dst, size_t size)
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

/* A thread that unpacks a section ahead of a reader that goes from its start to its end. */

#define STEP SECTION_CHUNK /* what is saved on the way lies at chunks */

struct read_ahead {
	struct unpacker *u;
	u8 *base;
	u64 size;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	u64 done, limit; /* offsets: unpacked up to, and allowed up to */
	bool stop, failed;
};

/* The next offset to unpack to; 0: no more. */
static u64 next_step(struct read_ahead *a)
{
	u64 to = 0;

	pthread_mutex_lock(&a->lock);
	while (!a->stop && a->done < a->size && a->done >= a->limit)
		pthread_cond_wait(&a->changed, &a->lock);
	if (!a->stop && a->done < a->size)
		to = a->size - a->done < STEP ? a->size : a->done + STEP;
	pthread_mutex_unlock(&a->lock);
	return to;
}

static void *run(void *arg)
{
	struct read_ahead *a = arg;
	bool good = true;
	u64 to;

	while (good && (to = next_step(a))) {
		good = unpacker_next(a->u, a->base + a->done, to - a->done);
		pthread_mutex_lock(&a->lock);
		a->failed = !good;
		a->done = good ? to : a->done;
		pthread_cond_signal(&a->changed);
		pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

/*
 * Unpacks from u's position up to size, in steps of SECTION_CHUNK, to base + offset. Until read_ahead_stop(), u belongs
 * to the thread, and so do the bytes from its position to the limit. NULL: no thread.
 */
static struct read_ahead *read_ahead_start(struct unpacker *u, u8 *base, u64 size)
{
	struct read_ahead *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	*a = (struct read_ahead){.u = u, .base = base, .size = size, .done = unpacker_at(u), .limit = unpacker_at(u)};
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	if (!thread_start(&a->thread, NULL, run, a))
		return a;
	free(a);
	return NULL;
}

/*
 * Waits until everything before offset is unpacked; the thread may meanwhile go on to limit. False: it never will be.
 */
static bool read_ahead_wait(struct read_ahead *a, u64 offset, u64 limit)
{
	bool there;

	pthread_mutex_lock(&a->lock);
	a->limit = limit;
	pthread_cond_signal(&a->changed);
	while (a->done < offset && !a->failed)
		pthread_cond_wait(&a->changed, &a->lock);
	there = a->done >= offset;
	pthread_mutex_unlock(&a->lock);
	return there;
}

static void read_ahead_stop(struct read_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

#define CHDR_TYPE_ZSTD 2u /* ELFCOMPRESS_ZSTD, which elf.h below glibc 2.37 does not have */
#define CHUNKS_AHEAD   3u /* what a thread unpacks before it is asked for */
#define CHUNKS_BEHIND  5u /* what is kept then of what was read */
#define OLD_MAGIC      "ZLIB"
#define OLD_HEADER     12u /* the magic, and the size in 8 bytes, big end first */

static bool find(struct image *img, const char *name, GElf_Shdr *ret)
{
	Elf_Scn *scn = NULL;
	const char *found;
	size_t names;

	if (elf_getshdrstrndx(img->elf, &names))
		return false;
	while ((scn = elf_nextscn(img->elf, scn))) {
		if (!gelf_getshdr(scn, ret) || ret->sh_type == SHT_NOBITS || ret->sh_type == SHT_NULL)
			continue;
		found = elf_strptr(img->elf, names, ret->sh_name);
		if (found && !strcmp(found, name))
			return ret->sh_offset <= img->size && ret->sh_size <= img->size - ret->sh_offset;
	}
	return false;
}

static bool find_old(struct image *img, const char *name, GElf_Shdr *ret)
{
	char old[32];

	snprintf(old, sizeof(old), ".z%s", name + 1);
	return find(img, old, ret) && ret->sh_size > OLD_HEADER;
}

static bool open_compressed(struct dwarf_section *s, const GElf_Shdr *sh)
{
	Elf64_Chdr ch;

	if (sh->sh_size < sizeof(ch) || !elf_read(s->img, &ch, sizeof(ch), sh->sh_offset) ||
	        (ch.ch_type != ELFCOMPRESS_ZLIB && ch.ch_type != CHDR_TYPE_ZSTD))
		return false;
	s->size = ch.ch_size;
	s->unpacker = unpacker_create(s->img, ch.ch_type == ELFCOMPRESS_ZLIB ? PACKING_ZLIB : PACKING_ZSTD,
	        sh->sh_offset + sizeof(ch), sh->sh_size - sizeof(ch), s->size);
	return s->unpacker;
}

static bool open_old(struct dwarf_section *s, const GElf_Shdr *sh)
{
	u8 header[OLD_HEADER];

	if (!elf_read(s->img, header, sizeof(header), sh->sh_offset) || memcmp(header, OLD_MAGIC, 4))
		return false;
	for (u32 i = 4; i < OLD_HEADER; i++)
		s->size = s->size << 8 | header[i];
	s->unpacker =
	        unpacker_create(s->img, PACKING_ZLIB, sh->sh_offset + OLD_HEADER, sh->sh_size - OLD_HEADER, s->size);
	return s->unpacker;
}

static u32 chunks_for(const char *name)
{
	if (!strcmp(name, ".debug_str"))
		return SECTION_RANDOM;
	return strcmp(name, ".debug_info") ? SECTION_CHUNKS : SECTION_WIDE;
}

static bool open_any(struct dwarf_section *s, const char *name)
{
	GElf_Shdr sh;

	if (find(s->img, name, &sh)) {
		s->offset = sh.sh_offset;
		s->size = sh.sh_size;
		return !(sh.sh_flags & SHF_COMPRESSED) || open_compressed(s, &sh);
	}
	return find_old(s->img, name, &sh) && open_old(s, &sh);
}

void section_open(struct dwarf_section *s, struct image *img, const char *name)
{
	u8 *place;

	*s = (struct dwarf_section){.img = img};
	if (!open_any(s, name) || !s->size || s->size > SECTION_MAX) {
		section_close(s);
		return;
	}
	s->most = chunks_for(name);
	s->nchunks = (s->size + SECTION_CHUNK - 1) / SECTION_CHUNK;
	place = mmap(NULL, s->size + SECTION_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	        -1, 0);
	s->place = place == MAP_FAILED ? NULL : place;
	s->bytes = s->place ? place + (-(uintptr_t)place & (SECTION_CHUNK - 1)) : NULL;
	s->used = calloc(s->nchunks, sizeof(*s->used));
	if (!s->bytes || !s->used)
		section_close(s);
}

void section_close(struct dwarf_section *s)
{
	read_ahead_stop(s->ahead);
	if (s->place)
		munmap(s->place, s->size + SECTION_CHUNK);
	free(s->used);
	unpacker_destroy(s->unpacker);
	*s = (struct dwarf_section){0};
}

static u64 chunk_size(const struct dwarf_section *s, u32 chunk)
{
	u64 at = chunk * SECTION_CHUNK;

	return s->size - at < SECTION_CHUNK ? s->size - at : SECTION_CHUNK;
}

/* Gives a chunk's memory back. */
static void drop(struct dwarf_section *s, u32 chunk)
{
	madvise(s->bytes + chunk * SECTION_CHUNK, chunk_size(s, chunk), MADV_DONTNEED);
	s->used[chunk] = 0;
	s->present--;
}

/* What was not asked for the longest time, but nothing of what is needed now; nchunks: none. */
static u32 find_oldest(const struct dwarf_section *s, u64 needed_since)
{
	u32 oldest = s->nchunks;

	for (u32 i = 0; i < s->nchunks; i++)
		if (s->used[i] && s->used[i] < needed_since && (oldest == s->nchunks || s->used[i] < s->used[oldest]))
			oldest = i;
	return oldest;
}

/* Memory for a chunk: that of an old one, moved there, since fresh memory costs as much as to unpack half as much. */
static void prepare(struct dwarf_section *s, u32 chunk, u64 needed_since)
{
	u32 most = s->ahead ? CHUNKS_BEHIND + CHUNKS_AHEAD : s->most;
	u32 oldest;
	u8 *from, *to = s->bytes + chunk * SECTION_CHUNK;

	while (s->present > most && (oldest = find_oldest(s, needed_since)) < s->nchunks) /* a thread read ahead */
		drop(s, oldest);
	oldest = s->present < most ? s->nchunks : find_oldest(s, needed_since);
	from = s->bytes + oldest * SECTION_CHUNK;
	s->present++;
	if (oldest == s->nchunks)
		return;
	if (chunk_size(s, oldest) == SECTION_CHUNK && chunk_size(s, chunk) == SECTION_CHUNK &&
	        mremap(from, SECTION_CHUNK, SECTION_CHUNK, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) ==
	                to) {
		s->used[oldest] = 0;
		s->present--;
		return;
	}
	drop(s, oldest);
}

/* Up to where the thread may unpack. */
static u64 grant(struct dwarf_section *s, u64 needed_since)
{
	while (s->granted < s->nchunks && s->granted < s->next + CHUNKS_AHEAD)
		prepare(s, s->granted++, needed_since);
	return s->granted == s->nchunks ? s->size : s->granted * SECTION_CHUNK;
}

static void stop_ahead(struct dwarf_section *s)
{
	if (!s->ahead)
		return;
	read_ahead_stop(s->ahead);
	s->ahead = NULL;
	for (u32 i = s->next; i < s->granted; i++)
		drop(s, i);
}

/* The next chunk of the stream, which is not always one that somebody asked for: so it may go first. */
static bool unpack_chunk(struct dwarf_section *s, u64 needed_since)
{
	u32 chunk = s->next;
	u64 at = chunk * SECTION_CHUNK, size = chunk_size(s, chunk);
	bool good;

	if (s->ahead) {
		good = read_ahead_wait(s->ahead, at + size, grant(s, needed_since));
	} else {
		if (!s->used[chunk])
			prepare(s, chunk, needed_since);
		good = unpacker_next(s->unpacker, s->bytes + at, size);
	}
	if (good) {
		s->used[chunk] = needed_since - 1;
		s->next++;
	} else if (!s->ahead) {
		drop(s, chunk);
	}
	return good;
}

static void seek(struct dwarf_section *s, u32 chunk)
{
	if (s->ahead && chunk >= s->next)
		return;
	stop_ahead(s);
	unpacker_seek(s->unpacker, chunk * SECTION_CHUNK);
	s->next = unpacker_at(s->unpacker) / SECTION_CHUNK;
}

static bool read_chunk(struct dwarf_section *s, u32 chunk, u64 needed_since)
{
	prepare(s, chunk, needed_since);
	s->used[chunk] = needed_since;
	if (elf_read(s->img, s->bytes + chunk * SECTION_CHUNK, chunk_size(s, chunk), s->offset + chunk * SECTION_CHUNK))
		return true;
	drop(s, chunk);
	return false;
}

static bool fill(struct dwarf_section *s, u32 chunk, u64 needed_since)
{
	if (!s->unpacker)
		return read_chunk(s, chunk, needed_since);
	seek(s, chunk);
	while (!s->used[chunk])
		if (!unpack_chunk(s, needed_since))
			return false;
	return true;
}

void section_rest(struct dwarf_section *s)
{
	stop_ahead(s);
	for (u32 i = 0; i < s->nchunks; i++)
		if (s->used[i])
			drop(s, i);
	if (s->unpacker)
		unpacker_rest(s->unpacker);
	s->next = 0;
}

void section_sequential(struct dwarf_section *s)
{
	if (!s->unpacker || s->ahead || s->nchunks < CHUNKS_AHEAD)
		return;
	s->granted = s->next;
	for (u32 i = s->next; i < s->nchunks; i++)
		if (s->used[i])
			drop(s, i);
	s->ahead = read_ahead_start(s->unpacker, s->bytes, s->size);
}

void section_ordered(struct dwarf_section *s)
{
	s->most = SECTION_CHUNKS;
}

const u8 *section_need(struct dwarf_section *s, u64 offset, u64 len)
{
	u32 first, last;

	if (offset >= s->size || len > s->size - offset)
		return NULL;
	first = offset / SECTION_CHUNK;
	last = (offset + (len ? len - 1 : 0)) / SECTION_CHUNK;
	s->clock += 2;
	for (u32 i = first; i <= last; i++) {
		if (!s->used[i] && !fill(s, i, s->clock))
			return NULL;
		s->used[i] = s->clock;
	}
	return s->bytes + offset;
}

const char *section_string(struct dwarf_section *s, u64 offset, u64 max, u64 *ret_len)
{
	u64 in_chunk, len = 0, size;
	const u8 *p, *end;

	for (;;) {
		in_chunk = SECTION_CHUNK - (offset + len) % SECTION_CHUNK;
		if (offset >= s->size || len >= s->size - offset || len > max)
			return NULL;
		size = s->size - offset - len < in_chunk ? s->size - offset - len : in_chunk;
		p = section_need(s, offset, len + size);
		end = p ? memchr(p + len, 0, size) : NULL;
		if (!p)
			return NULL;
		if (end) {
			*ret_len = end - p;
			return (const char *)p;
		}
		len += size;
	}
}
