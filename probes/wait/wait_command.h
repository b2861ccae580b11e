/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of waits share. */
#ifndef YRT_WAIT_COMMAND_H
#define YRT_WAIT_COMMAND_H

#include "probes/event_command.h"

enum wait_key {
	WAIT_MIN = EVENT_KEY,
	WAIT_MAX,
	WAIT_WAKERS,
	WAIT_LOGICAL,
	WAIT_NO_IDLE,
	WAIT_IDLE,
	WAIT_HOLDERS,
	WAIT_ALL,
};

extern const struct event_command wait_command, lock_command, wall_command;
extern const struct event_words wait_words, lock_words, wall_words;

/* Can a wait be at least and at most so long? */
struct error *wait_check(struct run_request *r, bool recorded);

#endif
