/* SPDX-License-Identifier: Apache-2.0 */
#include "growth_ledger.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/grow.h"

#define ADDRESS_END (1ull << 57)
#define MOVES       1024 /* of a page, that are followed */

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
	if (r->gone_size && r->moved && r->moved != r->gone)
		err = move(l, r);
	else if (r->gone_size && !r->moved)
		err = cut(l, r->instance, r->gone, r->gone + r->gone_size, r->began_ns);
	return err || !r->added_size ? err : put(l, &added);
}

/* What happened to an address after that moment; NULL: nothing. */
static const struct growth_range *since(const struct growth_ledger *l, u32 instance, u64 addr, u64 ns)
{
	u32 i = growth_ledger_at(l, instance, addr);
	const struct growth_range *r = i < l->n ? &l->ranges[i] : NULL;

	return r && r->instance == instance && r->start <= addr && r->ns > ns ? r : NULL;
}

u64 growth_ledger_page(const struct growth_ledgers *of, u32 instance, u64 addr, u64 ns)
{
	const struct growth_range *went;

	for (u32 i = 0; i < MOVES && (went = since(&of->gone, instance, addr, ns)); i++) {
		if (!went->hash)
			return 0;
		addr += went->hash;
		ns = went->ns;
	}
	return since(&of->gone, instance, addr, ns) || since(&of->mapped, instance, addr, ns) ? 0 : addr;
}

struct error *growth_ledgers_add(struct growth_ledgers *of, const struct growth_record *r)
{
	/* a page that is touched while the call runs belongs to who gets the address after it */
	struct growth_record gone = {.instance = r->instance,
	        .hash = r->moved ? r->moved - r->gone : 0,
	        .ns = r->began_ns,
	        .added = r->gone,
	        .added_size = r->gone_size};
	struct error *err = growth_ledger_add(&of->mapped, r);

	return err || !r->gone_size ? err : growth_ledger_add(&of->gone, &gone);
}

void growth_ledger_free(struct growth_ledger *l)
{
	free(l->ranges);
	*l = (struct growth_ledger){0};
}

void growth_ledgers_free(struct growth_ledgers *of)
{
	growth_ledger_free(&of->mapped);
	growth_ledger_free(&of->gone);
}
