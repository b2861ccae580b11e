/* SPDX-License-Identifier: Apache-2.0 */
/* Waits by design of Java's libraries and of HotSpot's own threads. */
#ifndef HOTSPOT_IDLE_H
#define HOTSPOT_IDLE_H

#include "runtime.h"

extern const struct idle_rule hotspot_idle[];

#endif
