/* SPDX-License-Identifier: Apache-2.0 */
/* The exit status of a command that watch's --when asks. */
#ifndef YRT_WHEN_EXIT_H
#define YRT_WHEN_EXIT_H

#include <signal.h>

#include "unwind/error.h"

#define WHEN_EXIT_S 10 /* a command that takes longer is killed */

/*
 * Runs sh -c command in a process group of its own, without input and output; what it writes to stderr is seen. As in a
 * shell, 128 + N is signal N. An error: there is no shell, or it finds no such command (126, 127). Whatever interrupts
 * the waiting and sets *stop ends the command; *ret is then that of its signal.
 */
struct error *when_exit_status(const char *command, volatile sig_atomic_t *stop, int *ret);

#endif
