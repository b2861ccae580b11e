/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Plain data that the BPF programs of I/O and user space share. */
#ifndef YRT_IO_RECORD_H
#define YRT_IO_RECORD_H

#include <types.h>

#define IO_CALLS     512  /* system calls have smaller numbers */
#define IO_NAME      256  /* of a component of a path, and of a path that a call names */
#define IO_TEXT      2048 /* of a whole path */
#define IO_OBJECTS   16384
#define IO_PATH_MOST 40 /* components and mounts */
#define IO_PENDING   65536
#define IO_RINGS     1024 /* of libaio */

/* What a call does. X(name, word) */
#define IO_VERBS(X)                                                                                                    \
	X(IO_NONE, "")                                                                                                 \
	X(IO_READ, "read")                                                                                             \
	X(IO_WRITE, "write")                                                                                           \
	X(IO_SENDFILE, "sendfile")                                                                                     \
	X(IO_SPLICE, "splice")                                                                                         \
	X(IO_COPY, "copy_file_range")                                                                                  \
	X(IO_SYNC, "fsync")                                                                                            \
	X(IO_OPEN, "open")                                                                                             \
	X(IO_STAT, "stat")                                                                                             \
	X(IO_ACCESS, "access")                                                                                         \
	X(IO_READLINK, "readlink")                                                                                     \
	X(IO_LIST, "read of a directory")                                                                              \
	X(IO_TRUNCATE, "truncate")                                                                                     \
	X(IO_ALLOCATE, "fallocate")                                                                                    \
	X(IO_RENAME, "rename")                                                                                         \
	X(IO_UNLINK, "unlink")                                                                                         \
	X(IO_MAKE, "mkdir")                                                                                            \
	X(IO_REMOVE, "rmdir")                                                                                          \
	X(IO_LOCK, "flock")                                                                                            \
	X(IO_LOCK_RANGE, "file lock")                                                                                  \
	X(IO_SYNC_ALL, "sync")                                                                                         \
	X(IO_SYNC_MAPPED, "msync")                                                                                     \
	X(IO_READ_AHEAD, "readahead")                                                                                  \
	X(IO_LINK, "link")                                                                                             \
	X(IO_NODE, "mknod")                                                                                            \
	X(IO_MODE, "chmod")                                                                                            \
	X(IO_OWNER, "chown")                                                                                           \
	X(IO_TIMES, "utimes")                                                                                          \
	X(IO_XATTR, "xattr")                                                                                           \
	X(IO_CONNECT, "connect")                                                                                       \
	X(IO_CONNECT_BEGUN, "connect, not waited for")                                                                 \
	X(IO_CONNECT_FAILED, "connect, failed")                                                                        \
	X(IO_ACCEPT, "accept")                                                                                         \
	X(IO_SEND, "send")                                                                                             \
	X(IO_RECEIVE, "receive")                                                                                       \
	X(IO_WAIT, "wait")

enum io_verb {
#define X(name, word) name,
	IO_VERBS(X)
#undef X
	        IO_VERB_MAX
};

enum io_of { IO_OF_FILES = 1, IO_OF_NET = 2, IO_OF_BOTH = 3 }; /* which calls are counted */

enum io_kind {  /* of the file that a call is made on */
	IO_ANY, /* none, or it is not open */
	IO_FILE,
	IO_DIRECTORY,
	IO_BLOCK_DEVICE,
	IO_DEVICE,
	IO_PIPE,
	IO_SOCKET,
	IO_OTHER, /* epoll, eventfd, … */
};

#define IO_ASYNC (1u << 16) /* it was submitted, and ended later (io_pending.bpf.h) */

/* A reason is verb | kind << 8 | IO_ASYNC. */
static inline u32 io_reason(u32 verb, u32 kind)
{
	return verb | kind << 8;
}

enum io_object_type {
	IO_OBJECT_FILE, /* text: the components of its path from its end, each with a zero byte behind it */
	IO_OBJECT_PATH, /* text: a path as the call gave it */
	IO_OBJECT_PEER, /* text: struct io_peer */
	IO_OBJECT_UNIX, /* text: sun_path */
	IO_OBJECT_PIPE, /* one without a name; text: u64, its inode's number */
};

enum io_object_flag {
	IO_DELETED = 1,
	IO_CUT = 2,      /* text is not all of it */
	IO_ACCEPTED = 4, /* the other one connected: lport is what it asked for */
};

struct io_peer {
	u16 family, port, lport, protocol; /* ports in the host's order */
	u8 addr[16];
};

/* To user space (RECORD_EVENT), once: what a FRAME_OBJECT of this key stands for. */
struct io_object {
	u32 type;
	u16 what, flags;
	u64 key;
	u64 dentry, mount; /* where io_path_step() is */
	u32 size;          /* of text */
	u32 done;
	char text[IO_TEXT + IO_NAME];
};

struct io_stats { /* one for each CPU */
	u64 calls;
	u64 ns;
	u64 in_bytes, out_bytes;
	u64 skipped;                   /* calls that others stand for */
	u64 async;                     /* calls that submit or await I/O which is done later, and not seen */
	u64 later;                     /* of calls: what was submitted and has ended */
	u64 begun;                     /* connects that were not waited for */
	u64 window_ns, spent_ns, each; /* the budget: since when, on walks; what a walk stands for at least, in parts of
	                                  IO_ONE of a mean call */
	u64 used_ns;                   /* on walks, more than their share */
	u64 window_calls, window_call_ns, window_bytes;
	u64 per_ns, per_byte; /* of a call's size: IO_SIZE_SHIFT */
};

#define IO_ONE        1024u
#define IO_SIZE_SHIFT 20

#endif
