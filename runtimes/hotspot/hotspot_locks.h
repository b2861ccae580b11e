/* SPDX-License-Identifier: Apache-2.0 */
/* Monitors, java.util.concurrent's locks, and other reasons for which Java threads park. */
#ifndef HOTSPOT_LOCKS_H
#define HOTSPOT_LOCKS_H

#include "runtime.h"

extern const struct lock_rule hotspot_locks[];

enum function_role hotspot_role(const char *function);

#endif
