/* SPDX-License-Identifier: Apache-2.0 */
/* What a process is called, for people. */
#ifndef YRT_COMM_H
#define YRT_COMM_H

#include <sys/types.h>

#define COMM_TEXT 64

/* "": it is gone. Hostile. */
void comm_read(pid_t pid, char ret[COMM_TEXT]);

#endif
