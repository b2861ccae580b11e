/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects, classes and threads of a JVM whose memory has any bytes. Of the input the first bytes choose the shape and a
 * read that fails; the rest overwrites what the JVM's structures and heap hold, behind the tables that describe them.
 */
#include <stdio.h>

#include "overwrite.h"
#include "tests/unit/hotspot_heap_fake.h"
#include "runtimes/hotspot/alloc/hotspot_alloc_survey.h"
#include "runtimes/hotspot/waits/hotspot_waits.h"
#include "runtime.h"

#define SHAPES 7

static const struct fake_options shapes[SHAPES] = {
        {FAKE_8, .narrow_klass = true, .narrow_oops = true},
        {FAKE_8, .narrow_klass = false},
        {FAKE_25, .narrow_klass = true, .narrow_oops = true},
        {FAKE_25, .narrow_klass = true},
        {FAKE_25, .narrow_klass = false},
        {FAKE_25, .narrow_klass = true, .compact = true, .narrow_oops = true},
        {FAKE_25, .narrow_klass = true, .compact = true, .coloured = true},
};

static bool advance(void *ctx, u64 object, u64 klass, u64 size)
{
	u64 *last = ctx;

	if (object <= *last || !size)
		abort();
	*last = object;
	return true;
}

static void add(void *ctx, u64 klass, u64 bytes, u64 objects)
{
	*(u64 *)ctx += bytes;
}

static void ask(struct fake *f, struct hotspot_heap_view *h)
{
	static struct hotspot_thread threads[64];
	u64 last = f->tlab - 1, object, klass, size, end;
	u32 n = hotspot_threads(h, &f->memory, threads, 64, true);

	for (u32 i = 0; i < n; i++)
		if (threads[i].tlab_start > threads[i].tlab_top || strnlen(threads[i].name, 128) == 128)
			abort();
	end = hotspot_each_object(h, &f->memory, f->tlab, f->top, advance, &last);
	if (end < f->tlab)
		abort();
	size = 0;
	if (hotspot_alloc_survey(h, &f->memory, f->tlab, f->top, add, &size) && size > f->top - f->tlab)
		abort();
	for (u64 addr = f->tlab; addr < f->top; addr += 24) {
		if (hotspot_object_covering(h, &f->memory, f->tlab, addr, &object, &klass, &size) &&
		        addr - object >= size)
			abort();
		if (hotspot_object_ending(h, &f->memory, f->tlab, addr, f->top, &object, &klass, &size) &&
		        (object > addr || object + size != f->top))
			abort();
	}
}

/* Offsets by which everything that it follows lies in the fake memory. */
static void ask_waits(struct fake *f, struct hotspot_heap_view *h)
{
	struct hotspot_waits w = {.heap = h,
	        .pending = 8,
	        .waiting = 16,
	        .stack_base = 24,
	        .stack_size = 32,
	        .owner_id = f->reads & 1 ? 40 : 0,
	        .lock_stack = 48,
	        .lock_stack_base = 8,
	        .owner = 8,
	        .monitors = true,
	        .blocker = 16};

	for (pid_t tid = 4700; tid < 4720; tid++) {
		struct runtime_thread t = {.tid = tid};
		struct runtime_wait wait = {0};

		if (hotspot_waits_for(&w, h, &f->memory, &t, &wait) &&
		        (strnlen(wait.type, RUNTIME_WAIT_TEXT) == RUNTIME_WAIT_TEXT || !wait.at))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fake *clean[SHAPES];
	static struct fake f;
	struct hotspot_heap_view *h;
	u32 shape;

	if (size < 4)
		return 0;
	shape = data[0] % SHAPES;
	if (!clean[shape])
		clean[shape] = fake_create(shapes[shape]);
	f = *clean[shape];
	fake_check(hotspot_heap_view_create(f.v, &f.layout, &h));
	f.reads = 0;
	f.fail_at = data[1] | (data[2] & 3) << 8;
	overwrite(f.bytes, f.used, data + 3, size - 3);
	ask(&f, h);
	ask_waits(&f, h);
	hotspot_heap_view_destroy(h);
	return 0;
}
