/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that TCP holds back: the end of a message that is shorter than a segment, and is not sent until what was sent
 * before it is acknowledged (Nagle's algorithm, RFC 896). Source: struct tcp_info of linux/tcp.h by sock_diag(7), of
 * the sockets of the targets and, where it is in the same network namespace, of the other side.
 */
#ifndef YRT_REPORT_HELD_H
#define YRT_REPORT_HELD_H

#include <sys/types.h>

#include "facts.h"

/*
 * Looks for half a second. Facts "net.held": the part of the looks in which a connection of the pids had such data;
 * "net.held.own": with data that one of them wrote; "net.held.by": who wrote it ("pid 42, to 127.0.0.1:6379", "the
 * other side, 127.0.0.1:6379"); "net.peers". None if the kernel does not tell.
 */
void held_facts(const pid_t *pids, u32 n, struct facts *ret);

#endif
