/* SPDX-License-Identifier: Apache-2.0 */
#include "hprof.h"

#include <string.h>
#include <time.h>

#define STRING   0x01
#define LOADED   0x02
#define TRACE    0x05
#define SEGMENT  0x1c
#define HEAP_END 0x2c

static void big_endian(u64 value, u32 size, u8 *ret)
{
	for (u32 i = 0; i < size; i++)
		ret[i] = (u8)(value >> 8 * (size - 1 - i));
}

static void write_number(struct hprof *w, u64 value, u32 size)
{
	u8 bytes[8];

	big_endian(value, size, bytes);
	fwrite(bytes, 1, size, w->out);
}

static void record(struct hprof *w, u8 tag, u64 size)
{
	write_number(w, tag, 1);
	write_number(w, 0, 4); /* microseconds since the beginning */
	write_number(w, size, 4);
}

static void flush(struct hprof *w)
{
	if (!w->used)
		return;
	record(w, SEGMENT, w->used);
	fwrite(w->buffer, 1, w->used, w->out);
	w->used = 0;
}

void hprof_start(struct hprof *w, FILE *out)
{
	static const char magic[] = "JAVA PROFILE 1.0.2";
	struct timespec now;

	w->out = out;
	clock_gettime(CLOCK_REALTIME, &now);
	fwrite(magic, 1, sizeof(magic), out);
	write_number(w, 8, 4);
	write_number(w, (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000, 8);
	record(w, TRACE, 12);
	write_number(w, HPROF_TRACE, 4);
	write_number(w, 0, 8); /* of no thread, no frames */
}

void hprof_end(struct hprof *w)
{
	flush(w);
	record(w, HEAP_END, 0);
}

void hprof_string(struct hprof *w, u64 id, const char *text)
{
	flush(w);
	record(w, STRING, 8 + strlen(text));
	write_number(w, id, 8);
	fwrite(text, 1, strlen(text), w->out);
}

void hprof_loaded(struct hprof *w, u64 class, u64 name)
{
	flush(w);
	record(w, LOADED, 24);
	write_number(w, ++w->classes, 4);
	write_number(w, class, 8);
	write_number(w, HPROF_TRACE, 4);
	write_number(w, name, 8);
}

void hprof_begin(struct hprof *w, enum hprof_tag tag, u64 size)
{
	if (w->used + 1 + size > HPROF_BUFFER)
		flush(w);
	if (1 + size > HPROF_BUFFER) {
		w->left = 1 + size;
		record(w, SEGMENT, w->left);
	}
	hprof_put(w, tag, 1);
}

void hprof_bytes(struct hprof *w, const void *bytes, u64 size)
{
	if (w->left) {
		fwrite(bytes, 1, size, w->out);
		w->left -= size;
	} else {
		memcpy(w->buffer + w->used, bytes, size);
		w->used += (u32)size;
	}
}

void hprof_put(struct hprof *w, u64 value, u32 size)
{
	u8 bytes[8];

	big_endian(value, size, bytes);
	hprof_bytes(w, bytes, size);
}

enum hprof_type hprof_type_of(char signature)
{
	switch (signature) {
	case 'L':
	case '[':
		return HPROF_OBJECT;
	case 'Z':
		return HPROF_BOOLEAN;
	case 'C':
		return HPROF_CHAR;
	case 'F':
		return HPROF_FLOAT;
	case 'D':
		return HPROF_DOUBLE;
	case 'B':
		return HPROF_BYTE;
	case 'S':
		return HPROF_SHORT;
	case 'I':
		return HPROF_INT;
	case 'J':
		return HPROF_LONG;
	default:
		return HPROF_NONE;
	}
}

u32 hprof_size_of(enum hprof_type type)
{
	static const u8 sizes[] = {[HPROF_OBJECT] = 8,
	        [HPROF_BOOLEAN] = 1,
	        [HPROF_CHAR] = 2,
	        [HPROF_FLOAT] = 4,
	        [HPROF_DOUBLE] = 8,
	        [HPROF_BYTE] = 1,
	        [HPROF_SHORT] = 2,
	        [HPROF_INT] = 4,
	        [HPROF_LONG] = 8};

	return sizes[type];
}
