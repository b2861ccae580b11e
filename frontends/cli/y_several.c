/* SPDX-License-Identifier: Apache-2.0 */
#include "y_several.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "frontends/format/text.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/process/comm.h"

#define HELD_NS   1000000000ull /* how long a text waits for the processes before */
#define HELD_MOST (4u << 20)
#define LOOK_MS   100
#define READ_ROOM 65536u

struct part {
	pid_t pid, child;
	char name[COMM_TEXT];
	int out; /* a pipe of what it prints; -1: it has ended */
	char *text;
	size_t len; /* of the text that is not shown yet */
	u64 since;  /* when it began to come */
	bool shown;
	int code;
};

static void start(struct part *p, int (*run)(void *ctx, pid_t pid), void *ctx)
{
	pid_t parent = getpid();
	int ends[2] = {-1, -1};

	comm_read(p->pid, p->name);
	p->child = pipe2(ends, O_CLOEXEC) ? -1 : fork();
	p->out = ends[0];
	if (p->child) {
		if (ends[1] >= 0)
			close(ends[1]);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || dup2(ends[1], STDOUT_FILENO) < 0)
		_exit(ERROR_INTERNAL);
	close(ends[0]);
	setvbuf(stderr, NULL, _IOLBF, 0); /* lines of several processes side by side */
	p->code = run(ctx, p->pid);
	fflush(NULL);
	_exit(p->code);
}

static void stop_all(const struct part *parts, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (parts[i].child > 0 && parts[i].out >= 0)
			kill(parts[i].child, SIGINT);
}

static void end(struct part *p)
{
	int status = 0;

	p->code = ERROR_INTERNAL;
	if (p->out >= 0)
		close(p->out);
	p->out = -1;
	if (p->child < 0)
		return;
	while (waitpid(p->child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status))
		p->code = WEXITSTATUS(status);
}

static void gather(struct part *p)
{
	char *more = realloc(p->text, p->len + READ_ROOM);
	ssize_t n = -1;

	if (more) {
		p->text = more;
		n = read(p->out, p->text + p->len, READ_ROOM);
	}
	if (n > 0 && !p->len)
		p->since = now_ns();
	if (n > 0)
		p->len += (size_t)n;
	else if (!more || n == 0 || errno != EINTR)
		end(p);
}

static void head(const struct part *p, bool json)
{
	cleanup(free) char *clean = clean_text(p->name);

	if (!json) {
		printf("==> %s (pid %d) <==\n", clean ? clean : "", (int)p->pid);
		return;
	}
	printf("{\"kind\": \"process\", \"pid\": %d, \"name\": ", (int)p->pid);
	text_json(stdout, p->name);
	puts("}");
}

/* Its whole lines, behind its name where another one spoke before. */
static void show(struct part *p, const struct part **speaker, bool json)
{
	const char *line = p->len ? memrchr(p->text, '\n', p->len) : NULL;
	size_t n = p->out < 0 || p->len > HELD_MOST ? p->len : line ? (size_t)(line + 1 - p->text) : 0;

	if (!n && (p->out >= 0 || p->shown))
		return;
	if (*speaker != p)
		head(p, json);
	*speaker = p;
	p->shown = true;
	fwrite(p->text ? p->text : "", 1, n, stdout);
	fflush(stdout);
	p->len -= n;
	if (p->len)
		memmove(p->text, p->text + n, p->len);
}

/* In the order of the processes, but what goes on for longer as it comes. */
static void show_all(struct part *parts, u32 n, const struct part **speaker, bool json)
{
	bool before = false;
	u64 now = now_ns();

	for (u32 i = 0; i < n; i++) {
		if (!before || (parts[i].len && now - parts[i].since > HELD_NS) || parts[i].len > HELD_MOST)
			show(&parts[i], speaker, json);
		before |= parts[i].out >= 0;
	}
}

static bool look(struct part *parts, u32 n)
{
	struct pollfd polled[Y_SEVERAL_MOST];
	bool any = false;

	for (u32 i = 0; i < n; i++) {
		polled[i] = (struct pollfd){.fd = parts[i].out, .events = POLLIN};
		any |= parts[i].out >= 0;
	}
	if (!any || poll(polled, n, LOOK_MS) <= 0)
		return any;
	for (u32 i = 0; i < n; i++)
		if (parts[i].out >= 0 && polled[i].revents)
			gather(&parts[i]);
	return true;
}

int y_several(const pid_t *pids, u32 n, bool json, int (*run)(void *ctx, pid_t pid), void *ctx)
{
	cleanup(free) struct part *parts = calloc(n, sizeof(*parts));
	const struct part *speaker = NULL;
	bool told = false;
	int code = ERROR_NO_PROCESS; /* if none of them could be looked at */

	if (!parts)
		return report_error(&error_no_memory);
	catch_signals();
	fflush(NULL);
	for (u32 i = 0; i < n; i++) {
		parts[i].pid = pids[i];
		start(&parts[i], run, ctx);
		if (parts[i].child < 0)
			end(&parts[i]);
	}
	while (look(parts, n)) {
		if (stop_sampling && !told)
			stop_all(parts, n);
		told = stop_sampling;
		show_all(parts, n, &speaker, json);
	}
	show_all(parts, n, &speaker, json);
	for (u32 i = 0; i < n; i++) {
		free(parts[i].text);
		if ((!code || code == ERROR_NO_PROCESS) && parts[i].code != ERROR_NO_PROCESS)
			code = parts[i].code;
	}
	return code;
}
