/* SPDX-License-Identifier: Apache-2.0 */
/* How often a thread has left its CPU, as the kernel counts: the same number again means that it did not run. */
#ifndef YRT_SWITCHES_H
#define YRT_SWITCHES_H

#include <stdbool.h>
#include <types.h>

struct switches {
	u64 voluntary; /* it waited for something */
	u64 others;    /* it could have gone on */
};

/* False: it is gone. */
bool switches_read(u32 tgid, u32 tid, struct switches *ret);

#endif
