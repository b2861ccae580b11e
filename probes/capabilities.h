/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine permits: each thing that yrt would use is tried, not guessed from versions. */
#ifndef YRT_CAPABILITIES_H
#define YRT_CAPABILITIES_H

#include <types.h>

#include "unwind/error.h"

#define CAPABILITY_REMEDY 256

enum capability_state {
	CAPABILITY_OK,
	CAPABILITY_LESS,
	CAPABILITY_MISSING
}; /* LESS: works, but something is not as good */

struct capability_check {
	const char *what;
	enum capability_state state;
	char found[160];
	const char *remedy;           /* NULL if there is nothing to do */
	char text[CAPABILITY_REMEDY]; /* of remedy, where it is made up */
};

#define CAPABILITIES_MAX 24

/* Fills checks and returns their number. */
u32 capabilities_find(struct capability_check *checks);

enum capability { /* <linux/capability.h> */
	CAPABILITY_DAC_READ_SEARCH = 2,
	CAPABILITY_SYS_PTRACE = 19,
	CAPABILITY_SYS_ADMIN = 21,
	CAPABILITY_PERFMON = 38,
	CAPABILITY_BPF = 39,
	CAPABILITY_CHECKPOINT_RESTORE = 40,
};
#define CAPABILITY_BIT(name) (1UL << CAPABILITY_##name)

/* Why bpf() was refused (EPERM), with that. */
struct error *capabilities_no_bpf(int code);
/* Why perf_event_open(), or attaching to its event, failed, with the above if it was refused. to: "sample CPU 1". */
__attribute__((format(printf, 2, 3))) struct error *capabilities_no_event(int code, const char *to, ...);

#endif
