/* SPDX-License-Identifier: Apache-2.0 */
#include "syscall.h"

#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "descriptor.h"
#include "now.h"
#include "switches.h"
#include "binary/memory.h"

#define DESCRIPTORS 4    /* of several that have a name */
#define POLLED      64   /* that are looked at for them */
#define SET_BITS    1024 /* FD_SETSIZE */

static const char *const names[] = {
#include "syscall_names.h"
};

/*
 * The arguments of a call, a letter each: f a descriptor, x an address, n a signed number, u a size, m milliseconds, t
 * the address of a timespec or NULL, o the operation of a futex, s the address of a path, c a clock, a whether the
 * time behind it is a moment of the clock before it, p the address of as many struct pollfd as the argument behind it
 * says, d that of a set of descriptors below the first argument.
 */
static const struct signature {
	int number;
	const char *arguments;
} signatures[] = {
        {SYS_read, "fxu"},
        {SYS_write, "fxu"},
        {SYS_pread64, "fxun"},
        {SYS_pwrite64, "fxun"},
        {SYS_readv, "fxn"},
        {SYS_writev, "fxn"},
        {SYS_poll, "pum"},
        {SYS_ppoll, "put"},
        {SYS_select, "ndddx"},
        {SYS_pselect6, "ndddt"},
        {SYS_epoll_wait, "fxnm"},
        {SYS_epoll_pwait, "fxnm"},
        {SYS_accept, "fxx"},
        {SYS_accept4, "fxxx"},
        {SYS_connect, "fxu"},
        {SYS_recvfrom, "fxux"},
        {SYS_recvmsg, "fxx"},
        {SYS_sendto, "fxux"},
        {SYS_sendmsg, "fxx"},
        {SYS_recvmmsg, "fxuxt"},
        {SYS_futex, "xont"},
        {SYS_nanosleep, "t"},
        {SYS_clock_nanosleep, "cat"},
        {SYS_wait4, "nxx"},
        {SYS_waitid, "nnx"},
        {SYS_pause, ""},
        {SYS_rt_sigsuspend, "xu"},
        {SYS_rt_sigtimedwait, "xxt"},
        {SYS_flock, "fn"},
        {SYS_fcntl, "fnx"},
        {SYS_fsync, "f"},
        {SYS_fdatasync, "f"},
        {SYS_ioctl, "fxx"},
        {SYS_openat, "nsx"},
        {SYS_open, "sx"},
        {SYS_close, "f"},
        {SYS_splice, "fxfxu"},
        {SYS_sendfile, "ffxu"},
        {SYS_io_getevents, "xnnxt"},
        {SYS_io_uring_enter, "fuux"},
        {SYS_semop, "nxu"},
        {SYS_semtimedop, "nxut"},
        {SYS_msgrcv, "nxu"},
        {SYS_mq_timedreceive, "fxuxt"},
        {SYS_epoll_pwait2, "fxnt"},
        {SYS_restart_syscall, ""},
        {SYS_sched_yield, ""},
        {SYS_exit_group, "n"},
};

const char *syscall_name(int number)
{
	return number >= 0 && (size_t)number < sizeof(names) / sizeof(*names) ? names[number] : NULL;
}

int syscall_number(const char *name)
{
	for (size_t i = 0; i < sizeof(signatures) / sizeof(*signatures); i++) {
		const char *own = syscall_name(signatures[i].number);

		if (own && !strcmp(own, name))
			return signatures[i].number;
	}
	return -1;
}

static const char *arguments_of(int number)
{
	for (size_t i = 0; i < sizeof(signatures) / sizeof(*signatures); i++)
		if (signatures[i].number == number)
			return signatures[i].arguments;
	return "xxx";
}

static void put_operation(FILE *out, u64 op)
{
	static const char *const words[] = {"WAIT", "WAKE", "FD", "REQUEUE", "CMP_REQUEUE", "WAKE_OP", "LOCK_PI",
	        "UNLOCK_PI", "TRYLOCK_PI", "WAIT_BITSET", "WAKE_BITSET", "WAIT_REQUEUE_PI", "CMP_REQUEUE_PI",
	        "LOCK_PI2"};
	u64 command = op & FUTEX_CMD_MASK;

	if (command < sizeof(words) / sizeof(*words))
		fputs(words[command], out);
	else
		fprintf(out, "%lu", command);
	if (op & FUTEX_PRIVATE_FLAG)
		fputs("|PRIVATE", out);
	if (op & FUTEX_CLOCK_REALTIME)
		fputs("|REALTIME", out);
}

static void put_clock(FILE *out, u64 id)
{
	static const char *const clocks[] = {"REALTIME", "MONOTONIC", "PROCESS_CPUTIME_ID", "THREAD_CPUTIME_ID",
	        "MONOTONIC_RAW", "REALTIME_COARSE", "MONOTONIC_COARSE", "BOOTTIME"};

	if (id < sizeof(clocks) / sizeof(*clocks))
		fputs(clocks[id], out);
	else
		fprintf(out, "%d", (int)id);
}

/* Is its timeout a moment? Then by which clock (futex(2), clock_nanosleep(2), mq_receive(3)). */
static bool is_moment(const struct syscall *call, clockid_t *clock)
{
	u64 op = call->arguments[1];

	*clock = CLOCK_REALTIME;
	switch (call->number) {
	case SYS_clock_nanosleep:
		*clock = (clockid_t)call->arguments[0];
		return op & TIMER_ABSTIME;
	case SYS_mq_timedsend:
	case SYS_mq_timedreceive:
		return true;
	case SYS_futex:
		if ((op & FUTEX_CMD_MASK) != FUTEX_LOCK_PI && !(op & FUTEX_CLOCK_REALTIME))
			*clock = CLOCK_MONOTONIC;
		return (op & FUTEX_CMD_MASK) != FUTEX_WAIT;
	default:
		return false;
	}
}

/* A length; of a moment how far away it is. */
static void put_time(FILE *out, const struct syscall *call, u64 addr)
{
	struct timespec ts, now = {0};
	clockid_t clock;
	double left;

	if (!addr) {
		fputs("no timeout", out);
	} else if (!call->memory || !memory_read(call->memory, &ts, sizeof(ts), addr) || ts.tv_sec < 0 ||
	           ts.tv_nsec < 0 || ts.tv_nsec >= 1000000000) {
		fprintf(out, "0x%lx", addr);
	} else if (is_moment(call, &clock) && call->past) {
		fprintf(out, "until %ld.%03ld s", ts.tv_sec, ts.tv_nsec / 1000000);
	} else if (is_moment(call, &clock) && !clock_gettime(clock, &now)) {
		left = (double)ts.tv_sec - (double)now.tv_sec + (double)(ts.tv_nsec - now.tv_nsec) / 1e9;
		left += (double)(now_ahead_of(0, clock) - now_ahead_of(call->tid, clock)) / 1e9;
		fprintf(out, "%.3f s from now", left > 0 ? left : 0);
	} else {
		fprintf(out, "%ld.%03ld s", ts.tv_sec, ts.tv_nsec / 1000000);
	}
}

static void put_path(FILE *out, const struct syscall *call, u64 addr)
{
	char path[256];

	if (call->memory && memory_string(call->memory, path, sizeof(path), addr))
		fprintf(out, "\"%s\"", path);
	else
		fprintf(out, "0x%lx", addr);
}

static void put_descriptor(FILE *out, const struct syscall *call, int fd)
{
	char text[DESCRIPTOR_TEXT];

	fprintf(out, "%d", fd);
	if (descriptor_text(call->tid, fd, text))
		fprintf(out, " = %s", text);
}

/* One of several. */
static void put_member(FILE *out, const struct syscall *call, int fd, u32 *n)
{
	if (fd < 0 || *n > DESCRIPTORS)
		return;
	fputs(*n ? ", " : "", out);
	if (*n < DESCRIPTORS)
		put_descriptor(out, call, fd);
	else
		fputs("...", out);
	++*n;
}

static void put_polled(FILE *out, const struct syscall *call, u64 addr, u64 count)
{
	struct pollfd all[POLLED];
	u32 n = 0, have = count < POLLED ? (u32)count : POLLED;

	if (!call->memory || !have || !memory_read(call->memory, all, have * sizeof(*all), addr)) {
		fprintf(out, addr ? "0x%lx" : "%lu", addr);
		return;
	}
	fputc('[', out);
	for (u32 i = 0; i < have; i++)
		put_member(out, call, all[i].fd, &n);
	fputc(']', out);
}

static void put_set(FILE *out, const struct syscall *call, u64 addr)
{
	u64 set[SET_BITS / 64], bits = call->arguments[0];
	u32 n = 0;

	if (!call->memory || !addr || bits > SET_BITS ||
	        !memory_read(call->memory, set, (bits + 63) / 64 * sizeof(*set), addr)) {
		fprintf(out, addr ? "0x%lx" : "%lu", addr);
		return;
	}
	fputc('[', out);
	for (u32 i = 0; i < bits; i++)
		if (set[i / 64] >> i % 64 & 1)
			put_member(out, call, (int)i, &n);
	fputc(']', out);
}

static void put_argument(FILE *out, const struct syscall *call, size_t i)
{
	u64 value = call->arguments[i];

	switch (arguments_of(call->number)[i]) {
	case 'p':
		put_polled(out, call, value, call->arguments[i + 1]);
		break;
	case 'd':
		put_set(out, call, value);
		break;
	case 'f':
		put_descriptor(out, call, (int)value);
		break;
	case 'n':
		fprintf(out, "%d", (int)value);
		break;
	case 'u':
		fprintf(out, "%lu", value);
		break;
	case 'm':
		if ((int)value < 0)
			fputs("no timeout", out);
		else
			fprintf(out, "%d ms", (int)value);
		break;
	case 't':
		put_time(out, call, value);
		break;
	case 'o':
		put_operation(out, value);
		break;
	case 'c':
		put_clock(out, value);
		break;
	case 'a':
		fputs(value & TIMER_ABSTIME ? "ABSTIME" : "0", out);
		break;
	case 's':
		put_path(out, call, value);
		break;
	default:
		fprintf(out, value ? "0x%lx" : "%lu", value);
	}
}

/* Has the thread not run since? True where that is not known. */
static bool is_still(const struct syscall *call)
{
	struct switches now;

	return !call->tgid ||
	       (switches_read((u32)call->tgid, (u32)call->tid, &now) && now.voluntary + now.others == call->switches);
}

static char *text_of(const struct syscall *call)
{
	const char *name = syscall_name(call->number), *arguments = arguments_of(call->number);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (name)
		fprintf(out, "%s(", name);
	else
		fprintf(out, "syscall %d(", call->number);
	for (size_t i = 0; arguments[i]; i++) {
		fputs(i ? ", " : "", out);
		put_argument(out, call, i);
	}
	fputc(')', out);
	fclose(out);
	return text;
}

/* What arguments lead to is of this call only if the thread has not left it before that was read. */
char *syscall_text(const struct syscall *call)
{
	struct syscall plain = {.number = call->number};
	char *text = text_of(call);

	if (!text || !strpbrk(arguments_of(call->number), "tsfpd") || is_still(call))
		return text;
	free(text);
	memcpy(plain.arguments, call->arguments, sizeof(plain.arguments));
	return text_of(&plain);
}

bool syscall_waits_for_futex(const struct syscall *call, u64 *addr, u32 *value)
{
	u64 command = call->arguments[1] & FUTEX_CMD_MASK;

	*addr = call->arguments[0];
	*value = (u32)call->arguments[2];
	return call->number == SYS_futex && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET);
}
