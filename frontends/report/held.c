/* SPDX-License-Identifier: Apache-2.0 */
#include "held.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unwind/cleanup.h"
#include "unwind/now.h"

#define LOOKS       20
#define LOOK_NS     25000000
#define DEAR_NS     5000000 /* a look that took longer is the last one */
#define SOCKETS_MAX 4096    /* of the targets */
#define HELD_MS     8       /* since anything was sent; of 40 */
#define HELD_MAX    256
#define PROCESSES   64
#define PEERS_NAMED 3
#define ESTABLISHED 1 /* TCP_ESTABLISHED of net/tcp_states.h */

struct own_socket {
	u32 inode;
	pid_t pid;
	u8 family;
	struct inet_diag_sockid id; /* of the last look */
};

struct looking {
	struct own_socket *own;
	u32 nown;
	struct inet_diag_msg held[HELD_MAX];
	u32 nheld;
};

struct answer {
	double part, own; /* of the looks; of them, with data of a target */
	char by[128], peers[256];
};

static void find_own(struct looking *l, pid_t pid)
{
	char folder[64], target[64];
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	dir = opendir(folder);
	for (struct dirent *e; dir && l->nown < SOCKETS_MAX && (e = readdir(dir));) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		if (sscanf(target, "socket:[%u]", &l->own[l->nown].inode) == 1)
			l->own[l->nown++].pid = pid;
	}
	if (dir)
		closedir(dir);
}

/* A stream's next acknowledgement comes at once: there it is no more than a matter of microseconds. */
static bool is_held(const struct tcp_info *t)
{
	return t->tcpi_last_data_sent >= HELD_MS && t->tcpi_notsent_bytes && t->tcpi_notsent_bytes < t->tcpi_snd_mss &&
	       t->tcpi_unacked && t->tcpi_unacked < t->tcpi_snd_cwnd;
}

static void note_socket(struct looking *l, const struct inet_diag_msg *m, int length)
{
	const struct rtattr *a = (const struct rtattr *)(m + 1);
	struct tcp_info info = {0};

	for (u32 i = 0; i < l->nown; i++)
		if (l->own[i].inode == m->idiag_inode) {
			l->own[i].id = m->id;
			l->own[i].family = m->idiag_family;
		}
	for (length -= (int)sizeof(*m); RTA_OK(a, length); a = RTA_NEXT(a, length)) {
		if (a->rta_type != INET_DIAG_INFO)
			continue;
		memcpy(&info, RTA_DATA(a), RTA_PAYLOAD(a) < sizeof(info) ? RTA_PAYLOAD(a) : sizeof(info));
		if (is_held(&info) && l->nheld < HELD_MAX)
			l->held[l->nheld++] = *m;
	}
}

/* False: the kernel does not tell. */
static bool look(int fd, u8 family, struct looking *l)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 body;
	} ask = {{sizeof(ask), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0},
	        {.sdiag_family = family,
	                .sdiag_protocol = IPPROTO_TCP,
	                .idiag_ext = 1 << (INET_DIAG_INFO - 1),
	                .idiag_states = 1 << ESTABLISHED}};
	char text[32768] __attribute__((aligned(8)));

	if (send(fd, &ask, sizeof(ask), 0) != sizeof(ask))
		return false;
	for (;;) {
		ssize_t n = recv(fd, text, sizeof(text), 0);
		u32 left = n > 0 ? (u32)n : 0;

		if (!left)
			return false;
		for (struct nlmsghdr *h = (struct nlmsghdr *)text; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return true;
			if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
			        h->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
				return false;
			note_socket(l, NLMSG_DATA(h), (int)NLMSG_PAYLOAD(h, 0));
		}
	}
}

static bool is_other_side(const struct inet_diag_sockid *a, const struct inet_diag_sockid *b)
{
	return a->idiag_sport == b->idiag_dport && a->idiag_dport == b->idiag_sport &&
	       !memcmp(a->idiag_src, b->idiag_dst, sizeof(a->idiag_src)) &&
	       !memcmp(a->idiag_dst, b->idiag_src, sizeof(a->idiag_dst));
}

/* Is one of what is held that of a target, or for one? */
static bool name_writer(const struct looking *l, u32 *owns, char *ret, size_t size)
{
	char address[INET6_ADDRSTRLEN] = "";

	for (u32 h = 0; h < l->nheld; h++)
		for (u32 i = 0; i < l->nown; i++) {
			const struct inet_diag_msg *m = &l->held[h];
			bool own = l->own[i].inode == m->idiag_inode;

			if (!own && !is_other_side(&m->id, &l->own[i].id))
				continue;
			inet_ntop(m->idiag_family, own ? m->id.idiag_dst : m->id.idiag_src, address, sizeof(address));
			*owns += own;
			if (own)
				snprintf(ret, size, "pid %d, to %s port %u", l->own[i].pid, address,
				        ntohs(m->id.idiag_dport));
			else
				snprintf(ret, size, "the other side, %s port %u", address, ntohs(m->id.idiag_sport));
			return true;
		}
	return false;
}

/* The side with a port of its own, or that several connections share, is the one that serves. */
static bool serves(const struct looking *l, u32 at)
{
	const struct inet_diag_sockid *id = &l->own[at].id;
	u32 there = 0, here = 0;

	for (u32 i = 0; i < l->nown; i++) {
		there += l->own[i].id.idiag_dport == id->idiag_dport;
		here += l->own[i].id.idiag_sport == id->idiag_sport;
	}
	return there != here ? there > here : ntohs(id->idiag_dport) < ntohs(id->idiag_sport);
}

static bool is_known_peer(const struct looking *l, u32 at)
{
	for (u32 i = 0; i < at; i++)
		if (l->own[i].id.idiag_dport == l->own[at].id.idiag_dport &&
		        !memcmp(l->own[i].id.idiag_dst, l->own[at].id.idiag_dst, sizeof(l->own[i].id.idiag_dst)))
			return true;
	return false;
}

/* IPv4 through a socket of IPv6, as Java has it, is written as what it is. */
static const char *plain_address(const char *address)
{
	return !strncmp(address, "::ffff:", 7) && strchr(address, '.') ? address + 7 : address;
}

static u32 connections_to(const struct looking *l, u32 at)
{
	u32 n = 0;

	for (u32 i = 0; i < l->nown; i++)
		n += l->own[i].id.idiag_dport == l->own[at].id.idiag_dport &&
		     !memcmp(l->own[i].id.idiag_dst, l->own[at].id.idiag_dst, sizeof(l->own[i].id.idiag_dst));
	return n;
}

/* Whom the targets ask: " (5 connections to 127.0.0.1 port 5432)". */
static void name_peers(const struct looking *l, char *ret, size_t size)
{
	char address[INET6_ADDRSTRLEN];
	size_t used = 0;
	u32 named = 0, n;

	for (u32 i = 0; i < l->nown && named < PEERS_NAMED && used < size - 1; i++) {
		const struct inet_diag_sockid *id = &l->own[i].id;

		if (!id->idiag_dport || !serves(l, i) || is_known_peer(l, i) ||
		        !inet_ntop(l->own[i].family, id->idiag_dst, address, sizeof(address)))
			continue;
		n = connections_to(l, i);
		used += (size_t)snprintf(ret + used, size - used, "%s%u connection%s to %s port %u",
		        named++ ? ", " : " (", n, n == 1 ? "" : "s", plain_address(address), ntohs(id->idiag_dport));
	}
	if (named && used < size - 1)
		snprintf(ret + used, size - used, ")");
}

static bool look_often(struct looking *l, struct answer *ret)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	u32 found = 0, own = 0, looks = 0;

	for (u64 took = 0; fd >= 0 && looks < LOOKS && took < DEAR_NS; looks++) {
		u64 began = now_ns();

		l->nheld = 0;
		if (!look(fd, AF_INET, l) || !look(fd, AF_INET6, l))
			break;
		found += name_writer(l, &own, ret->by, sizeof(ret->by));
		took = now_ns() - began;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	ret->part = looks ? (double)found / looks : 0;
	ret->own = looks ? (double)own / looks : 0;
	name_peers(l, ret->peers, sizeof(ret->peers));
	return looks;
}

/* The namespace is that of a whole process. */
static void look_and_exit(pid_t pid, struct looking *l, int out)
{
	char path[64];
	struct answer a = {0};
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) || !look_often(l, &a))
		_exit(1);
	_exit(write(out, &a, sizeof(a)) != sizeof(a));
}

void held_facts(const pid_t *pids, u32 n, struct facts *ret)
{
	struct looking l = {.own = calloc(SOCKETS_MAX, sizeof(*l.own))};
	struct answer a;
	int fds[2];
	pid_t child;

	for (u32 i = 0; l.own && i < n && i < PROCESSES; i++)
		find_own(&l, pids[i]);
	if (l.nown && !pipe(fds)) {
		child = fork();
		if (!child)
			look_and_exit(pids[0], &l, fds[1]);
		close(fds[1]);
		if (child > 0 && read(fds[0], &a, sizeof(a)) == sizeof(a)) {
			a.by[sizeof(a.by) - 1] = '\0';
			a.peers[sizeof(a.peers) - 1] = '\0';
			facts_set_text(ret, "net.peers", a.peers);
			facts_set(ret, "net.held", a.part);
			facts_set(ret, "net.held.own", a.own);
			facts_set_text(ret, "net.held.by", *a.by ? a.by : "nobody");
		}
		close(fds[0]);
		if (child > 0)
			waitpid(child, NULL, 0);
	}
	free(l.own);
}
