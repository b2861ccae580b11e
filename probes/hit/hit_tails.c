/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_tails.h"

#include <stdio.h>
#include <stdlib.h>

#include "unwind/binary/endbr64.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/symbols/symbols.h"

#define STUB_MAX 16 /* bytes of a stub of the PLT */

bool hit_tails_is_root(const struct hit_ways *ways, const struct image *img, u64 addr)
{
	return img == ways->visited[0].img &&
	       (addr == ways->visited[0].start || addr == probed_entry(ways->visited[0].img, ways->visited[0].start));
}

static struct error *add(
        struct hit_ways *ways, struct image *img, const struct hit_exit *exit, enum hit_way_kind kind, bool borrowed)
{
	struct error *err = grow(&ways->of, ways->n, sizeof(*ways->of));

	if (err)
		return err;
	ways->of[ways->n++] =
	        (struct hit_way){.img = image_get(img), .exit = *exit, .kind = kind, .borrowed = borrowed};
	return NULL;
}

/* Is a stub of the PLT jumped to? Then *slot is where its target is. */
static bool is_stub(const struct hit_exits *exits, u64 start, u64 *slot)
{
	const struct latency_jump *jump = &exits->of[0].jump;

	*slot = exits->n ? jump->slot : 0;
	return *slot && jump->at - start < STUB_MAX;
}

static struct error *visit(struct hit_ways *ways, struct image *img, u64 start, u64 *slot);

/* A jump to another function. */
static struct error *take_tail(struct hit_ways *ways, struct image *img, struct hit_exit exit, bool borrowed)
{
	enum hit_way_kind kind = exit.to ? WAY_TAIL : WAY_ASK;
	struct error *err = NULL;
	u64 slot = 0;

	if (exit.to && hit_tails_is_root(ways, img, exit.to))
		return add(ways, img, &exit, WAY_AGAIN, borrowed);
	if (exit.to)
		err = visit(ways, img, exit.to, &slot);
	if (err == &error_no_memory)
		return err;
	if (err) {
		if (!*ways->lost)
			snprintf(ways->lost, sizeof(ways->lost), "%s", err->message);
		error_free(err);
		kind = WAY_LOST;
	} else if (slot) {
		exit.jump.slot = slot;
		exit.jump.condition = exit.asks ? exit.jump.condition : LATENCY_NONE;
		exit.asks = true;
		kind = WAY_ASK;
	}
	return borrowed && kind == WAY_TAIL ? NULL : add(ways, img, &exit, kind, borrowed); /* it is marked already */
}

static struct error *take(struct hit_ways *ways, struct image *img, const struct hit_exit *exit, bool borrowed)
{
	if (exit->again) /* a loop of a function that was jumped to is of no interest */
		return borrowed ? NULL : add(ways, img, exit, WAY_AGAIN, false);
	return exit->tail ? take_tail(ways, img, *exit, borrowed) : add(ways, img, exit, WAY_RETURN, borrowed);
}

static struct error *refused_before(const struct hit_ways *ways, u64 start)
{
	return error_new(
	        ERROR_UNSUPPORTED, "-e %s: it jumps to 0x%lx, where not all returns are known", ways->what, start);
}

/* *slot: it is a stub of the PLT, which leads to what is there; else 0. */
static struct error *visit(struct hit_ways *ways, struct image *img, u64 start, u64 *slot)
{
	cleanup(free) struct hit_exits *exits = NULL;
	u32 number = ways->nvisited;
	struct error *err;

	*slot = 0;
	for (u32 i = 0; i < number; i++)
		if (ways->visited[i].img == img && ways->visited[i].start == start)
			return ways->visited[i].lost ? refused_before(ways, start) : NULL;
	exits = calloc(1, sizeof(*exits));
	if (!exits)
		return &error_no_memory;
	err = number ? hit_exits_sweep(ways->what, img, start, exits) : hit_exits_find(ways->what, img, start, exits);
	if (!err && number && is_stub(exits, start, slot))
		return NULL;
	if (!err && number == HIT_TAILS_MAX)
		err = error_new(ERROR_UNSUPPORTED, "-e %s: its tail calls lead to more than %u functions", ways->what,
		        HIT_TAILS_MAX);
	if (number < HIT_TAILS_MAX) {
		ways->visited[number].img = image_get(img);
		ways->visited[number].start = start;
		ways->visited[number].lost = err;
		ways->nvisited++;
	}
	for (u32 i = 0; !err && i < exits->n; i++)
		err = take(ways, img, &exits->of[i], number > 0);
	return err;
}

/* Is there any way out that may be seen? */
static bool has_end(const struct hit_ways *ways)
{
	for (u32 i = 0; i < ways->n; i++)
		if (!ways->of[i].borrowed && (ways->of[i].kind != WAY_AGAIN && ways->of[i].kind != WAY_LOST))
			return true;
	return false;
}

struct error *hit_tails_find(const char *what, struct image *img, u64 start, struct hit_ways *ret)
{
	struct error *err;
	u64 slot;

	*ret = (struct hit_ways){.what = what};
	err = visit(ret, img, start, &slot);
	if (!err && !has_end(ret))
		err = error_hint(error_new(ERROR_UNSUPPORTED, "%s", ret->lost),
		        "choose a function that calls it; yrt probe shows its calls");
	if (err)
		hit_tails_free(ret);
	return err;
}

bool hit_tails_add(struct hit_ways *ways, struct image *img, u64 start)
{
	u64 slot;
	struct error *err = visit(ways, img, start, &slot);

	if (err && !*ways->lost)
		snprintf(ways->lost, sizeof(ways->lost), "%s", err->message);
	if (err)
		error_free(err);
	return !err && !slot;
}

void hit_tails_free(struct hit_ways *ways)
{
	for (u32 i = 0; i < ways->n; i++)
		image_put(ways->of[i].img);
	for (u32 i = 0; i < ways->nvisited; i++)
		image_put(ways->visited[i].img);
	free(ways->of);
	*ways = (struct hit_ways){.what = ways->what};
}
