/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks with a function that was gone when it should have been named. A stack is sent only once, however often it is
 * counted. But a program that makes the same function again and again (a template that is compiled for each request)
 * often puts the next one at the same place. So such a stack is named again later, until all its functions are found.
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
/*
 * Names some of them again, and forgets those that are whole. At most a tenth of the time goes into this, else what is
 * never found again would take all of it: the code of modules that a program imports once.
 */
struct error *gone_retry(struct gone *g, gone_name *name, void *ctx);
/* Forgets those of an epoch: BPF sends them anew. */
void gone_forget(struct gone *g, u32 epoch);

#endif
