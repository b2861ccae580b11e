/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assembly that C calls through a row of call instructions, whose return address tells it which of them was used, such
 * as callbacks of purego (sys_amd64.s of 0.8 to 0.11). It drops that return address and loads its caller's, which is
 * above it. It then puts arguments in that place, and keeps the caller's return address in a register and later on the
 * stack.
 */
#ifndef YRT_GO_POPPING_H
#define YRT_GO_POPPING_H

#include "go_code.h"
#include "shared/cfi.h"

/* Has it this form, without a jump? */
bool go_is_popping(struct go_code *code, struct go_table *t, const struct go_function *fn);
/* Rows that lead to the caller of the row of calls. */
bool go_popping_rows(struct go_code *code, struct go_table *t, const struct go_function *fn,
        bool (*add)(void *ctx, u64 addr, const struct cfi_rule *rule), void *ctx);

#endif
