/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks with a function that was not there any more when it was to be named. A stack crosses once, however often it is
 * counted, and where a program makes the same function again and again (a template, compiled for each request), the
 * next one often has the place of the last: so such a stack is named again later, until all of it is there.
 */
#ifndef YRT_GONE_H
#define YRT_GONE_H

#include <types.h>

#include "error.h"
#include "shared/record.h"

struct gone;

/* Names a stack and says whether all of it is there. */
typedef struct error *gone_name(
        void *ctx, const struct stack_record *record, const struct frame *frames, u32 n, bool *whole);

struct gone *gone_create(void); /* NULL: out of memory */
void gone_destroy(struct gone *g);
/* Keeps a copy; where there is no room, in place of the oldest. */
struct error *gone_keep(struct gone *g, const struct stack_record *record, const struct frame *frames, u32 n);
/* Names some of them again, and forgets those that are whole. */
struct error *gone_retry(struct gone *g, gone_name *name, void *ctx);
/* Forgets those of an epoch: BPF sends them anew. */
void gone_forget(struct gone *g, u32 epoch);

#endif
