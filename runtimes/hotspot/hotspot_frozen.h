/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the walker needs to continue in the heap, where a virtual thread's frames are frozen (hotspot_frames.h). Offsets
 * of fields, also of those that the VM adds, come from the classes; those of the VM's structures from vmStructs,
 * symbols, or code.
 */
#ifndef YRT_HOTSPOT_FROZEN_H
#define YRT_HOTSPOT_FROZEN_H

#include "runtimes/hotspot/walk/hotspot.h"
#include "hotspot_instance.h"

/*
 * Is there anything to know, and is StubRoutines::_cont_returnBarrier in the tables (from 27 on) or in .symtab? Else
 * it is found by its code (hotspot_frozen_code.h). Nothing before 21.
 */
void hotspot_frozen_find(struct hotspot_instance *instance, struct memory *m);
/*
 * Looks for what is not known yet: the stub is made after the code heaps; classes are loaded and enterSpecial is made
 * later still.
 */
struct error *hotspot_frozen_look(struct hotspot_instance *instance, struct memory *m);
/* Fills in what is known by now. */
void hotspot_frozen_tell(const struct hotspot_instance *instance, struct hotspot_vm *vm);
/* What leads to objects that a collector has moved, also before all else is known. */
void hotspot_frozen_objects(struct hotspot_instance *instance, struct memory *m, struct hotspot_vm *vm);
/*
 * Is something still missing, and is it time to look again? Ever more rarely, because most JVMs never have a virtual
 * thread.
 */
bool hotspot_frozen_due(const struct hotspot_instance *instance, u64 now);
/* What is missing where hotspot_frozen_look() found nothing, for people; NULL: no virtual thread has run yet. */
const char *hotspot_frozen_missing(struct hotspot_instance *instance, struct memory *m);
/* A class that the VM itself knows (vmClasses), by name; 0: none. */
u64 hotspot_vm_class(struct hotspot_instance *instance, struct memory *m, const char *name);

#endif
