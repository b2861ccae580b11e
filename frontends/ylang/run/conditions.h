/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of probe and latency (--if), compiled for a process. */
#ifndef YRT_YLANG_CONDITIONS_H
#define YRT_YLANG_CONDITIONS_H

#include <sys/types.h>

#include "probes/hit/hit.h"
#include "unwind/error.h"

struct y_conditions;

/* source: of event_command.asks(). ERROR_USAGE: what is wrong with it. *ret outlives the run of o. */
struct error *y_conditions_make(const char *source, pid_t pid, struct hit_options *o, struct y_conditions **ret);
void y_conditions_free(struct y_conditions *c); /* NULL is fine */

#endif
