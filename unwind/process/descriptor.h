/* SPDX-License-Identifier: Apache-2.0 */
/* What an open file descriptor of a thread is, as text: a path, a pipe, a socket with its ends. */
#ifndef YRT_DESCRIPTOR_H
#define YRT_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

#define DESCRIPTOR_TEXT 512

/*
 * "/var/log/syslog", "tcp 127.0.0.1:80 to 127.0.0.1:4711", "tcp 0.0.0.0:80 listens", "unix /run/x.sock", "pipe:[4]".
 * Paths are as the target has them: hostile. False: there is no such descriptor, or it may not be looked at.
 */
bool descriptor_text(pid_t tid, int fd, char ret[DESCRIPTOR_TEXT]);

#endif
