/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of probe and latency (--if), compiled for the processes of a run. */
#ifndef YRT_YLANG_CONDITIONS_H
#define YRT_YLANG_CONDITIONS_H

#include <sys/types.h>

#include "probes/hit/hit.h"
#include "unwind/error.h"

struct y_conditions;

/*
 * source: of event_command.asks(), taken over. pids: at least one. ERROR_USAGE: what is wrong with it. *ret outlives
 * the run of o. Processes for which it would be another program have no calls: the run says which.
 */
struct error *y_conditions_make(
        char *source, const pid_t *pids, u32 n, struct hit_options *o, struct y_conditions **ret);
void y_conditions_free(struct y_conditions *c); /* NULL is fine */

#endif
