/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_alloc_survey.h"

#define KINDS      1024 /* size of the hash table, a power of two; three quarters of it are used */
#define BUFFER_MAX (64u << 20)

struct kind {
	u64 klass, bytes, objects;
	u32 sizes; /* alloc_size_class() */
};

struct tally {
	u64 limit;
	u64 other; /* bytes; of too many kinds */
	u32 nkinds;
	bool closed;
	struct kind kinds[KINDS];
};

static struct kind *kind_of(struct tally *t, u64 klass, u32 sizes)
{
	u32 i = (u32)((klass >> 3 ^ (u64)sizes << 7) * 0x9e3779b97f4a7c15ull >> 32);

	while (t->kinds[i % KINDS].objects &&
	        (t->kinds[i % KINDS].klass != klass || t->kinds[i % KINDS].sizes != sizes))
		i++;
	return &t->kinds[i % KINDS];
}

/* What reaches the end of the buffer only fills it: room for the largest header is always kept there (end_reserve()).
 */
static bool count(void *ctx, u64 object, u64 klass, u64 size)
{
	struct tally *t = ctx;
	struct kind *k = kind_of(t, klass, alloc_size_class(size));

	t->closed = object + size >= t->limit;
	if (t->closed)
		return false;
	if (!k->objects && t->nkinds >= KINDS / 4 * 3) {
		t->other += size;
		return true;
	}
	t->nkinds += !k->objects;
	k->klass = klass;
	k->sizes = alloc_size_class(size);
	k->bytes += size;
	k->objects++;
	return true;
}

bool hotspot_alloc_survey(struct hotspot_heap_view *h, struct memory *m, u64 start, u64 limit,
        void (*each)(void *ctx, u64 klass, u64 bytes, u64 objects), void *ctx)
{
	struct tally t = {.limit = limit};

	if (limit <= start || limit - start > BUFFER_MAX)
		return false;
	hotspot_each_object(h, m, start, limit, count, &t);
	if (!t.closed)
		return false;
	for (u32 i = 0; i < KINDS; i++)
		if (t.kinds[i].objects)
			each(ctx, t.kinds[i].klass, t.kinds[i].bytes, t.kinds[i].objects);
	if (t.other)
		each(ctx, 0, t.other, 0);
	return true;
}
