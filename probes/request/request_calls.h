/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests as calls of one function: of a server in a language that is interpreted or compiled as it runs, or of any
 * function without an end of its own. They are measured as calls are by `yrt latency --over`, except that every call is
 * reported, and shown in the table of `yrt requests`. Their route is what their key says (hit_options.key), or the
 * function.
 *
 * Of a function that runs in one thread until it returns, what its thread ran, queued and waited for is the request's.
 * While a coroutine is under way its thread serves others, too: what it ran is `others` then, and `idle` what it slept.
 */
#ifndef YRT_REQUEST_CALLS_H
#define YRT_REQUEST_CALLS_H

#include "probes/event.h"

/* Its options begin with a struct hit_options. `yrt requests` has it in place of request_event. */
extern const struct event_ops request_calls_event;

struct request_table;
/* Of its data: requests go into this table in place of its own. */
void request_calls_use(void *event, struct request_table *table);
bool request_calls_serve(const void *event); /* a target has, or had, one of the functions */

#endif
