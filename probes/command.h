/* SPDX-License-Identifier: Apache-2.0 */
/* A program that yrt starts itself: held before its exec until the clock is attached. */
#ifndef YRT_COMMAND_H
#define YRT_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "unwind/error.h"

struct command;

struct error *command_create(char *const *argv, struct command **ret);
/* A command that still runs gets SIGTERM; one that was never let go is killed. */
void command_destroy(struct command *c);
pid_t command_pid(const struct command *c);
/* Lets it execute. An error if it can not (no such program). */
struct error *command_go(struct command *c);
bool command_has_ended(struct command *c);
#define COMMAND_RUNS -1
/* The status of waitpid(); COMMAND_RUNS: it had not ended when command_has_ended() last looked. */
int command_status(const struct command *c);

#endif
