/* SPDX-License-Identifier: Apache-2.0 */
/* report --watch CONDITION: the same command again, as a process of its own, whenever a condition of watch holds. */
#include "report_watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "say.h"
#include "when.h"

#define LOOK_MS 500

static bool anyone_lives(const struct run_request *r)
{
	for (int i = 0; i < r->npids; i++)
		if (!kill(r->pids[i], 0) || errno == EPERM)
			return true;
	return false;
}

/* Until it has held for long enough. Of --select whoever is there by then. */
static struct error *wait_for(struct flame_options *o, struct when *w, const char *condition)
{
	bool holds = false, chosen = !o->selection.nrules;
	char value[WHEN_VALUE];
	struct error *err = NULL;

	when_restart(w);
	while (!err && !holds && !stop_sampling) {
		struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

		if (!chosen)
			error_free(flame_select(o)); /* nobody is there now */
		err = when_look(w, o->run.pids, o->run.npids, o->run.sampler.everyone, &stop_sampling, &holds);
		if (!err && !holds && chosen && !o->run.sampler.everyone && !anyone_lives(&o->run))
			err = error_new(ERROR_NO_PROCESS, "all targets have exited before %s", condition);
		if (!err && !holds)
			nanosleep(&pause, NULL);
	}
	when_show(w, value);
	if (!err && !stop_sampling && !o->quiet)
		say_note("%s: it is %s", condition, value);
	return err;
}

/* The same command, without a condition: of two --watch the later holds. */
static void report_and_exit(int argc, char **argv)
{
	char **all = calloc((size_t)argc + 3, sizeof(*all));

	if (all) {
		all[0] = "yrt";
		memcpy(all + 1, argv, (size_t)argc * sizeof(*all));
		all[argc + 1] = "--watch=";
		execv("/proc/self/exe", all);
	}
	_exit(ERROR_INTERNAL);
}

static struct error *report_once(int argc, char **argv, int *code)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child)
		report_and_exit(argc, argv);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0)
		return error_errno(errno, "cannot start a process");
	*code = WIFEXITED(status) ? WEXITSTATUS(status) : ERROR_INTERNAL;
	return NULL;
}

struct error *report_watch(struct flame_options *o, const char *condition, u32 count, int argc, char **argv, int *code)
{
	struct when w = {0};
	struct error *err = when_parse(condition, &w);

	catch_signals();
	for (u32 done = 0; !err && !stop_sampling && (!count || done < count); done++) {
		err = wait_for(o, &w, condition);
		if (!err && !stop_sampling)
			err = report_once(argc, argv, code);
		if (!err && *code == ERROR_PERMISSION)
			break;
	}
	when_free(&w);
	return err;
}
