/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The system calls of I/O, by number (arch/x86/entry/syscalls/syscall_64.tbl). */
#ifndef YRT_IO_CALLS_BPF_H
#define YRT_IO_CALLS_BPF_H

#include "io/io_record.h"

enum io_argument {          /* where the file is */
	IO_FD,              /* the first argument */
	IO_FD_SECOND,       /* sendfile */
	IO_FD_EITHER,       /* the first or the third: splice */
	IO_FD_RESULT,       /* what it returns, or the path that is the second argument */
	IO_FD_RESULT_FIRST, /* or the first */
	IO_PATH_FIRST,
	IO_PATH_SECOND, /* relative to the first */
	IO_PATH_THIRD,
	IO_PATH_OR_FD,  /* or the first alone, as a flag says, */
	IO_PATH_IF_ANY, /* or if the second is NULL */
	IO_LOCKED,      /* the first, if the command is one of locks: fcntl */
	IO_NOWHERE,
	IO_ACCEPTS, /* what it returns, or the first */
	IO_POLLED,  /* a socket of one or two, in memory: poll */
	IO_LATER,   /* none: it is about I/O that ends later */
};

struct io_call {
	u8 verb;
	u8 argument;
	u8 of;     /* enum io_of */
	u8 result; /* enum io_result */
};

enum io_result { IO_NOTHING, IO_BYTES, IO_MESSAGES /* of struct mmsghdr */ };

#define IO_DATA(verb)                                                                                                  \
	{                                                                                                              \
		verb, IO_FD, IO_OF_BOTH, IO_BYTES                                                                      \
	}
#define IO_META(verb, argument)                                                                                        \
	{                                                                                                              \
		verb, argument, IO_OF_FILES, IO_NOTHING                                                                \
	}
#define IO_NET(verb, result)                                                                                           \
	{                                                                                                              \
		verb, IO_FD, IO_OF_NET, result                                                                         \
	}
#define IO_ASYNCHRONOUS                                                                                                \
	{                                                                                                              \
		IO_NONE, IO_LATER, IO_OF_BOTH, IO_NOTHING                                                              \
	}
static const volatile struct io_call io_calls[IO_CALLS] = {
        [0] = IO_DATA(IO_READ), /* read, pread64, readv, preadv, preadv2 */
        [17] = IO_DATA(IO_READ),
        [19] = IO_DATA(IO_READ),
        [295] = IO_DATA(IO_READ),
        [327] = IO_DATA(IO_READ),
        [1] = IO_DATA(IO_WRITE), /* write, pwrite64, writev, pwritev, pwritev2 */
        [18] = IO_DATA(IO_WRITE),
        [20] = IO_DATA(IO_WRITE),
        [296] = IO_DATA(IO_WRITE),
        [328] = IO_DATA(IO_WRITE),
        [40] = {IO_SENDFILE, IO_FD_SECOND, IO_OF_BOTH, IO_BYTES},
        [275] = {IO_SPLICE, IO_FD_EITHER, IO_OF_BOTH, IO_BYTES},
        [276] = {IO_SPLICE, IO_FD_EITHER, IO_OF_FILES, IO_BYTES}, /* tee, vmsplice */
        [278] = {IO_SPLICE, IO_FD, IO_OF_FILES, IO_BYTES},
        [326] = {IO_COPY, IO_FD, IO_OF_FILES, IO_BYTES},
        [74] = IO_META(IO_SYNC, IO_FD), /* fsync, fdatasync, sync_file_range, syncfs */
        [75] = IO_META(IO_SYNC, IO_FD),
        [277] = IO_META(IO_SYNC, IO_FD),
        [306] = IO_META(IO_SYNC, IO_FD),
        [2] = IO_META(IO_OPEN, IO_FD_RESULT_FIRST), /* open, openat, creat, openat2 */
        [257] = IO_META(IO_OPEN, IO_FD_RESULT),
        [85] = IO_META(IO_OPEN, IO_FD_RESULT_FIRST),
        [437] = IO_META(IO_OPEN, IO_FD_RESULT),
        [4] = IO_META(IO_STAT, IO_PATH_FIRST), /* stat, fstat, lstat, newfstatat, statx, statfs */
        [5] = IO_META(IO_STAT, IO_FD),
        [6] = IO_META(IO_STAT, IO_PATH_FIRST),
        [262] = IO_META(IO_STAT, IO_PATH_OR_FD),
        [332] = IO_META(IO_STAT, IO_PATH_OR_FD),
        [137] = IO_META(IO_STAT, IO_PATH_FIRST),
        [138] = IO_META(IO_STAT, IO_FD),          /* fstatfs */
        [21] = IO_META(IO_ACCESS, IO_PATH_FIRST), /* access, faccessat, faccessat2 */
        [269] = IO_META(IO_ACCESS, IO_PATH_SECOND),
        [439] = IO_META(IO_ACCESS, IO_PATH_SECOND),
        [89] = IO_META(IO_READLINK, IO_PATH_FIRST),
        [267] = IO_META(IO_READLINK, IO_PATH_SECOND),
        [78] = IO_META(IO_LIST, IO_FD), /* getdents, getdents64 */
        [217] = IO_META(IO_LIST, IO_FD),
        [76] = IO_META(IO_TRUNCATE, IO_PATH_FIRST), /* truncate, ftruncate */
        [77] = IO_META(IO_TRUNCATE, IO_FD),
        [285] = IO_META(IO_ALLOCATE, IO_FD),
        [82] = IO_META(IO_RENAME, IO_PATH_FIRST), /* rename, renameat, renameat2 */
        [264] = IO_META(IO_RENAME, IO_PATH_SECOND),
        [316] = IO_META(IO_RENAME, IO_PATH_SECOND),
        [87] = IO_META(IO_UNLINK, IO_PATH_FIRST), /* unlink, unlinkat */
        [263] = IO_META(IO_UNLINK, IO_PATH_SECOND),
        [83] = IO_META(IO_MAKE, IO_PATH_FIRST), /* mkdir, mkdirat */
        [258] = IO_META(IO_MAKE, IO_PATH_SECOND),
        [84] = IO_META(IO_REMOVE, IO_PATH_FIRST),
        [73] = IO_META(IO_LOCK, IO_FD),
        [72] = IO_META(IO_LOCK_RANGE, IO_LOCKED), /* fcntl */
        [162] = IO_META(IO_SYNC_ALL, IO_NOWHERE),
        [26] = IO_META(IO_SYNC_MAPPED, IO_NOWHERE),
        [187] = IO_META(IO_READ_AHEAD, IO_FD),
        [86] = IO_META(IO_LINK, IO_PATH_FIRST), /* link, linkat, symlink, symlinkat */
        [265] = IO_META(IO_LINK, IO_PATH_SECOND),
        [88] = IO_META(IO_LINK, IO_PATH_SECOND),
        [266] = IO_META(IO_LINK, IO_PATH_THIRD),
        [133] = IO_META(IO_NODE, IO_PATH_FIRST), /* mknod, mknodat */
        [259] = IO_META(IO_NODE, IO_PATH_SECOND),
        [90] = IO_META(IO_MODE, IO_PATH_FIRST), /* chmod, fchmod, fchmodat, fchmodat2 */
        [91] = IO_META(IO_MODE, IO_FD),
        [268] = IO_META(IO_MODE, IO_PATH_SECOND),
        [452] = IO_META(IO_MODE, IO_PATH_SECOND),
        [92] = IO_META(IO_OWNER, IO_PATH_FIRST), /* chown, fchown, lchown, fchownat */
        [93] = IO_META(IO_OWNER, IO_FD),
        [94] = IO_META(IO_OWNER, IO_PATH_FIRST),
        [260] = IO_META(IO_OWNER, IO_PATH_SECOND),
        [132] = IO_META(IO_TIMES, IO_PATH_FIRST), /* utime, utimes, futimesat, utimensat */
        [235] = IO_META(IO_TIMES, IO_PATH_FIRST),
        [261] = IO_META(IO_TIMES, IO_PATH_IF_ANY),
        [280] = IO_META(IO_TIMES, IO_PATH_IF_ANY),
        [188 ... 189] = IO_META(IO_XATTR, IO_PATH_FIRST), /* setxattr, lsetxattr, fsetxattr */
        [190] = IO_META(IO_XATTR, IO_FD),
        [191 ... 192] = IO_META(IO_XATTR, IO_PATH_FIRST), /* getxattr, … */
        [193] = IO_META(IO_XATTR, IO_FD),
        [194 ... 195] = IO_META(IO_XATTR, IO_PATH_FIRST), /* listxattr, … */
        [196] = IO_META(IO_XATTR, IO_FD),
        [197 ... 198] = IO_META(IO_XATTR, IO_PATH_FIRST), /* removexattr, … */
        [199] = IO_META(IO_XATTR, IO_FD),
        [42] = IO_NET(IO_CONNECT, IO_NOTHING),
        [43] = {IO_ACCEPT, IO_ACCEPTS, IO_OF_NET, IO_NOTHING}, /* accept, accept4 */
        [288] = {IO_ACCEPT, IO_ACCEPTS, IO_OF_NET, IO_NOTHING},
        [44] = IO_NET(IO_SEND, IO_BYTES), /* sendto, sendmsg, sendmmsg */
        [46] = IO_NET(IO_SEND, IO_BYTES),
        [307] = IO_NET(IO_SEND, IO_MESSAGES),
        [45] = IO_NET(IO_RECEIVE, IO_BYTES), /* recvfrom, recvmsg, recvmmsg */
        [47] = IO_NET(IO_RECEIVE, IO_BYTES),
        [299] = IO_NET(IO_RECEIVE, IO_MESSAGES),
        [7] = {IO_WAIT, IO_POLLED, IO_OF_NET, IO_NOTHING}, /* poll, ppoll */
        [271] = {IO_WAIT, IO_POLLED, IO_OF_NET, IO_NOTHING},
        [426] = IO_ASYNCHRONOUS, /* io_uring_enter, io_submit, io_getevents, io_pgetevents */
        [209] = IO_ASYNCHRONOUS,
        [208] = IO_ASYNCHRONOUS,
        [333] = IO_ASYNCHRONOUS,
};

#endif
