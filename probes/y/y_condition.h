/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the handlers that evaluate conditions into a run of probe or latency (y_if.h). */
#ifndef YRT_Y_CONDITION_H
#define YRT_Y_CONDITION_H

#include "probes/hit/hit.h"
#include "unwind/error.h"
#include "y_object.h"

struct y_condition;

/*
 * Takes the compiled conditions of o: object has one handler for each, in order. other_kind: the status of a handler
 * whose value has another type. Sets the fields of o that point to *ret. object and *ret must outlive the run.
 */
struct error *y_condition_new(
        const struct y_object *object, u32 other_kind, struct hit_options *o, struct y_condition **ret);
void y_condition_free(struct y_condition *c); /* NULL is fine */

#endif
