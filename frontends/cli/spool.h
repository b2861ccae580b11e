/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of watch on their way to a store: what the store does not take stays in the folder and is tried again with
 * the next one, or after a while. A store that is down, hangs, or asks for a pause must not hold up the next recording.
 */
#ifndef YRT_SPOOL_H
#define YRT_SPOOL_H

#include <types.h>

#include "send.h"
#include "unwind/table.h"

struct spool {
	const char *dir;
	u64 limit;                /* bytes of all recordings */
	double retry_s;           /* what is left is tried again so much later, also if there is no next one */
	struct send_options send; /* url NULL: they are kept, and not sent */
	/* its own */
	struct table refused; /* recordings that the store does not take: they are kept, and not sent again */
	u64 pause_ns;         /* nothing is sent before: the store asked for that, or hangs */
	u64 retry_ns;         /* when that is */
	int code;             /* of the last one that was not sent; 0: all were */
};

/*
 * Sends what is there, and makes room. What goes wrong is reported. A recording has one attempt in any case, and others
 * only if they are over before until_ns.
 */
void spool_put_away(struct spool *s, u64 until_ns);
/* The same once it is time to try again what is left, if anything is. */
void spool_retry(struct spool *s, u64 until_ns);
/* 0, or the exit code of a run that ends now. */
int spool_code(const struct spool *s);
void spool_free(struct spool *s);

#endif
