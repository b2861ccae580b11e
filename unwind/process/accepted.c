/* SPDX-License-Identifier: Apache-2.0 */
/* Documentation/networking/proc_net_tcp.rst, unix_seq_show() in net/unix/af_unix.c. */
#include "accepted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <types.h>
#include <unistd.h>

#include "cleanup.h"
#include "grow.h"
#include "net_table.h"
#include "now.h"

#define UNIX_CONNECTED 3
#define UNIX_LISTENS   0x10000     /* __SO_ACCEPTCON */
#define EPHEMERAL      32768       /* ports from here on are the kernel's choice, as a rule */
#define FRESH_NS       50000000ull /* a wait is looked at when it has lasted for half of that or more */
#define SHARE          50

struct accepted {
	u64 *inodes; /* twice, and 1 if it hears whoever comes; sorted */
	u32 n;
	u8 listens[65536 / 8];
	ino_t space; /* the network namespace that they are of */
	u64 read_ns, took_ns;
};

struct accepted *accepted_create(void)
{
	return calloc(1, sizeof(struct accepted));
}

void accepted_destroy(struct accepted *a)
{
	if (a)
		free(a->inodes);
	free(a);
}

static void add(struct accepted *a, u64 inode, bool all)
{
	if (!grow(&a->inodes, a->n, sizeof(*a->inodes)))
		a->inodes[a->n++] = inode << 1 | all;
}

static void read_inet(struct accepted *a, const char *line, bool listeners)
{
	unsigned int port, state;
	unsigned long inode;

	if (sscanf(line, " %*d: %*[0-9A-F]:%x %*s %x %*s %*s %*s %*d %*d %lu", &port, &state, &inode) != 3 ||
	        port > 65535)
		return;
	if (listeners && state == NET_TABLE_LISTENS) {
		a->listens[port / 8] |= (u8)(1 << port % 8);
		add(a, inode, true);
	} else if (!listeners && state != NET_TABLE_LISTENS && a->listens[port / 8] >> port % 8 & 1) {
		add(a, inode, false);
	}
}

static void read_udp(struct accepted *a, const char *line, bool listeners)
{
	unsigned int port, peer;
	unsigned long inode;

	if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%x %*x %*s %*s %*s %*d %*d %lu", &port, &peer, &inode) == 3 &&
	        port && port < EPHEMERAL && !peer)
		add(a, inode, true);
}

static void read_unix(struct accepted *a, const char *line, bool listeners)
{
	unsigned long inode;
	unsigned int flags, state;
	char path;

	if (sscanf(line, "%*s %*s %*s %x %*s %x %lu %c", &flags, &state, &inode, &path) != 4)
		return;
	if (flags & UNIX_LISTENS)
		add(a, inode, true);
	else if (state == UNIX_CONNECTED)
		add(a, inode, false);
}

static void read_table(struct accepted *a, pid_t tid, const char *name,
        void (*each)(struct accepted *a, const char *line, bool listeners), bool listeners)
{
	cleanup(fclose) FILE *f = net_table_open(tid, name);
	char line[512];

	for (int i = 0; f && i < NET_TABLE_LINES && fgets(line, sizeof(line), f); i++)
		each(a, line, listeners);
}

static int by_number(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static void read_all(struct accepted *a, pid_t tid)
{
	u64 begin = now_ns();

	a->n = 0;
	memset(a->listens, 0, sizeof(a->listens));
	for (int listeners = 1; listeners >= 0; listeners--) {
		read_table(a, tid, "tcp", read_inet, listeners);
		read_table(a, tid, "tcp6", read_inet, listeners);
	}
	read_table(a, tid, "unix", read_unix, false);
	read_table(a, tid, "udp", read_udp, false);
	read_table(a, tid, "udp6", read_udp, false);
	if (a->n)
		qsort(a->inodes, a->n, sizeof(*a->inodes), by_number);
	a->read_ns = now_ns();
	a->took_ns = a->read_ns - begin;
}

enum hears accepted_hears(struct accepted *a, pid_t tid, int fd)
{
	char path[64], text[64];
	struct stat space;
	u64 inode, age;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	n = readlink(path, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	if (sscanf(text, NET_TABLE_SOCKET, &inode) != 1)
		return HEARS_OTHERS;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", tid);
	if (stat(path, &space))
		return HEARS_OTHERS;
	age = now_ns() - a->read_ns;
	if (space.st_ino != a->space || (age > FRESH_NS && age > SHARE * a->took_ns)) {
		read_all(a, tid);
		a->space = space.st_ino;
	}
	for (u64 all = 0; a->n && all <= 1; all++) {
		u64 key = inode << 1 | all;

		if (bsearch(&key, a->inodes, a->n, sizeof(key), by_number))
			return all ? HEARS_ALL : HEARS_CLIENT;
	}
	return HEARS_OTHERS;
}
