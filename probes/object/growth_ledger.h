/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory processes have mapped in a run, by address, each range with the stack that mapped it: parts that are
 * unmapped, replaced or moved are cut out of it.
 */
#ifndef YRT_GROWTH_LEDGER_H
#define YRT_GROWTH_LEDGER_H

#include "growth.h"
#include "unwind/error.h"

#define GROWTH_RANGES 262144 /* at most */

struct growth_range {
	u32 instance;
	u32 reserved;
	u64 start, end;
	u64 hash; /* of the stack */
	u64 ns;   /* when */
};

struct growth_ledger {
	struct growth_range *ranges; /* by instance and address, none overlaps another */
	u32 n;
	u64 full; /* that there was no room for */
};

/* Records come in the order in which calls ended. Addresses that are no addresses are ignored. */
struct error *growth_ledger_add(struct growth_ledger *l, const struct growth_record *r);
/* The first range that ends behind this address, or n. */
u32 growth_ledger_at(const struct growth_ledger *l, u32 instance, u64 addr);
void growth_ledger_free(struct growth_ledger *l);

struct growth_ledgers {
	struct growth_ledger mapped;
	struct growth_ledger gone; /* when an address was unmapped, moved or dropped last; hash: how far it was moved */
};

struct error *growth_ledgers_add(struct growth_ledgers *of, const struct growth_record *r);
/* Where a page is that was touched at that moment; 0: it was unmapped, dropped or replaced since. */
u64 growth_ledger_page(const struct growth_ledgers *of, u32 instance, u64 addr, u64 ns);
void growth_ledgers_free(struct growth_ledgers *of);

#endif
