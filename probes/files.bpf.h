/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a file descriptor of a thread stands for. */
#ifndef YRT_FILES_BPF_H
#define YRT_FILES_BPF_H

#define MODE_PIPE      1 /* S_IFMT >> 12 */
#define MODE_DEVICE    2
#define MODE_DIRECTORY 4
#define MODE_BLOCK     6
#define MODE_FILE      8
#define MODE_SOCKET    12

#define FAMILY_UNIX      1
#define SOCKET_STREAM    1
#define SOCKET_DATAGRAM  2
#define SOCKET_CONNECTED 1
#define SOCKET_LISTENS   10 /* Unix sockets, too */
#define SOCKET_BOUND     8  /* SOCK_BINDPORT_LOCK: bind() named its port */

/*
 * NULL: it is not open. Another thread may close it at any time, so it must be read by probe reads only; so is the way
 * to it, see tgid_of_typed().
 */
static inline struct file *file_of(struct task_struct *task, u64 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds) ||
	        bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd))
		return NULL;
	return file;
}

/* One of MODE_…, or another number. */
static inline u32 file_mode(struct file *file)
{
	return BPF_CORE_READ(file, f_inode, i_mode) >> 12 & 15;
}

/*
 * Is a socket the end of a connection that accept() gave? Of TCP it has its listener's backlog (sk_clone_lock() copies
 * it), of Unix its listener's address.
 */
static inline bool file_is_accepted(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	if (BPF_CORE_READ(sk, __sk_common.skc_family) == FAMILY_UNIX)
		return state == SOCKET_CONNECTED && BPF_CORE_READ((struct unix_sock *)sk, addr);
	return state != SOCKET_LISTENS && BPF_CORE_READ(sk, sk_max_ack_backlog) &&
	       BPF_CORE_READ(sk, sk_type) == SOCKET_STREAM;
}

/* Does a socket hear whoever comes: one that listens, or one of UDP with a port of its choice and no peer? */
static inline bool file_is_open_to_all(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);

	if (BPF_CORE_READ(sk, __sk_common.skc_state) == SOCKET_LISTENS)
		return true;
	return BPF_CORE_READ(sk, __sk_common.skc_family) != FAMILY_UNIX &&
	       BPF_CORE_READ(sk, sk_type) == SOCKET_DATAGRAM && !BPF_CORE_READ(sk, __sk_common.skc_dport) &&
	       BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & SOCKET_BOUND;
}

#endif
