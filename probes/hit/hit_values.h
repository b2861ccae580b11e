/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The arguments of a call of a language's function, as BPF reads them (unwind/shared/value.h) and tells them. */
#ifndef YRT_HIT_VALUES_H
#define YRT_HIT_VALUES_H

#include <types.h>

#include "unwind/shared/record.h"
#include "unwind/shared/value.h"

#define VALUES_FUNCTIONS 256  /* whose arguments are read */
#define VALUES_KNOWN     4096 /* different calls that are kept apart */

/* A call that is under way, of whose arguments only slow ones are told: whose, and since when. */
struct values_call {
	u64 who, began;
	u32 tgid, reserved;
};
#define VALUES_CALLS 2048 /* 1.2 KB each */

struct values_record { /* RECORD_EVENT, of this size */
	u32 type, tgid;
	u64 key;           /* equal: the arguments are */
	u32 function, n;   /* its number, from 1; slots that were looked at, */
	u32 given, unread; /* how many there are, of a result the thread; a bit for each whose slot cannot be read */
	u64 word[VALUES_MAX], kind[VALUES_MAX]; /* the slot, its type */
	u32 size[VALUES_MAX];                   /* of bytes[] that are there */
	u8 bytes[VALUES_MAX][VALUE_BYTES];
	u64 end; /* so that a word may be read from any byte on; of a result, when it was taken */
};

#endif
