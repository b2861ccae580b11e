/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits of threads that are idle, whatever their program calls that. Such waits would make each share of the others
 * small, and its interval wide. They are waits for work, or for the end of another thread (a condition, poll, accept,
 * join), for a second and more at a time; and sleeps of half a second and more, few calls below the start of the
 * thread, which looks after something now and then.
 */
#ifndef YRT_REPORT_IDLE_WAITS_H
#define YRT_REPORT_IDLE_WAITS_H

#include <stdbool.h>

#include "unwind/error.h"
#include "unwind/profile/profile.h"

/* p: of waits, with their number as profile_node.more. *ret: for each node whether its own time is such. malloc'd. */
struct error *idle_waits(const struct profile *p, bool **ret);

#endif
