/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which runtimes' walkers BPF has. At each load the kernel's verifier checks everything that a program may call, so
 * only the walkers of recognised runtimes are loaded (skeleton.h). When another runtime appears, a separate thread
 * loads the programs that take stacks once more, with its walker too, while the old ones go on. They use the same maps,
 * so no count moves. The new ones take over by one change of the table through which the attached stub calls (WALKING()
 * of event.bpf.h). That change is atomic: each event runs the old program or the new one.
 *
 * Until then a walk that reaches the runtime's code ends with STOP_NO_WALKER and leaves a copy of its stack for a
 * deferred walk, as in code that is not known yet.
 */
#ifndef YRT_WALKER_LOADS_H
#define YRT_WALKER_LOADS_H

#include <types.h>

#include "object.h"
#include "unwind/error.h"

struct walkers;

struct walkers_stats {
	u32 loads; /* that were done since the first one */
	u64 ns;    /* how long they took, together */
};

/* object was loaded with these walkers (bit n: of the runtime of id n). */
struct error *walkers_create(struct object *object, u32 loaded, struct walkers **ret);
/* Waits for a load that is on its way. */
void walkers_destroy(struct walkers *w);
/* Readable when a load is done. */
int walkers_fd(const struct walkers *w);
/* These runtimes were seen: starts a load if a walker is missing and none is on its way. An error reports one that
 * failed since: the walkers then stay as they are. */
struct error *walkers_want(struct walkers *w, u32 runtimes);
/* The same, and waits until they are loaded. */
struct error *walkers_need(struct walkers *w, u32 runtimes);
void walkers_stats(const struct walkers *w, struct walkers_stats *ret);

#endif
