/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine permits: each thing that yrt would use is tried, not guessed from versions. */
#ifndef YRT_CAPABILITIES_H
#define YRT_CAPABILITIES_H

#include <types.h>

enum capability_state {
	CAPABILITY_OK,
	CAPABILITY_LESS,
	CAPABILITY_MISSING
}; /* LESS: works, but something is not as good */

struct capability_check {
	const char *what;
	enum capability_state state;
	char found[160];
	const char *remedy; /* NULL if there is nothing to do */
};

#define CAPABILITIES_MAX 24

/* Fills checks and returns their number. */
u32 capabilities_find(struct capability_check *checks);

/* Does the kernel show where its functions are? */
bool capabilities_kernel_names(void);

#endif
