/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine permits: each thing that yrt would use is tried, not guessed from versions. */
#ifndef YRT_MACHINE_H
#define YRT_MACHINE_H

#include <types.h>

enum machine_state { MACHINE_OK, MACHINE_LESS, MACHINE_MISSING }; /* LESS: works, but something is not as good */

struct machine_check {
	const char *what;
	enum machine_state state;
	char found[160];
	const char *remedy; /* NULL if there is nothing to do */
};

#define MACHINE_CHECKS_MAX 24

/* Fills checks and returns their number. */
u32 machine_check(struct machine_check *checks);

/* Does the kernel tell where its functions are? */
bool machine_kernel_names(void);

#endif
