/* SPDX-License-Identifier: Apache-2.0 */
/* The one process, or core, that a command reads without sampling it. */
#ifndef YRT_ONE_TARGET_H
#define YRT_ONE_TARGET_H

#include "cli.h"
#include "unwind/process/alone.h"
#include "unwind/process/view.h"

/* The options of a core, by the command's own numbers for them. */
/* clang-format off */
#define CORE_OPTIONS(core, root) \
	{core, "core", "FILE", "a core file in place of a process; needs no privileges", COMPLETE_FILE}, \
	{root, "root", "DIR", "where the files are that the process of the core had mapped, if not here", \
		COMPLETE_FILE}
/* clang-format on */

struct one_target {
	int pid;                 /* as the user gave it, */
	const char *core, *root; /* or this, and NULL or where its files are */
	bool quiet;              /* no notes */
	struct core_file *file;
	struct process_alone alone;
	struct process *p; /* of it */
};

/* A process or a core was given, not both. */
struct error *one_target_check(int pid, const char *core, const char *root);
/* Of the first four fields it makes the others. one_target_close() is due in any case. */
struct error *one_target_open(struct one_target *t);
void one_target_close(struct one_target *t);
/* Its pid, also that which the process of a core had. */
int one_target_pid(const struct one_target *t);
/* That it has no such runtime. */
struct error *one_target_lacks(const struct one_target *t, const struct view *view);

#endif
