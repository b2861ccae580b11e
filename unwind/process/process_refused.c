/* SPDX-License-Identifier: Apache-2.0 */
#include "process_refused.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "binary/proc_path.h"
#include "binary/proc_stat.h"
#include "cleanup.h"
#include "process.h"

/* A line "Key:\tvalue" of /proc/PID/status. */
static bool read_status(pid_t pid, const char *key, char *value, size_t size)
{
	cleanup(fclose) FILE *file = NULL;
	char line[256];
	size_t len = strlen(key);

	snprintf(line, sizeof(line), "/proc/%d/status", pid);
	file = fopen(line, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, len) || line[len] != ':')
			continue;
		snprintf(value, size, "%s", line + len + 1 + strspn(line + len + 1, " \t"));
		return true;
	}
	return false;
}

static bool may_trace(void)
{
	u64 caps = 0;
	char value[64];

	if (read_status(getpid(), "CapEff", value, sizeof(value)))
		caps = strtoul(value, NULL, 16);
	return caps & 1u << CAP_SYS_PTRACE;
}

const char *process_remedy(void)
{
	return may_trace() ? "CAP_SYS_PTRACE is there, but only inside of this user namespace, or a security module "
	                     "refuses (AppArmor: in Kubernetes \"appArmorProfile: {type: Unconfined}\"; SELinux; "
	                     "kernel.yama.ptrace_scope=3)"
	                   : "run yrt as root, or with CAP_SYS_PTRACE (in Kubernetes \"add: [SYS_PTRACE]\"); "
	                     "see `yrt doctor`";
}

bool process_is_hidden(pid_t pid)
{
	char value[64];

	return !read_status(pid, "State", value, sizeof(value)) && (!kill(pid, 0) || errno == EPERM);
}

struct error *process_explain_empty(pid_t pid)
{
	char value[64];

	errno = 0;
	if (!read_status(pid, "State", value, sizeof(value)) && errno == EMFILE)
		return error_errno(EMFILE, "cannot look into process %d", pid);
	if (process_is_hidden(pid))
		return error_hint(
		        error_new(ERROR_PERMISSION,
		                "cannot look into process %d: /proc, as it is mounted here (hidepid), does not show it",
		                pid),
		        "%s", process_remedy());
	if (!read_status(pid, "State", value, sizeof(value)))
		return error_hint(error_new(ERROR_NO_PROCESS, "there is no process %d", pid),
		        "look for it with pgrep or ps, as its own user or root");
	if (value[0] == 'Z' || value[0] == 'X')
		return error_hint(error_new(ERROR_NO_PROCESS,
		                          "process %d is a zombie: it has exited and only waits to be reaped", pid),
		        "give the pid of a running process");
	if (!process_in_kernel(pid)) /* it has given its memory back */
		return error_hint(
		        error_new(ERROR_NO_PROCESS, "process %d is exiting", pid), "give the pid of a running process");
	return error_hint(error_new(ERROR_UNSUPPORTED, "process %d is a kernel thread, it has no user stack", pid),
	        "give the pid of a user process");
}

/* The thread group leader's pid must be given: a thread's own number has a /proc folder too. */
static struct error *check_pid(pid_t pid)
{
	cleanup(close) int fd = -1;
	char value[64];

	if (pid <= 0)
		return error_new(ERROR_USAGE, "%d is not a pid", pid);
	fd = (int)syscall(SYS_pidfd_open, pid, 0); /* of a first thread only */
	if (fd >= 0)
		return NULL;
	if (!read_status(pid, "Tgid", value, sizeof(value)))
		return process_explain_empty(pid);
	if (atoi(value) != pid)
		return error_hint(error_new(ERROR_USAGE, "%d is a thread of process %d", pid, atoi(value)),
		        "give -p %d", atoi(value));
	return NULL;
}

static struct error *check_elf_class(pid_t pid)
{
	cleanup(fclose) FILE *file = NULL;
	unsigned char ident[20];
	char path[64];
	int code;

	proc_path(path, sizeof(path), pid, "exe");
	file = fopen(path, "re");
	code = errno;
	if (!file && (code == EACCES || code == EPERM))
		return error_hint(error_errno(code, "cannot look into process %d: open() of /proc/%d/exe", pid, pid),
		        "%s", process_remedy());
	if (!file)
		return process_is_hidden(pid) ? process_explain_empty(pid) : NULL;
	if (fread(ident, 1, sizeof(ident), file) < sizeof(ident) || memcmp(ident, "\177ELF", 4))
		return NULL;
	if (ident[4] == 1)
		return error_hint(error_new(ERROR_UNSUPPORTED, "process %d is a 32-bit program", pid),
		        "yrt unwinds 64-bit programs only");
	return NULL;
}

bool process_in_kernel(pid_t pid)
{
	char path[64], state;
	u32 flags;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return proc_stat_read(path, &state, &flags) && flags & PF_KTHREAD;
}

static struct error *check(pid_t pid)
{
	struct error *err = check_pid(pid);

	return err ? err : check_elf_class(pid);
}

struct error *process_check(pid_t pid)
{
	return process_explain(pid, check(pid));
}

struct error *process_explain(pid_t pid, struct error *err)
{
	if (!err || err == &error_no_memory || err->kind == ERROR_NO_PROCESS || pid <= 0 || living_thread(pid))
		return err;
	error_free(err);
	return process_explain_empty(pid);
}
