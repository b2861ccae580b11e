/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual threads (21 on) without a carrier: the list of them, and the stack of one. They are found where
 * Thread.dump_to_file finds them: in jdk.internal.vm.ThreadContainers. Its root has those that were started directly
 * (unless -Djdk.trackAllThreads=false); the others are executors and scopes.
 */
#ifndef YRT_HOTSPOT_VIRTUAL_H
#define YRT_HOTSPOT_VIRTUAL_H

#include "hotspot_instance.h"
#include "runtime.h"

/*
 * Calls each for all of them, each a java.lang.VirtualThread, until it returns false. One may come twice. False: each
 * has said so. m: memory that may be as old as the search.
 */
bool hotspot_each_virtual(struct hotspot_instance *instance, struct memory *m,
        bool (*each)(void *ctx, struct memory *m, u64 thread), void *ctx);

/*
 * State that shows where a virtual thread's frames are: if it is equal before and after reading them, they are of one
 * moment.
 */
struct hotspot_parked {
	u64 cont, chunk; /* Continuation and its innermost StackChunk, 0: none (yet) */
	u64 state_at;
	u32 state;
};

#endif
