/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets by the tables of the thread's own network namespace: Documentation/networking/proc_net_tcp.rst,
 * unix_seq_show() in net/unix/af_unix.c. */
#include "descriptor.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <types.h>
#include <unistd.h>

#include "cleanup.h"
#include "net_table.h"

/* "0100007F:0050" of a table: words in the order of the machine's bytes. */
static bool read_end(const char *text, char *ret, size_t size)
{
	u32 word[4] = {0}, port;
	char address[INET6_ADDRSTRLEN];
	int n = (int)strcspn(text, ":") / 8;

	for (int i = 0; i < n && i < 4; i++)
		if (sscanf(text + 8 * i, "%8x", &word[i]) != 1)
			return false;
	if ((n != 1 && n != 4) || sscanf(text + 8 * n, ":%x", &port) != 1)
		return false;
	if (!inet_ntop(n == 1 ? AF_INET : AF_INET6, word, address, sizeof(address)))
		return false;
	snprintf(ret, size, n == 1 ? "%s:%u" : "[%s]:%u", address, port);
	return true;
}

/* A line of tcp, tcp6, udp or udp6. */
static bool is_inet(const char *line, const char *protocol, unsigned long inode, char ret[DESCRIPTOR_TEXT])
{
	char local[64], remote[64], from[80], to[80];
	unsigned long found;
	unsigned int state;

	if (sscanf(line, " %*d: %63s %63s %x %*s %*s %*s %*d %*d %lu", local, remote, &state, &found) != 4 ||
	        found != inode)
		return false;
	if (!read_end(local, from, sizeof(from)) || !read_end(remote, to, sizeof(to)))
		return false;
	if (state == NET_TABLE_LISTENS)
		snprintf(ret, DESCRIPTOR_TEXT, "%s %s listens", protocol, from);
	else
		snprintf(ret, DESCRIPTOR_TEXT, "%s %s to %s", protocol, from, to);
	return true;
}

static bool is_unix(const char *line, unsigned long inode, char ret[DESCRIPTOR_TEXT])
{
	unsigned long found;
	int at = 0;

	if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu%n", &found, &at) != 1 || found != inode)
		return false;
	snprintf(ret, DESCRIPTOR_TEXT, "unix%.*s", (int)strcspn(line + at, "\n"), line + at);
	return true;
}

static bool find_socket(pid_t tid, unsigned long inode, char ret[DESCRIPTOR_TEXT])
{
	static const char *const tables[] = {"tcp", "tcp6", "udp", "udp6", "unix"};
	bool found = false;

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && !found; i++) {
		cleanup(fclose) FILE *file = net_table_open(tid, tables[i]);
		char line[512];

		for (u32 n = 0; file && !found && n < NET_TABLE_LINES && fgets(line, sizeof(line), file); n++)
			found = *tables[i] == 'u' && tables[i][1] == 'n' ? is_unix(line, inode, ret)
			                                                 : is_inet(line, tables[i], inode, ret);
	}
	return found;
}

bool descriptor_text(pid_t tid, int fd, char ret[DESCRIPTOR_TEXT])
{
	char path[64];
	unsigned long inode;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	len = readlink(path, ret, DESCRIPTOR_TEXT - 1);
	if (fd < 0 || len <= 0)
		return false;
	ret[len] = '\0';
	if (sscanf(ret, NET_TABLE_SOCKET, &inode) == 1)
		find_socket(tid, inode, ret);
	return true;
}
