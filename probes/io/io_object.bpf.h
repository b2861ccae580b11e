/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a call was made on: its key, and its name once for each key. */
#ifndef YRT_IO_OBJECT_BPF_H
#define YRT_IO_OBJECT_BPF_H

#include "io/io_record.h"

#define IO_AF_INET  2
#define IO_AF_INET6 10
#define IO_SUN_PATH 108

#define IO_SOCK_DGRAM    2
#define IO_BINDPORT_LOCK 8          /* SOCK_BINDPORT_LOCK: bind() was given the port */
#define IO_V4_MAPPED     0xffff0000 /* the third word of ::ffff:0.0.0.0 */

enum io_way { IO_IN = 1, IO_OUT = 2 }; /* of bytes */

struct io_taken { /* a call whose stack is taken */
	u64 begin_ns;
	u64 file; /* struct file *; 0: none */
	u64 path; /* of the target's memory; 0: none */
	u64 name; /* struct sockaddr there that the call gives or was given; 0: none */
	u64 value, more;
	u32 name_size;
	u32 reason;
	u16 kind;
	u16 ways; /* enum io_way */
};

struct { /* what user space knows. Its size is set where it is wanted */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u32);
} io_known SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct io_object);
} io_object_scratch SEC(".maps");

/* The target's root, as d_path() sees it: chroot() moves it without a mount. */
static inline bool io_is_root(const struct dentry *dentry, const struct mount *mount)
{
	struct fs_struct *fs = BPF_CORE_READ(bpf_get_current_task_btf(), fs);

	return dentry == BPF_CORE_READ(fs, root.dentry) &&
	       (u64)mount + bpf_core_field_offset(struct mount, mnt) == (u64)BPF_CORE_READ(fs, root.mnt);
}

/* A step towards the root: a component's name, or out of a mount. */
WALK_GLOBAL int io_path_step(struct io_object *o)
{
	struct dentry *dentry, *parent;
	struct mount *mount, *outer;
	u32 size;
	long len;

	if (!o)
		return 0;
	dentry = (void *)o->dentry;
	mount = (void *)o->mount;
	size = o->size;
	if (io_is_root(dentry, mount)) {
		o->done = 1;
		return 0;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root) || dentry == parent) {
		outer = BPF_CORE_READ(mount, mnt_parent);
		o->done = outer == mount || !outer;
		o->dentry = (u64)BPF_CORE_READ(mount, mnt_mountpoint);
		o->mount = (u64)outer;
		return 0;
	}
	WALK_BARRIER(size);
	if (size >= IO_TEXT)
		return 0;
	len = bpf_probe_read_kernel_str(o->text + size, IO_NAME, BPF_CORE_READ(dentry, d_name.name));
	if (len <= 0) {
		o->done = 1;
		o->flags |= IO_CUT;
		return 0;
	}
	o->size = size + (u32)len;
	o->dentry = (u64)parent;
	return 0;
}

WALK_GLOBAL int io_path(struct io_object *o, u64 at)
{
	struct file *file = (void *)at;
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);

	if (!o)
		return 0;
	if (file_mode(file) == MODE_PIPE && BPF_CORE_READ(dentry, d_parent) == dentry) {
		o->what = IO_OBJECT_PIPE;
		*(u64 *)o->text = BPF_CORE_READ(file, f_inode, i_ino);
		o->size = sizeof(u64);
		return 0;
	}
	o->what = IO_OBJECT_FILE;
	if (!BPF_CORE_READ(dentry, d_hash.pprev) && BPF_CORE_READ(dentry, d_parent) != dentry)
		o->flags |= IO_DELETED;
	o->dentry = (u64)dentry;
	o->mount = (u64)BPF_CORE_READ(file, f_path.mnt) - bpf_core_field_offset(struct mount, mnt);
	for (u32 i = 0; i < IO_PATH_MOST && !o->done; i++)
		io_path_step(o);
	if (!o->done)
		o->flags |= IO_CUT;
	return 0;
}

static inline u64 io_file_key(struct file *file)
{
	u64 ino = BPF_CORE_READ(file, f_inode, i_ino), dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);

	return walk_mix(
	        walk_mix(walk_mix(IO_OBJECT_FILE, dev), ino), BPF_CORE_READ(file, f_path.dentry, d_name.hash_len));
}

static inline u64 io_text_key(u64 key, const char *text, u32 size)
{
	for (u32 i = 0; i + 8 <= size; i += 8)
		key = walk_mix(key, *(const u64 *)(text + i));
	return key;
}

/* A path as the call has it. 0: it can not be read. */
WALK_GLOBAL u64 io_path_key(struct io_object *o, u64 path)
{
	long len;

	if (!o)
		return 0;
	__builtin_memset(o->text, 0, IO_NAME);
	len = bpf_probe_read_user_str(o->text, IO_NAME, (const void *)path);
	if (len <= 0)
		return 0;
	o->what = IO_OBJECT_PATH;
	o->size = IO_NAME;
	if (len == IO_NAME)
		o->flags |= IO_CUT;
	return io_text_key(IO_OBJECT_PATH, o->text, IO_NAME);
}

/* Where a Unix socket is bound, or else the one it is connected to, or else the one that a call names. */
WALK_GLOBAL u64 io_unix_key(struct io_object *o, u64 at, u64 name, u32 name_size)
{
	struct unix_sock *sk = (void *)at, *other = (void *)BPF_CORE_READ(sk, peer);
	struct unix_address *addr = BPF_CORE_READ(sk, addr);
	u32 len, named = name_size - 2;

	if (!o)
		return 0;
	o->what = IO_OBJECT_UNIX;
	if (!addr)
		addr = BPF_CORE_READ(other, addr);
	__builtin_memset(o->text, 0, IO_SUN_PATH + 4);
	len = BPF_CORE_READ(addr, len);
	if (addr && len > 2 && len <= IO_SUN_PATH + 2)
		bpf_probe_read_kernel(o->text, len - 2, (const char *)&addr->name + 2);
	o->size = addr && len > 2 && len <= IO_SUN_PATH + 2 ? len - 2 : 0;
	WALK_BARRIER(named);
	if (!o->size && name && named && named <= IO_SUN_PATH &&
	        !bpf_probe_read_user(o->text, named, (const void *)(name + 2)))
		o->size = named;
	return io_text_key(IO_OBJECT_UNIX, o->text, IO_SUN_PATH + 4);
}

/* The peer of a datagram, or of a connection that failed. Servers of datagrams are shown as accepted sockets are. */
static inline void io_named_peer(struct io_object *o, struct io_peer *peer, const struct sock *sk, u64 name)
{
	struct {
		u16 family, port;
		u32 addr;
	} given = {0};
	u16 own = BPF_CORE_READ(sk, __sk_common.skc_num);

	if (!name || bpf_probe_read_user(&given, sizeof(given), (const void *)name))
		return;
	if (given.family == IO_AF_INET)
		*(u32 *)peer->addr = given.addr;
	else if (given.family != IO_AF_INET6 || bpf_probe_read_user(peer->addr, 16, (const void *)(name + 8)))
		return;
	peer->family = given.family;
	peer->port = given.port >> 8 | given.port << 8;
	if (peer->protocol == IO_SOCK_DGRAM && own < peer->port &&
	        BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & IO_BINDPORT_LOCK) {
		o->flags |= IO_ACCEPTED;
		peer->lport = own;
		peer->port = 0;
	}
}

/* An IPv4 address in the IPv6 one of a socket for both. */
static inline void io_unmap(struct io_peer *peer)
{
	u32 *words = (u32 *)peer->addr;

	if (peer->family != IO_AF_INET6 || words[0] || words[1] || words[2] != IO_V4_MAPPED)
		return;
	peer->family = IO_AF_INET;
	words[0] = words[3];
	words[2] = words[3] = 0;
}

/*
 * The other end of a socket. An accepted socket has the backlog of its listener (sk_clone_lock() copies it). For such a
 * socket the peer's port means nothing; its own port shows the service.
 */
WALK_GLOBAL u64 io_peer_key(struct io_object *o, u64 at, u64 name, u32 name_size)
{
	struct file *file = (void *)at;
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	struct io_peer *peer;
	u16 family, port;

	if (!o)
		return 0;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family == FAMILY_UNIX)
		return io_unix_key(o, (u64)sk, name, name_size);
	peer = (struct io_peer *)o->text;
	__builtin_memset(peer, 0, sizeof(*peer));
	o->what = IO_OBJECT_PEER;
	o->size = sizeof(*peer);
	peer->family = family;
	peer->protocol = BPF_CORE_READ(sk, sk_type);
	port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	if (family == IO_AF_INET)
		BPF_CORE_READ_INTO((u32 *)peer->addr, sk, __sk_common.skc_daddr);
	else if (family == IO_AF_INET6)
		bpf_probe_read_kernel(peer->addr, 16, &sk->__sk_common.skc_v6_daddr);
	if (BPF_CORE_READ(sk, sk_max_ack_backlog)) {
		o->flags |= IO_ACCEPTED;
		peer->lport = BPF_CORE_READ(sk, __sk_common.skc_num);
	} else {
		peer->port = port >> 8 | port << 8;
		if (!port)
			io_named_peer(o, peer, sk, name);
	}
	io_unmap(peer);
	return io_text_key(IO_OBJECT_PEER, o->text, sizeof(*peer));
}

static inline bool io_listens(u64 at)
{
	struct file *file = (void *)at;
	struct socket *socket = BPF_CORE_READ(file, private_data);

	return BPF_CORE_READ(socket, sk, __sk_common.skc_state) == SOCKET_LISTENS;
}

/* Sends it to user space unless that was done. 0: there is no room for more. */
WALK_GLOBAL u64 io_tell(struct io_object *o, u64 file)
{
	u32 one = 1, size;
	u64 key;

	if (!o)
		return 0;
	key = o->key;
	if (bpf_map_lookup_elem(&io_known, &key))
		return key;
	if (bpf_map_update_elem(&io_known, &key, &one, BPF_NOEXIST))
		return bpf_map_lookup_elem(&io_known, &key) ? key : 0;
	if (file)
		io_path(o, file);
	o->type = RECORD_EVENT;
	size = o->size;
	WALK_BARRIER(size);
	if (size > sizeof(o->text))
		size = sizeof(o->text);
	if (bpf_ringbuf_output(&ring, o, offsetof(struct io_object, text) + size, BPF_RB_NO_WAKEUP)) {
		bpf_map_delete_elem(&io_known, &key);
		return 0;
	}
	return key;
}

/* The frame of what the call was made on, inside its reason. */
static inline void io_object_frame(struct slot *slot, const struct io_taken *t)
{
	u32 zero = 0;
	struct io_object *o = bpf_map_lookup_elem(&io_object_scratch, &zero);
	struct file *file = (void *)t->file;
	u64 key = 0;

	if (!o || (!t->file && !t->path))
		return;
	o->flags = 0;
	o->size = 0;
	o->done = 0;
	if (t->kind == IO_SOCKET)
		key = io_peer_key(o, t->file, t->name, t->name_size);
	else if (file)
		key = io_file_key(file);
	else if (t->path)
		key = io_path_key(o, t->path);
	o->key = key | !key;
	key = key ? io_tell(o, t->kind == IO_SOCKET ? 0 : t->file) : 0;
	walk_push(&slot->walk, frame_where(FRAME_OBJECT, RUNTIME_NATIVE, 0, 0), key);
}

#endif
