/* SPDX-License-Identifier: Apache-2.0 */
#include "when.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/cpu_time.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/error.h"
#include "unwind/now.h"

/* The exit status of a command that watch's --when asks. */

#define WHEN_EXIT_S 10 /* a command that takes longer is killed */

#define POLL_MS        20
#define NOT_EXECUTABLE 126 /* of a shell, by POSIX's "Exit Status for Commands" */
#define NOT_FOUND      127

/* In a group of its own, to be killed with what it started; yrt ignores SIGPIPE, it does not. */
static int spawn_shell(const char *command, pid_t *ret)
{
	char *arguments[] = {"sh", "-c", (char *)command, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t defaults;
	int failed;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigdefault(&how, &defaults);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	failed = posix_spawn(ret, "/bin/sh", &files, &how, arguments, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	return failed;
}

/* It is not reaped: its number is not given anew. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/* Returns when it has ended, has had its time, or *stop is set. Old seccomp profiles refuse pidfd_open(). */
static void await_end(pid_t pid, volatile sig_atomic_t *stop)
{
	cleanup(close) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = {.fd = fd, .events = POLLIN};
	u64 limit = now_ns() + WHEN_EXIT_S * 1000000000ULL, now;

	while (!*stop && !has_ended(pid) && (now = now_ns()) < limit)
		poll(&end, 1, fd < 0 ? POLL_MS : (int)((limit - now) / 1000000) + 1);
}

/*
 * Runs sh -c command in a process group of its own, without input and output; what it writes to stderr is seen. As in a
 * shell, 128 + N is signal N. An error: there is no shell, or it finds no such command (126, 127). Whatever interrupts
 * the waiting and sets *stop ends the command; *ret is then that of its signal.
 */
static struct error *when_exit_status(const char *command, volatile sig_atomic_t *stop, int *ret)
{
	pid_t pid;
	int status = 0, failed = spawn_shell(command, &pid);

	if (failed)
		return error_hint(error_new(ERROR_INPUT, "cannot run /bin/sh: %s", strerror(failed)),
		        "exit(COMMAND) of --when needs a shell");
	await_end(pid, stop);
	if (!has_ended(pid))
		kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	*ret = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (*ret == NOT_FOUND || *ret == NOT_EXECUTABLE)
		return error_hint(error_new(ERROR_INPUT, "the shell cannot run \"%s\" of --when", command),
		        "give the whole path of a program");
	return NULL;
}

static const char *const metrics[WHEN_METRICS] = {"cpu", "load", "rss", "exit"};

static struct error *bad_condition(const char *text)
{
	return error_hint(error_new(ERROR_USAGE, "--when takes a condition, not \"%s\"", text),
	        "'cpu > 80%% for 5s', 'load > 4', 'rss > 2g for 30s', 'exit(COMMAND) > 0', or with <");
}

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t");
}

static double scale_of(enum when_metric metric, const char **at)
{
	char unit = (char)tolower((unsigned char)**at);
	double scale = unit == 'k' ? 1 << 10 : unit == 'm' ? 1 << 20 : unit == 'g' ? 1 << 30 : 0;

	if (metric == WHEN_CPU && unit == '%')
		scale = 1;
	else if (metric != WHEN_RSS)
		scale = 0;
	*at += scale != 0;
	return scale != 0 ? scale : 1;
}

/* "(COMMAND)", which may have parentheses itself: up to the last one. False: it is not there. */
static bool take_command(const char **at, char **ret)
{
	const char *end = strrchr(*at, ')');

	if (**at != '(' || !end || !*skip_blanks(*at + 1) || skip_blanks(*at + 1) == end)
		return false;
	*ret = strndup(*at + 1, (size_t)(end - *at - 1));
	*at = skip_blanks(end + 1);
	return *ret;
}

/* What follows the metric. */
static bool parse_limit(const char *at, struct when *ret)
{
	char *end;

	if (*at != '<' && *at != '>')
		return false;
	ret->below = *at++ == '<';
	ret->limit = strtod(at, &end);
	if (end == at || !(ret->limit >= 0))
		return false;
	at = end;
	ret->limit *= scale_of(ret->metric, &at);
	at = skip_blanks(at);
	if (!strncmp(at, "for ", 4)) {
		ret->for_s = strtod(at + 4, &end);
		if (end == at + 4 || !(ret->for_s >= 0))
			return false;
		at = skip_blanks(end + (*end == 's'));
	}
	return !*at;
}

struct error *when_parse(const char *text, struct when *ret)
{
	const char *at = skip_blanks(text);
	u32 metric = 0;

	*ret = (struct when){0};
	while (metric < WHEN_METRICS && strncmp(at, metrics[metric], strlen(metrics[metric])))
		metric++;
	if (metric == WHEN_METRICS)
		return bad_condition(text);
	ret->metric = metric;
	at = skip_blanks(at + strlen(metrics[metric]));
	if ((metric == WHEN_EXIT && !take_command(&at, &ret->command)) || !parse_limit(at, ret)) {
		when_free(ret);
		return bad_condition(text);
	}
	return NULL;
}

void when_free(struct when *w)
{
	free(w->command);
	w->command = NULL;
	table_free(&w->cpu);
}

static double load_now(void)
{
	double load;

	return getloadavg(&load, 1) == 1 ? load : 0;
}

static double rss_of(pid_t pid)
{
	cleanup(fclose) FILE *file = NULL;
	unsigned long pages = 0;
	char path[64];

	proc_path(path, sizeof(path), pid, "statm");
	file = fopen(path, "re");
	return file && fscanf(file, "%*u %lu", &pages) == 1 ? (double)pages * (double)sysconf(_SC_PAGESIZE) : 0;
}

/* What the machine has in use, so that no more than the rest can be had. */
static double rss_of_machine(void)
{
	cleanup(fclose) FILE *file = fopen("/proc/meminfo", "re");
	double total = 0, available = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "MemTotal: %lf", &total);
		sscanf(line, "MemAvailable: %lf", &available);
	}
	return (total - available) * 1024;
}

/* What was used since the last look: by those that were there then. What a new one has used may be of years. */
static struct error *cpu_of_targets(struct when *w, const pid_t *pids, int n, u64 *used)
{
	struct table now = {0};
	struct error *err = NULL;

	for (int i = 0; !err && i < n; i++) {
		u64 key = (u64)pids[i], cpu = cpu_of_process(pids[i]);
		u64 *before = table_get(&w->cpu, key);

		*used += before && cpu > *before ? cpu - *before : 0;
		err = cpu ? table_put(&now, key, cpu) : NULL; /* 0: it is gone */
	}
	table_free(&w->cpu);
	w->cpu = now;
	return err;
}

static u64 cpu_of_everyone(struct when *w)
{
	u64 before = w->machine_ns;

	w->machine_ns = cpu_of_machine();
	return w->machine_ns - before;
}

static struct error *measure_cpu(struct when *w, const pid_t *pids, int n, bool everyone, u64 now)
{
	u64 used = everyone ? cpu_of_everyone(w) : 0, before = w->looked_ns;
	struct error *err = everyone ? NULL : cpu_of_targets(w, pids, n, &used);

	w->looked_ns = now;
	w->value = before && now > before ? 100 * (double)used / (double)(now - before) : 0;
	return err;
}

static struct error *measure(
        struct when *w, const pid_t *pids, int n, bool everyone, volatile sig_atomic_t *stop, u64 now)
{
	struct error *err = NULL;
	int status = 0;

	w->value = w->metric == WHEN_LOAD ? load_now() : 0;
	if (w->metric == WHEN_CPU)
		err = measure_cpu(w, pids, n, everyone, now);
	if (w->metric == WHEN_RSS && everyone)
		w->value = rss_of_machine();
	for (int i = 0; w->metric == WHEN_RSS && !everyone && i < n; i++)
		w->value += rss_of(pids[i]);
	if (w->metric == WHEN_EXIT) {
		err = when_exit_status(w->command, stop, &status);
		w->value = status;
	}
	return err;
}

struct error *when_look(
        struct when *w, const pid_t *pids, int n, bool everyone, volatile sig_atomic_t *stop, bool *holds)
{
	bool first = w->metric == WHEN_CPU && !w->looked_ns;
	bool nobody = (w->metric == WHEN_CPU || w->metric == WHEN_RSS) && !everyone && !n;
	u64 now = now_ns();
	struct error *err = measure(w, pids, n, everyone, stop, now);

	*holds = false;
	if (err || first || nobody || (w->below ? w->value >= w->limit : w->value <= w->limit)) {
		w->since_ns = 0;
		return err;
	}
	if (!w->since_ns)
		w->since_ns = now;
	*holds = (double)(now - w->since_ns) / 1e9 >= w->for_s;
	return NULL;
}

void when_restart(struct when *w)
{
	w->since_ns = w->looked_ns = 0;
}

void when_show(const struct when *w, char ret[WHEN_VALUE])
{
	double mb = w->value / (1 << 20);

	if (w->metric == WHEN_CPU)
		snprintf(ret, WHEN_VALUE, "%.1f %%", w->value);
	else if (w->metric == WHEN_RSS && mb < 10)
		snprintf(ret, WHEN_VALUE, "%.1fm", mb);
	else if (w->metric == WHEN_RSS)
		snprintf(ret, WHEN_VALUE, "%.0fm", mb);
	else
		snprintf(ret, WHEN_VALUE, "%.4g", w->value);
}
