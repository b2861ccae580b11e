/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the walker needs to go on in the heap where a virtual thread's frames are frozen (hotspot_frames.h). Offsets of Java
 * fields are those of the classes themselves; those of the VM by vmStructs, by symbol, or by the code of the barrier.
 */
#ifndef YRT_HOTSPOT_FROZEN_H
#define YRT_HOTSPOT_FROZEN_H

#include "hotspot.h"
#include "hotspot_instance.h"

/*
 * Finds StubRoutines::_cont_returnBarrier; nothing before 21. In the tables from 27 on only, else by symbol: a JVM without
 * .symtab has none before, and its walks end there as with any stub.
 */
void hotspot_frozen_find(struct hotspot_instance *instance);
/* Fills in what is known by now: the stub is made after the code heaps, classes are loaded later still. */
void hotspot_frozen_tell(struct hotspot_instance *instance, struct memory *m, struct hotspot_vm *vm);

#endif
