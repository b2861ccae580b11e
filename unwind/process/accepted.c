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
#define FRESH_NS       50000000ull /* a wait is looked at when it has lasted for half of that or more */
#define SHARE          50

struct accepted {
	u64 *inodes; /* sorted */
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

static void add(struct accepted *a, u64 inode)
{
	if (!grow(&a->inodes, a->n, sizeof(*a->inodes)))
		a->inodes[a->n++] = inode;
}

static void read_inet(struct accepted *a, const char *line, bool listeners)
{
	unsigned int port, state;
	unsigned long inode;

	if (sscanf(line, " %*d: %*[0-9A-F]:%x %*s %x %*s %*s %*s %*d %*d %lu", &port, &state, &inode) != 3 ||
	        port > 65535)
		return;
	if (listeners && state == NET_TABLE_LISTENS)
		a->listens[port / 8] |= (u8)(1 << port % 8);
	else if (!listeners && state != NET_TABLE_LISTENS && a->listens[port / 8] >> port % 8 & 1)
		add(a, inode);
}

static void read_unix(struct accepted *a, const char *line, bool listeners)
{
	unsigned long inode;
	unsigned int state;
	char path;

	if (!listeners && sscanf(line, "%*s %*s %*s %*s %*s %x %lu %c", &state, &inode, &path) == 3 &&
	        state == UNIX_CONNECTED)
		add(a, inode);
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
	if (a->n)
		qsort(a->inodes, a->n, sizeof(*a->inodes), by_number);
	a->read_ns = now_ns();
	a->took_ns = a->read_ns - begin;
}

bool accepted_has(struct accepted *a, pid_t tid, int fd)
{
	char path[64], text[64];
	struct stat space;
	u64 inode, age;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	n = readlink(path, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	if (sscanf(text, NET_TABLE_SOCKET, &inode) != 1)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", tid);
	if (stat(path, &space))
		return false;
	age = now_ns() - a->read_ns;
	if (space.st_ino != a->space || (age > FRESH_NS && age > SHARE * a->took_ns)) {
		read_all(a, tid);
		a->space = space.st_ino;
	}
	return a->n && bsearch(&inode, a->inodes, a->n, sizeof(inode), by_number);
}
