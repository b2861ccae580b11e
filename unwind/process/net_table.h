/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of sockets of a thread's network namespace: Documentation/networking/proc_net_tcp.rst. */
#ifndef YRT_NET_TABLE_H
#define YRT_NET_TABLE_H

#include <stdio.h>
#include <sys/types.h>

#define NET_TABLE_LISTENS 10             /* the state of a socket of TCP */
#define NET_TABLE_LINES   200000         /* that are read at most */
#define NET_TABLE_SOCKET  "socket:[%lu]" /* what a descriptor's link says: its inode */

/* name: "tcp", "unix". NULL: there is none. */
static inline FILE *net_table_open(pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/net/%s", tid, name);
	return fopen(path, "re");
}

#endif
