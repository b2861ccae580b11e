/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A life table: how many blocks of a stack live for how long, from those that were freed at some age, and those that
 * were not seen any more from some age on (Kaplan and Meier's estimate, by classes of age; Greenwood's error).
 * Which blocks were watched for longer may depend on their ages, as those who are older say no less of what comes.
 */
#ifndef YRT_LEAK_LIFE_H
#define YRT_LEAK_LIFE_H

#include <stdbool.h>

#include "leak_age.h"

struct leak_life {
	double part, low, high; /* of blocks, that live for longer than asked for; with 95 % certainty */
	u64 outlived;           /* blocks that were seen to */
	u64 died;               /* blocks that were freed between an eighth of that age and it */
	bool known;             /* any block was watched for so long, or none that was lived */
	u32 reached;            /* class of age that was; else part is of it */
};

void leak_life(const u32 died[LEAK_AGES], const u32 cut[LEAK_AGES], u64 age_ns, struct leak_life *ret);

#endif
