/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sockets are connections that were accepted: who reads from one waits for its client; which hear whoever comes.
 * By the tables of the thread's network namespace: a TCP socket on a port where another one listens, a Unix socket that
 * has its listener's path; sockets that listen, and those of UDP with a port below 32768 and no peer. They are read
 * anew when one is asked for that they may be too old for, for at most a fiftieth of the time.
 */
#ifndef YRT_ACCEPTED_H
#define YRT_ACCEPTED_H

#include <sys/types.h>

struct accepted;

enum hears {
	HEARS_OTHERS,
	HEARS_CLIENT, /* a connection that was accepted */
	HEARS_ALL,    /* whoever comes */
};

/* NULL: no memory. */
struct accepted *accepted_create(void);
void accepted_destroy(struct accepted *a);
/* HEARS_OTHERS, too, for what is no socket, is gone, or may not be looked at. */
enum hears accepted_hears(struct accepted *a, pid_t tid, int fd);

#endif
