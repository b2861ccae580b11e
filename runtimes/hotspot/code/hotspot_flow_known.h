/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that were disassembled before. HotSpot's stubs repeat themselves, and those of another JVM are the same
 * but for addresses, distances and constants, which no state depends on; capstone takes 0.5 us for each. Processes are
 * read by one thread.
 */
#ifndef YRT_HOTSPOT_FLOW_KNOWN_H
#define YRT_HOTSPOT_FLOW_KNOWN_H

#include "hotspot_flow.h"

/* The instruction at addr, whose bytes and what follows are `bytes`. False: not known. */
bool flow_known_find(const u8 *bytes, size_t size, u64 addr, struct flow_ins *ret);

/* ins->size bytes. */
void flow_known_keep(const u8 *bytes, const struct flow_ins *ins);

#endif
