/* SPDX-License-Identifier: Apache-2.0 */
#include "y_several.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "frontends/format/text.h"
#include "say.h"
#include "unwind/cleanup.h"
#include "unwind/process/comm.h"

struct part {
	pid_t pid, child;
	char name[COMM_TEXT];
	FILE *out;
	bool ended;
	int code;
};

static void start(struct part *p, int (*run)(void *ctx, pid_t pid), void *ctx)
{
	pid_t parent = getpid();

	comm_read(p->pid, p->name);
	p->out = tmpfile();
	p->child = p->out ? fork() : -1;
	if (p->child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || dup2(fileno(p->out), STDOUT_FILENO) < 0)
		_exit(ERROR_INTERNAL);
	p->code = run(ctx, p->pid);
	fflush(NULL);
	_exit(p->code);
}

static void stop_all(const struct part *parts, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (parts[i].child > 0 && !parts[i].ended)
			kill(parts[i].child, SIGINT);
}

static void await(struct part *parts, u32 n, u32 i)
{
	struct part *p = &parts[i];
	bool told = false;
	int status = 0;

	p->code = ERROR_INTERNAL;
	if (p->child < 0)
		return;
	while (waitpid(p->child, &status, 0) < 0 && errno == EINTR) {
		if (stop_sampling && !told)
			stop_all(parts, n);
		told = stop_sampling;
	}
	p->ended = true;
	if (WIFEXITED(status))
		p->code = WEXITSTATUS(status);
}

static void show(const struct part *p, bool json)
{
	cleanup(free) char *clean = clean_text(p->name);
	char room[4096];
	size_t n;

	if (json) {
		printf("{\"kind\": \"process\", \"pid\": %d, \"name\": ", (int)p->pid);
		text_json(stdout, p->name);
		puts("}");
	} else {
		printf("==> %s (pid %d) <==\n", clean ? clean : "", (int)p->pid);
	}
	if (!p->out)
		return;
	rewind(p->out);
	while ((n = fread(room, 1, sizeof(room), p->out)))
		fwrite(room, 1, n, stdout);
	fflush(stdout);
}

int y_several(const pid_t *pids, u32 n, bool json, int (*run)(void *ctx, pid_t pid), void *ctx)
{
	cleanup(free) struct part *parts = calloc(n, sizeof(*parts));
	int code = ERROR_NO_PROCESS; /* of all: one that has ended meanwhile is none of several */

	if (!parts)
		return report_error(&error_no_memory);
	catch_signals();
	fflush(NULL);
	for (u32 i = 0; i < n; i++) {
		parts[i].pid = pids[i];
		start(&parts[i], run, ctx);
	}
	for (u32 i = 0; i < n; i++) {
		await(parts, n, i);
		show(&parts[i], json);
		if (parts[i].out)
			fclose(parts[i].out);
		if ((!code || code == ERROR_NO_PROCESS) && parts[i].code != ERROR_NO_PROCESS)
			code = parts[i].code;
	}
	return code;
}
