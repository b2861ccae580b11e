/* SPDX-License-Identifier: Apache-2.0 */
/* One process, or the process of a core, with all that it takes to read it and nothing that samples. */
#ifndef YRT_PROCESS_ALONE_H
#define YRT_PROCESS_ALONE_H

#include "process.h"

struct process_alone {
	struct arena *arena;
	struct modules *modules;
	struct process *p;
};

/*
 * core: NULL for the live process pid; must outlive it. complain: as modules.complain, with ctx; NULL: nobody hears of
 * what files lack. Returns as process_create(). process_alone_close() is due in any case.
 */
struct error *process_alone_open(struct process_alone *a, pid_t pid, struct core_file *core,
        void (*complain)(void *ctx, struct error *err), void *ctx);
void process_alone_close(struct process_alone *a); /* zeros are fine */

#endif
