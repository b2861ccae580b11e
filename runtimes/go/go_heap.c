/* SPDX-License-Identifier: Apache-2.0 */
#include "go_heap.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

#define DEPTH_MAX   1024 /* of a bucket's stack: profstackdepth's limit */
#define BUCKETS_MAX (1u << 22)
#define HEAD_MAX    128
#define RECORD_MAX  512
#define CYCLES      4 /* published, and three to come: struct memRecord */

/* allocs, frees and, before 1.27, bytes of both. */
static void add_cycle(const struct go_view *v, const u8 *record, u64 ret[2])
{
	u64 two[2];

	for (u32 i = 0; i < CYCLES; i++) {
		u32 at = i ? v->at->r_future.at + (i - 1) * v->at->c_bytes.size : v->at->r_active.at;

		memcpy(two, record + at, sizeof(two));
		ret[0] += two[0];
		ret[1] += two[1];
	}
}

static struct error *add_bucket(const struct go_view *v, struct go_heap *h, struct go_bucket b, const u8 *head)
{
	u64 depth = go_member(head, v->at->b_depth), pcs[DEPTH_MAX], sum[2] = {0};
	u32 size = (u32)v->at->r_future.at + v->at->r_future.size;
	u8 record[RECORD_MAX];
	struct error *err;

	if (depth > DEPTH_MAX || size > sizeof(record) || v->at->c_bytes.size < 16 ||
	        v->at->r_future.size < 3 * v->at->c_bytes.size)
		return error_new(ERROR_UNSUPPORTED, "%s of %s: its heap profile does not match the known layout",
		        v->table->file.img->path, v->release);
	if (!memory_read(v->p->memory, pcs, depth * sizeof(*pcs), b.addr + v->at->b_bytes.size) ||
	        !memory_read(v->p->memory, record, size, b.addr + v->at->b_bytes.size + depth * sizeof(*pcs)))
		return error_new(ERROR_NO_PROCESS, "process %d ended", v->p->pid);
	add_cycle(v, record, sum);
	b.made = sum[0];
	b.freed = sum[1];
	memcpy(&b.allocs, record + v->at->r_active.at, 8);
	memcpy(&b.frees, record + v->at->r_active.at + 8, 8);
	err = go_stacks_chain(&h->stacks, pcs, (u32)depth, false, &b.chain);
	if (!err)
		err = grow(&h->buckets, h->n, sizeof(*h->buckets));
	if (!err)
		h->buckets[h->n++] = b;
	return err;
}

static struct error *read_buckets(const struct go_view *v, struct go_heap *h)
{
	u64 addr = go_word(v, v->buckets);
	struct error *err = NULL;
	u8 head[HEAD_MAX];

	while (!err && addr && h->n < BUCKETS_MAX) {
		if (v->at->b_bytes.size > sizeof(head) || !memory_read(v->p->memory, head, v->at->b_bytes.size, addr))
			return error_new(ERROR_NO_PROCESS, "process %d: its heap profile can not be read", v->p->pid);
		err = add_bucket(v, h, (struct go_bucket){.addr = addr, .size = go_member(head, v->at->b_size)}, head);
		addr = go_member(head, v->at->b_next);
	}
	return err;
}

/* Without a garbage collection nothing is published: all that was recorded counts then (runtime/mprof.go,
 * memProfileInternal). */
static void publish(struct go_heap *h)
{
	for (u32 i = 0; i < h->n; i++)
		if (h->buckets[i].allocs || h->buckets[i].frees)
			return;
	for (u32 i = 0; i < h->n; i++) {
		h->buckets[i].allocs = h->buckets[i].made;
		h->buckets[i].frees = h->buckets[i].freed;
	}
}

static struct error *is_off(void)
{
	return error_hint(
	        error_new(ERROR_UNSUPPORTED, "the program keeps no heap profile: runtime.MemProfileRate is 0"), "%s",
	        "since Go 1.17 the linker sets it so in programs that never ask for the profile: import net/http/pprof "
	        "or "
	        "runtime/pprof, or do not set it to 0");
}

struct error *go_heap_take(const struct go_view *v, u32 flags, void **ret)
{
	struct go_heap *h;
	struct error *err;

	if (!v->rate && !(flags & GO_HEAP_TYPES))
		return is_off();
	h = calloc(1, sizeof(*h));
	if (!h)
		return &error_no_memory;
	if (flags & GO_HEAP_TYPES) {
		err = go_spans_take(v, &h->spans);
		*ret = err ? (free(h), NULL) : h;
		return err;
	}
	go_stacks_init(&h->stacks, v->p);
	h->stacks.logical = true;
	h->rate = v->rate;
	err = v->buckets ? read_buckets(v, h) : NULL;
	publish(h);
	if (!err)
		err = go_places_read(&h->places, &h->stacks);
	if (err)
		go_heap_drop(h);
	else
		*ret = h;
	return err;
}

void go_heap_drop(void *heap)
{
	struct go_heap *h = heap;

	if (!h)
		return;
	go_spans_drop(h->spans);
	free(h->buckets);
	go_stacks_free(&h->stacks);
	go_places_free(&h->places);
	free(h);
}
