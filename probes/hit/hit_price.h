/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the probes add to the time of a call, as the target pays it: from when the program at the entry read the clock
 * until the next hit's program does. So for some calls a probe at the second instruction is hit, too: between both
 * there is nothing but the way out of a hit and the way into the next one, as there is between the entry and the
 * return. Such a call begins at its second instruction.
 *
 * The probe is taken away once it was hit LATENCY_PRICES times, so a loop back to there costs no more than that.
 */
#ifndef YRT_HIT_PRICE_H
#define YRT_HIT_PRICE_H

#include "hit_find.h"
#include "latency.h"
#include "probes/event.h"
#include "unwind/process/process.h"

struct hit_price; /* of a run */

struct latency_price {         /* ns; all 0: it is not known */
	u64 low, middle, high; /* 10, 50, 90 % of the prices */
	u64 mean;
	u32 n;
};

struct error *hit_price_create(const struct event_host *host, struct hit_price **ret);
void hit_price_destroy(struct hit_price *h); /* NULL is fine */
/*
 * A function that is measured. Only the first of a run tell the price. path: of the image, for the kernel. Functions
 * whose first instruction goes elsewhere tell none.
 */
struct error *hit_price_place(struct hit_price *h, const struct process *p, const struct image *img, const char *path,
        const struct hit_place *entry);
/* Takes the probes away when the price is known. To be called some ten times a second. */
void hit_price_poll(struct hit_price *h);
struct latency_price hit_price_get(const struct hit_price *h);

/* Sorts prices in place; those that are 0 were not measured and are left out. */
struct latency_price latency_price_of(u64 *prices, u32 n);

#endif
