/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap of a Python whose memory is any bytes. Its types are well-formed; every aligned word of the rest leads, by
 * its last three bits, to one of them, into the input, or is what it is. The first byte chooses the version, the second
 * where a read fails.
 */
#include <stdlib.h>
#include <string.h>

#include "heap/heap.h"
#include "heap/heap_draw.h"
#include "runtime.h"
#include "runtimes/python/python_heap.h"

#define INPUT      0x10000ull
#define TYPES      0x8000000ull
#define TYPE_BYTES 1024
#define NAMES      (TYPES + 0x10000)
#define NAME_BYTES 32

static const struct {
	const char *name;
	u64 flags, basicsize, itemsize;
} types[] = {
        {"type", 1ull << 31 | 1 << 14, 880, 40},
        {"object", 0, 16, 0},
        {"list", 1ull << 25 | 1 << 14, 40, 0},
        {"tuple", 1ull << 26 | 1 << 14, 24, 8},
        {"dict", 1ull << 29 | 1 << 14, 48, 0},
        {"str", 1ull << 28, 80, 0},
        {"int", 1ull << 24, 24, 4},
        {"set", 1 << 14, 200, 0},
        {"collections.deque", 1 << 14, 232, 0},
        {"frame", 1 << 14, 80, 8},
        {"generator", 1 << 14, 160, 8},
        {"module", 1 << 14, 56, 0},
        {"bytearray", 0, 56, 0},
        {"code", 0, 192, 2},
        {"ext.Thing", 1 << 14, 96, 0},
        {"Own", 1 << 9 | 1 << 14 | 1 << 4 | 1 << 2, 32, 0},
};
#define NTYPES (sizeof(types) / sizeof(*types))

struct bytes {
	struct memory memory;
	const u8 *data;
	size_t size;
	u32 fail; /* reads until one fails; 0: none does */
};

static u8 type_memory[0x10000 + NTYPES * NAME_BYTES];

static void put(u64 type, u32 at, u64 word)
{
	memcpy(type_memory + type * TYPE_BYTES + at, &word, sizeof(word));
}

static void make_types(void)
{
	for (u64 i = 0; i < NTYPES; i++) {
		put(i, 0, 1);
		put(i, 8, TYPES);
		put(i, 24, NAMES + i * NAME_BYTES);
		put(i, 32, types[i].basicsize);
		put(i, 40, types[i].itemsize);
		put(i, 168, types[i].flags);
		put(i, 256, i == 1 ? 0 : TYPES + TYPE_BYTES); /* tp_base: object */
		strcpy((char *)type_memory + 0x10000 + i * NAME_BYTES, types[i].name);
	}
}

static u64 lead(const struct bytes *b, u64 word)
{
	switch (word & 7) {
	case 0:
	case 1:
	case 2:
		return INPUT + (word >> 3) % b->size / 8 * 8;
	case 3:
	case 4:
		return TYPES + (word >> 3) % NTYPES * TYPE_BYTES;
	case 5:
		return word >> 3 & 31;
	default:
		return word;
	}
}

static bool read_input(struct bytes *b, u8 *dst, size_t size, u64 at)
{
	for (size_t i = 0; i < size; i++) {
		u64 from = (at + i) / 8 * 8, word = 0;

		memcpy(&word, b->data + from, b->size - from < 8 ? b->size - from : 8);
		word = lead(b, word);
		dst[i] = ((u8 *)&word)[(at + i) % 8];
	}
	return true;
}

static bool read_bytes(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct bytes *b = (struct bytes *)mem;
	u64 end = INPUT + (b->size + 4095) / 4096 * 4096;

	if (b->fail && !--b->fail)
		return false;
	if (addr >= TYPES && addr - TYPES < sizeof(type_memory)) {
		u64 n = sizeof(type_memory) - (addr - TYPES);

		memset(dst, 0, size);
		memcpy(dst, type_memory + (addr - TYPES), n < size ? n : size);
		return true;
	}
	if (addr < INPUT || addr >= end || size > end - addr)
		return false;
	memset(dst, 0, size);
	if (addr - INPUT < b->size)
		read_input(b, dst, addr - INPUT + size < b->size ? size : b->size - (addr - INPUT), addr - INPUT);
	return true;
}

static struct python_layout layout(u32 version)
{
	struct python_layout l = {.runtime_interpreters = {40, 8},
	        .interp_modules = {24, 8},
	        .interp_next = {0, 8},
	        .interp_threads = {16, 8},
	        .ts_next = {8, 8},
	        .ts_interp = {16, 8},
	        .ts_thread_id = {152, 8},
	        .co_firstlineno = {72, 4},
	        .co_names = {32, 8},
	        .co_filename = {112, 8},
	        .co_name = {120, 8},
	        .f_previous = {48, 8},
	        .ob_type = {8, 8},
	        .ob_size = {16, 8},
	        .str_length = {16, 8},
	        .str_state = {32, 4},
	        .str_ascii = {48, 48},
	        .str_compact = {72, 72}};

	if (version < 0x030b0000) {
		l.ts_frame_object = (struct layout_member){24, 8};
		l.fo_back = (struct layout_member){24, 8};
		l.fo_code = (struct layout_member){32, 8};
	} else {
		l.ts_current_frame = (struct layout_member){56, 8};
	}
	return l;
}

static struct error *fuzz_open(void *instance, const struct runtime_process *p, struct heap *h, void **ret)
{
	return python_heap_open(instance, 0, p, h, ret);
}

static const struct runtime_heap_ops ops = {.objects = "objects",
        .open = fuzz_open,
        .close = python_heap_close,
        .roots = python_heap_roots,
        .object = python_heap_object};

static void draw(struct heap *h)
{
	struct profile *p;

	if (heap_settle(h) || profile_create(&p))
		abort();
	if (heap_draw_refs(h, p))
		abort();
	profile_finish(p);
	profile_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u32 versions[] = {
	        0x03080000, 0x03090000, 0x030a0000, 0x030b0000, 0x030c0000, 0x030d0000, 0x030e0000};
	struct bytes b = {.memory.read = read_bytes, .data = data, .size = size};
	struct heap_options o = {.memory = 4 << 20, .references = true};
	struct runtime_process p = {.memory = &b.memory};
	struct python_layout l;
	struct python_image image = {.layout = &l,
	        .runtime = INPUT,
	        .code_type = TYPES + 13 * TYPE_BYTES,
	        .frame_type = TYPES + 9 * TYPE_BYTES};
	struct heap *h;
	bool found;

	if (size < 64)
		return 0;
	make_types();
	image.version = versions[data[0] % 7];
	l = layout(image.version);
	b.fail = data[1];
	if (heap_create(&b.memory, 0, &o, &h))
		abort();
	error_free(heap_read(h, &ops, &image, &p, &found));
	draw(h);
	heap_destroy(h);
	return 0;
}
