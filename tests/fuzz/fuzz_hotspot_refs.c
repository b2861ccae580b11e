/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who refers to what in a JVM whose memory the input overwrites, behind the tables that describe it: the first bytes
 * choose the kind of references and a read that fails; then, again and again, three bytes where and how many, and the
 * bytes.
 */
#include "heap/heap_draw.h"
#include "overwrite.h"
#include "tests/unit/hotspot_refs_fake.h"

static const struct fake_options shapes[] = {
        {FAKE_25, .narrow_klass = true, .narrow_oops = true},
        {FAKE_25, .narrow_klass = true},
        {FAKE_25, .narrow_klass = false},
};
#define SHAPES (sizeof(shapes) / sizeof(*shapes))

static void draw(struct heap *h)
{
	struct profile *p;

	fake_check(heap_settle(h));
	fake_check(profile_create(&p));
	fake_check(heap_draw_refs(h, p));
	profile_finish(p);
	profile_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct refs_fake *clean[SHAPES];
	static struct refs_fake r;
	struct hotspot_heap_view *view;
	struct error *err;
	struct heap *h;
	u32 shape;

	if (size < 4)
		return 0;
	shape = data[0] % SHAPES;
	if (!clean[shape])
		clean[shape] = refs_create(shapes[shape]);
	r = *clean[shape];
	fake_check(hotspot_heap_view_create(r.f.v, &r.f.layout, &view));
	hotspot_heap_ready(view, &r.f.memory);
	r.f.reads = 0;
	r.f.fail_at = data[1];
	overwrite(r.f.bytes, r.f.used, data + 2, size - 2);
	h = refs_heap(&r, view, &err);
	error_free(err);
	draw(h);
	heap_destroy(h);
	hotspot_heap_view_destroy(view);
	return 0;
}
