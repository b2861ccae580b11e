/* SPDX-License-Identifier: Apache-2.0 */
#include "growth_ledger.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/grow.h"

#define ADDRESS_END (1ull << 57)

u32 growth_ledger_at(const struct growth_ledger *l, u32 instance, u64 addr)
{
	u32 low = 0, high = l->n;

	while (low < high) {
		u32 middle = (low + high) / 2;
		const struct growth_range *r = &l->ranges[middle];

		if (r->instance < instance || (r->instance == instance && r->end <= addr))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct error *insert(struct growth_ledger *l, u32 at, const struct growth_range *r)
{
	struct error *err;

	if (l->n >= GROWTH_RANGES) {
		l->full++;
		return NULL;
	}
	err = grow(&l->ranges, l->n, sizeof(*l->ranges));
	if (err)
		return err;
	memmove(&l->ranges[at + 1], &l->ranges[at], (l->n - at) * sizeof(*l->ranges));
	l->ranges[at] = *r;
	l->n++;
	return NULL;
}

static void delete (struct growth_ledger *l, u32 at)
{
	l->n--;
	memmove(&l->ranges[at], &l->ranges[at + 1], (l->n - at) * sizeof(*l->ranges));
}

/* Cuts what lies in it out of ranges that were there before this moment. */
static struct error *cut(struct growth_ledger *l, u32 instance, u64 start, u64 end, u64 before)
{
	struct error *err = NULL;
	u32 i = growth_ledger_at(l, instance, start);

	while (!err && i < l->n && l->ranges[i].instance == instance && l->ranges[i].start < end) {
		struct growth_range *r = &l->ranges[i], rest = *r;

		if (r->ns >= before) {
			i++;
		} else if (r->start >= start && r->end <= end) {
			delete (l, i);
		} else if (r->start < start) {
			r->end = start;
			rest.start = end;
			i++;
			if (rest.start < rest.end)
				err = insert(l, i, &rest);
		} else {
			r->start = end;
		}
	}
	return err;
}

/* Puts it in place of whatever is there. */
static struct error *put(struct growth_ledger *l, const struct growth_range *r)
{
	struct error *err = cut(l, r->instance, r->start, r->end, UINT64_MAX);

	return err ? err : insert(l, growth_ledger_at(l, r->instance, r->start), r);
}

/* Ranges between two addresses go elsewhere, and keep their stacks. */
static struct error *move(struct growth_ledger *l, const struct growth_record *r)
{
	u64 end = r->gone + r->gone_size;
	struct growth_range *of = NULL;
	struct error *err = NULL;
	u32 n = 0;

	for (u32 i = growth_ledger_at(l, r->instance, r->gone);
	        !err && i < l->n && l->ranges[i].instance == r->instance && l->ranges[i].start < end; i++) {
		struct growth_range part = l->ranges[i];

		if (part.ns >= r->began_ns || (err = grow(&of, n, sizeof(*of))))
			continue;
		part.start = part.start > r->gone ? part.start : r->gone;
		part.end = part.end < end ? part.end : end;
		part.start += r->moved - r->gone;
		part.end += r->moved - r->gone;
		of[n++] = part;
	}
	if (!err)
		err = cut(l, r->instance, r->gone, end, r->began_ns);
	if (!err)
		err = cut(l, r->instance, r->moved, r->moved + r->gone_size, UINT64_MAX);
	for (u32 i = 0; !err && i < n; i++)
		err = put(l, &of[i]);
	free(of);
	return err;
}

static bool is_range(u64 start, u64 size)
{
	return start < ADDRESS_END && size < ADDRESS_END && !(start % GROWTH_PAGE) && !(size % GROWTH_PAGE);
}

struct error *growth_ledger_add(struct growth_ledger *l, const struct growth_record *r)
{
	const struct growth_range added = {.instance = r->instance,
	        .start = r->added,
	        .end = r->added + r->added_size,
	        .hash = r->hash,
	        .ns = r->ns};
	struct error *err = NULL;

	if (!is_range(r->gone, r->gone_size) || !is_range(r->added, r->added_size) || !is_range(r->moved, r->gone_size))
		return NULL;
	if (r->gone_size && r->moved)
		err = move(l, r);
	else if (r->gone_size)
		err = cut(l, r->instance, r->gone, r->gone + r->gone_size, r->began_ns);
	return err || !r->added_size ? err : put(l, &added);
}

void growth_ledger_free(struct growth_ledger *l)
{
	free(l->ranges);
	*l = (struct growth_ledger){0};
}
