/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goroutines, the heap profile and the objects of a Go program whose memory is any bytes: an address is taken modulo
 * the size of the input, so that every pointer leads somewhere. The first byte chooses the release, the second how many
 * goroutines there are, the third after how many reads they fail: between two reads of the same bytes some of them
 * change.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtimes/go/go_goroutines.h"
#include "runtimes/go/go_heap.h"
#include "runtimes/go/go_refs.h"
#include "runtimes/go/go_refs_internal.h"
#include "runtimes/go/go_rows.h"
#include "tests/unit/go_fake.h"
#include "unwind/cfi/cfi.h"
#include "unwind/cleanup.h"
#include "unwind/heap/heap.h"
#include "unwind/heap/heap_draw.h"

#define ALLGS   0x600000u
#define BUCKETS 0x700000u
#define HEAP    0xc000000000u
#define READS   4000u
#define CHANGE  37u /* of so many reads one sees other bytes */

struct input {
	struct memory memory;
	const u8 *data;
	size_t size;
	u32 reads, fail;
};

static struct go_fake fake;
static struct mapping mapping = {.prot = PROT_READ | PROT_EXEC, .start = ELF_TEXT, .end = GO_END};

/* Words that are close to code are code's: else no stack would be deeper than a frame. */
static void lead_to_code(u8 *to, size_t size)
{
	u64 word;

	for (size_t i = 0; i + 8 <= size; i += 8) {
		memcpy(&word, to + i, 8);
		if (word % 3)
			word = ELF_TEXT + word % (GO_END - ELF_TEXT);
		memcpy(to + i, &word, 8);
	}
}

static bool read_bytes(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct input *b = (struct input *)mem;
	const u64 slice[3] = {HEAP, b->data[1] % 64 + 1u, 64}, first = HEAP + 8;

	if (++b->reads > READS || (b->fail && b->reads > b->fail))
		return false;
	for (size_t i = 0; i < size; i++)
		((u8 *)dst)[i] = b->data[(addr + i) % b->size];
	if (b->reads % CHANGE == 0 && size)
		((u8 *)dst)[b->reads % size] ^= 1;
	if (addr == ALLGS && size == sizeof(slice))
		memcpy(dst, slice, sizeof(slice));
	else if (addr == BUCKETS && size == sizeof(first))
		memcpy(dst, &first, sizeof(first));
	else if (size == 512)
		lead_to_code(dst, size);
	return true;
}

static void show(struct error *(*print)(const void *before, void *after, u32 flags, FILE *out),
        struct error *(*draw)(const void *before, void *after, u32 flags, struct profile *ret), void *before,
        void *after, u32 flags)
{
	FILE *out = fopen("/dev/null", "w");
	struct profile *p;

	if (out) {
		error_free(print(before, after, flags, out));
		fclose(out);
	}
	if (profile_create(&p))
		return;
	error_free(draw(before, after, flags, p));
	profile_destroy(p);
}

static void look(const struct go_view *v, u32 flags)
{
	void *before = NULL, *after = NULL;

	error_free(go_goroutines_take(v, flags, &before));
	error_free(go_goroutines_take(v, flags, &after));
	if (after)
		show(go_goroutines_print, go_goroutines_draw, flags & 16 ? before : NULL, after, flags & 15);
	go_goroutines_drop(before);
	go_goroutines_drop(after);
	before = after = NULL;
	error_free(go_heap_take(v, 0, &before));
	error_free(go_heap_take(v, 0, &after));
	if (after)
		show(go_heap_print, go_heap_draw, flags & 16 ? before : NULL, after, flags & 3);
	go_heap_drop(before);
	go_heap_drop(after);
}

/* --- objects --- */

#define SPANS 8
#define TYPES (HEAP + 0x100000)
#define DATA  (HEAP + 0x200000)

/* Spans of the sizes that the input says, and descriptions of types in any bytes. */
static struct error *open_refs(void *instance, const struct runtime_process *p, struct heap *h, void **ret)
{
	static const u16 sizes[] = {8, 16, 48, 80, 512, 576, 1152, 8192};
	const struct go_view *v = instance;
	const u8 *data = ((const struct input *)v->p->memory)->data;
	struct go_refs *r = calloc(1, sizeof(*r));

	*ret = r;
	if (!r)
		return &error_no_memory;
	*r = (struct go_refs){.h = h,
	        .p = *p,
	        .v = calloc(1, sizeof(*v)),
	        .spans = calloc(SPANS, sizeof(*r->spans)),
	        .nspans = SPANS,
	        .module = {TYPES, TYPES + 0x10000, {DATA, DATA + 512}, {DATA + 512, DATA + 1024}}};
	if (!r->v || !r->spans)
		abort();
	*r->v = *v;
	r->v->layout = NULL; /* is the caller's */
	for (u32 i = 0; i < SPANS; i++) {
		u32 size = sizes[data[5 + i] % 8];

		r->spans[i] = (struct go_span){.start = HEAP + i * 8192u,
		        .size = size,
		        .bits = HEAP + data[6 + i],
		        .type = TYPES + data[7 + i] * 8u,
		        .n = (u16)(8192 / size),
		        .free = (u16)(data[13 + i] % (8192 / size + 1)),
		        .plain = data[5 + i] & 64,
		        .large = size == 8192};
	}
	return NULL;
}

static void close_refs(void *reader)
{
	struct go_refs *r = reader;

	go_refs_types_free(r);
	table_free(&r->hints);
	free(r->v);
	free(r->spans);
	free(r);
}

static struct error *give_roots(void *reader)
{
	struct go_refs *r = reader;
	const struct go_type *t = go_refs_type(r, TYPES);

	r->root = heap_root(r->h, 0, HEAP_LASTING, "variables");
	go_refs_give_words(r, DATA, 1024, HEAP_ANY);
	if (t)
		go_refs_give_typed(r, t, DATA, HEAP_ITEM);
	go_refs_give(r, HEAP_ANY, DATA, TYPES);
	for (u32 i = 0; i < SPANS; i++)
		go_refs_give(r, HEAP_ANY, HEAP + i * 8192u, TYPES + 48 * i + i % GO_HINTS);
	r->root = 0;
	return NULL;
}

static void look_at_objects(struct go_view *v)
{
	const struct heap_options options = {.memory = 1 << 20, .references = true};
	struct runtime_heap_ops ops = go_refs;
	struct profile *p;
	struct heap *h;
	bool found;

	ops.open = open_refs;
	ops.close = close_refs;
	ops.roots = give_roots;
	if (heap_create(v->p->memory, 0, &options, &h))
		abort();
	error_free(heap_read(h, &ops, v, v->p, &found));
	if (heap_settle(h) || profile_create(&p) || heap_draw_refs(h, p))
		abort();
	profile_finish(p);
	profile_destroy(p);
	heap_destroy(h);
}

static struct go_table *open_program(void)
{
	const struct cfi_options options = {.providers = {&go_provider}};
	struct go_table *t;

	go_fake_make(&fake, GO_MAGIC_1_20, true);
	if (image_from_memory(elf_copy(&fake.file), fake.file.n, "fake", &mapping.image) ||
	        cfi_load(mapping.image, &options, &mapping.image->cfi) || go_table_open(mapping.image, &t) || !t)
		abort();
	return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const releases[] = {"go1.12", "go1.16", "go1.17", "go1.21", "go1.26", "go1.27"};
	static struct layout *layouts[6];
	static struct go_table *table;
	struct input b = {.memory.read = read_bytes, .data = data, .size = size};
	const struct runtime_process p = {.pid = 1, .memory = &b.memory, .mappings = &mapping, .nmappings = 1};
	cleanup(free) struct go_view *v = calloc(1, sizeof(*v));

	if (size < 64 || !v)
		return 0;
	table = table ? table : open_program();
	b.fail = data[2] * 4u;
	*v = (struct go_view){.p = &p, .table = table, .allgs = ALLGS, .buckets = BUCKETS, .rate = data[4] + 1u};
	v->nreasons = 2;
	strcpy(v->reason[1], "chan receive");
	if (!layouts[data[0] % 6] &&
	        go_layout_find(mapping.image, releases[data[0] % 6], GO_LAYOUT_SERIES, &layouts[data[0] % 6]))
		abort();
	v->layout = layouts[data[0] % 6];
	v->at = v->layout->values;
	look(v, data[3]);
	b.reads = 0;
	look_at_objects(v);
	return 0;
}
