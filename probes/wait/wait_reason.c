/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_reason.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "unwind/process/syscall.h"
#include "unwind/profile/names.h"
#include "wait_record.h"

/* System calls by what they wait for; others are given by their names. */
static const struct {
	int number;
	const char *words;
} calls[] = {
        {SYS_futex, "futex"},
        {449, "futex"}, /* futex_waitv */
        {455, "futex"}, /* futex_wait */
        {SYS_epoll_wait, "epoll"},
        {SYS_epoll_pwait, "epoll"},
        {441, "epoll"}, /* epoll_pwait2 */
        {SYS_poll, "poll"},
        {SYS_ppoll, "poll"},
        {SYS_select, "select"},
        {SYS_pselect6, "select"},
        {SYS_nanosleep, "sleep"},
        {SYS_clock_nanosleep, "sleep"},
        {SYS_pause, "pause"},
        {SYS_read, "read"},
        {SYS_pread64, "read"},
        {SYS_readv, "read"},
        {SYS_preadv, "read"},
        {327, "read"},
        {SYS_write, "write"},
        {SYS_pwrite64, "write"},
        {SYS_writev, "write"},
        {SYS_pwritev, "write"},
        {328, "write"},
        {SYS_recvfrom, "receive"},
        {SYS_recvmsg, "receive"},
        {SYS_recvmmsg, "receive"},
        {SYS_sendto, "send"},
        {SYS_sendmsg, "send"},
        {SYS_sendmmsg, "send"},
        {SYS_sendfile, "sendfile"},
        {SYS_splice, "splice"},
        {SYS_accept, "accept"},
        {SYS_accept4, "accept"},
        {SYS_connect, "connect"},
        {SYS_wait4, "wait for a child"},
        {SYS_waitid, "wait for a child"},
        {SYS_vfork, "vfork"},
        {SYS_rt_sigtimedwait, "wait for a signal"},
        {SYS_rt_sigsuspend, "wait for a signal"},
        {SYS_fsync, "fsync"},
        {SYS_fdatasync, "fsync"},
        {SYS_sync, "sync"},
        {SYS_syncfs, "sync"},
        {SYS_msync, "msync"},
        {SYS_flock, "file lock"},
        {SYS_fcntl, "file lock"},
        {SYS_io_getevents, "I/O"},
        {SYS_io_pgetevents, "I/O"},
        {SYS_io_uring_enter, "io_uring"},
        {SYS_semop, "semaphore"},
        {SYS_semtimedop, "semaphore"},
        {SYS_msgrcv, "message queue"},
        {SYS_msgsnd, "message queue"},
        {SYS_mq_timedreceive, "message queue"},
        {SYS_mq_timedsend, "message queue"},
        {SYS_open, "open"},
        {SYS_openat, "open"},
        {SYS_close, "close"},
        {SYS_stat, "stat"},
        {SYS_newfstatat, "stat"},
        {SYS_getdents64, "read of a directory"},
        {SYS_unlink, "unlink"},
        {SYS_unlinkat, "unlink"},
        {SYS_rename, "rename"},
        {SYS_mmap, "mmap"},
        {SYS_munmap, "munmap"},
        {SYS_mprotect, "mprotect"},
        {SYS_madvise, "madvise"},
        {SYS_brk, "brk"},
        {SYS_clone, "clone"},
        {435, "clone"},
        {SYS_execve, "execve"},
        {SYS_exit_group, "exit"},
        {SYS_exit, "exit"},
};

static const char *const files[] = {[WAIT_FILE] = "a file",
        [WAIT_SOCKET] = "a socket",
        [WAIT_PIPE] = "a pipe",
        [WAIT_DEVICE] = "a device",
        [WAIT_SERVER] = "a socket"};

static const char *call_words(u32 number)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].number == (int)number)
			return calls[i].words;
	return NULL;
}

static void call_text(u32 number, u32 file, char *text)
{
	const char *words = call_words(number);

	if (!words)
		words = syscall_name((int)number);
	if (!words)
		snprintf(text, REASON_LEN, "system call %u", number);
	else if (file == WAIT_CLIENT)
		snprintf(text, REASON_LEN, "%s on a client's socket", words);
	else if (file && file < sizeof(files) / sizeof(*files) && (!strcmp(words, "read") || !strcmp(words, "write")))
		snprintf(text, REASON_LEN, "%s of %s", words, files[file]);
	else
		snprintf(text, REASON_LEN, "%s", words);
}

/* What tasks wait for, as their runtimes say it: numbers of reasons are indices. */
#define TASK_STATES 1024
static char task_states[TASK_STATES][REASON_LEN];
static u32 ntask_states;

/* What lies behind a comma is of one task only: for how long, who holds it. */
u32 wait_reason_of_task(const char *kind, const char *state)
{
	char text[REASON_LEN];
	u32 i = 0;

	snprintf(text, sizeof(text), "%s: %.*s", kind, (int)strcspn(state, ","), state);
	while (i < ntask_states && strcmp(task_states[i], text))
		i++;
	if (i == TASK_STATES)
		return (u32)WAIT_TASK << 24 | TASK_STATES;
	if (i == ntask_states)
		memcpy(task_states[ntask_states++], text, sizeof(text));
	return (u32)WAIT_TASK << 24 | i;
}

static const char *task_text(u32 i)
{
	return i < ntask_states ? task_states[i] : "task: waits";
}

void wait_reason_text(u32 reason, char *text)
{
	static const char *const kinds[] = {[WAIT_RUNNABLE] = "run queue",
	        [WAIT_STOPPED] = "stopped",
	        [WAIT_TRACED] = "traced",
	        [WAIT_FROZEN] = "frozen",
	        [WAIT_RUNNING] = "running"};
	u32 kind = reason >> 24, number = reason & 0xffff;

	if (kind == WAIT_TASK)
		snprintf(text, REASON_LEN, "%s", task_text(reason & 0xffffff));
	else if (kind < sizeof(kinds) / sizeof(*kinds) && kinds[kind])
		snprintf(text, REASON_LEN, "%s", kinds[kind]);
	else if (!number)
		snprintf(text, REASON_LEN, "page fault");
	else
		call_text(number - 1, reason >> 16 & 0xff, text);
}

enum profile_kind wait_kind(u32 reason)
{
	u32 kind = reason >> 24;

	return kind == WAIT_RUNNING ? KIND_RUNNING : kind == WAIT_RUNNABLE ? KIND_RUNNABLE : KIND_WAITING;
}

bool wait_is_for_futex(u32 reason)
{
	const char *words = reason & 0xffff ? call_words((reason & 0xffff) - 1) : NULL;

	return reason >> 24 == WAIT_BLOCKED && words && !strcmp(words, "futex");
}

/* Waits to hear from clients, old or new. A wait for a slow client to take an answer is not idle. */
static bool hears_client(u32 reason)
{
	static const char *const hearing[] = {"read", "receive", "poll", "select", "epoll"};
	const char *words = call_words((reason & 0xffff) - 1);
	u32 file = reason >> 16 & 0xff;

	for (size_t i = 0; words && i < sizeof(hearing) / sizeof(*hearing); i++)
		if ((file == WAIT_CLIENT || file == WAIT_SERVER) && !strcmp(words, hearing[i]))
			return true;
	return false;
}

enum idle_chance wait_idle(u32 reason)
{
	u32 number = reason & 0xffff;

	if (reason >> 24 == WAIT_TASK)
		return IDLE_MAYBE;
	if (reason >> 24 != WAIT_BLOCKED || !number)
		return IDLE_NEVER;
	if (hears_client(reason))
		return IDLE_ALWAYS;
	switch (number - 1) {
	case SYS_accept:
	case SYS_accept4:
	case SYS_pause:
	case SYS_rt_sigtimedwait:
	case SYS_rt_sigsuspend:
		return IDLE_ALWAYS;
	default:
		return IDLE_MAYBE;
	}
}

bool wait_leads_to_program(const char *symbol)
{
	static const char *const all[] = {"schedule", "__schedule", "preempt_schedule_irq", "preempt_schedule_common",
	        "__traceiter_sched_switch", "__traceiter_sched_waking", "schedule_idle"};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(symbol, all[i]))
			return true;
	return !strncmp(symbol, "bpf_", 4) || !strncmp(symbol, "__bpf_", 6);
}
