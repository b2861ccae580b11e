/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A code cache of garbage under a right layout: the input overwrites code heap, segment map, blobs, nmethods and
 * methods, in (place, length, bytes). What is found must lie in it; tables that are found must be in order.
 */
#include "runtimes/hotspot/hotspot_check.h"
#include "tests/unit/hotspot_tables_fake.h"

struct subject {
	struct hotspot_fake clean, f;
	struct vmstructs *v;
	struct layout *origins;
	struct hotspot_code *code;
};

static void must(bool so)
{
	if (!so)
		abort();
}

static void create(struct subject *s, enum fake_shape shape)
{
	fake_jvm(&s->clean, shape);
	s->origins = fake_layout(&s->clean, &s->v);
	if (hotspot_code_create(s->v, s->origins->values, &s->code))
		abort();
}

static void read_nmethod(struct subject *s, u64 at)
{
	struct hotspot_nmethod n;

	if (!hotspot_nmethod_read(s->code, &s->f.memory, at, 0, &n))
		return;
	must(n.method && n.code <= n.code_end);
	must(n.pcs <= n.pcs_end && n.scopes <= n.scopes_end && n.metadata <= n.metadata_end);
}

static bool each(void *ctx, const struct hotspot_blob *blob)
{
	struct subject *s = ctx;
	struct hotspot_blob again;

	must(blob->code > blob->at && blob->code <= blob->code_end);
	must(memchr(blob->name, 0, sizeof(blob->name)));
	hotspot_blob_at(s->code, &s->f.memory, blob->code, &again);
	read_nmethod(s, blob->at);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct subject subjects[FAKE_SHAPES];
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	struct subject *s;
	u64 start, end;
	bool conclusive;
	u32 n;

	if (!subjects[0].code)
		for (u32 i = 0; i < FAKE_SHAPES; i++)
			create(&subjects[i], i);
	if (size < 3)
		return 0;
	s = &subjects[data[0] % FAKE_SHAPES];
	s->f = s->clean;
	s->f.reads = 0;
	s->f.fail = data[1] | data[2] << 8;
	fake_overwrite(&s->f, data + 3, size - 3);
	n = hotspot_heaps(s->code, &s->f.memory, heaps);
	must(n <= HOTSPOT_HEAPS_MAX);
	for (u32 i = 0; i < n; i++) {
		must(heaps[i].low < heaps[i].high && heaps[i].high <= heaps[i].reserved_high);
		hotspot_each_blob(s->code, &s->f.memory, &heaps[i], each, s);
	}
	for (u32 i = 0; i < 2; i++)
		read_nmethod(s, s->f.nmethod[i]);
	if (hotspot_interpreter(s->code, &s->f.memory, &start, &end))
		must(start < end);
	error_free(hotspot_check_process(s->v, s->origins->values, s->code, &s->f.memory, &conclusive));
	return 0;
}
