/* SPDX-License-Identifier: Apache-2.0 */
/* What is in pools at the end of a run: in the profile, inside each stack whose pools they are, and in words. */
#ifndef YRT_POOLS_REPORT_H
#define YRT_POOLS_REPORT_H

#include "leak_stacks.h"
#include "pools.h"
#include "unwind/error.h"

struct object;

struct pools_reporting {
	struct object *object;
	const struct leak_stacks *stacks;
	struct profile *profile;
	u64 began_ns, ended_ns;
};

/* Forgets stacks of pools that are gone. */
struct error *pools_sweep(struct object *o);
/* *text: lines, malloc'd. Sets what s has of the end. */
struct error *pools_report(const struct pools_reporting *r, struct pool_summary *s, char **text);

#endif
