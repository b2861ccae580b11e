/* SPDX-License-Identifier: Apache-2.0 */
#include "select_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "unwind/cleanup.h"
#include "unwind/edit_distance.h"
#include "unwind/grow.h"
#include "unwind/process/process.h"

#define TOLD 8   /* processes that a message lists */
#define ARGS 100 /* bytes of their command lines */

struct error *each_process(const char *proc, struct error *(*found)(void *ctx, pid_t pid), void *ctx)
{
	DIR *dir = opendir(proc);
	struct error *err = NULL;
	struct dirent *entry;

	if (!dir)
		return error_errno(errno, "cannot read %s", proc);
	while (!err && (entry = readdir(dir))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid > 0 && !*end && pid != getpid())
			err = found(ctx, (pid_t)pid);
	}
	closedir(dir);
	return err;
}

struct search {
	const char *proc;
	const struct selection *selection;
	const char *name; /* in place of a selection */
	pid_t *pids;
	u32 n;
};

/* As rules take it: a path, where there is a '/' in what is looked for. */
static const char *name_like(const char *wanted, const struct process_facts *f)
{
	return strchr(wanted, '/') && *f->exe ? f->exe : facts_name(f);
}

static bool is_called(const char *name, const char *proc, pid_t pid)
{
	struct process_facts f;

	return facts_read(proc, pid, &f) && (!strcmp(name, name_like(name, &f)) || !strcmp(name, f.comm));
}

static struct error *add_matching(void *ctx, pid_t pid)
{
	struct search *s = ctx;
	struct error *err;

	if (s->name ? !is_called(s->name, s->proc, pid) : !selection_matches_pid(s->selection, s->proc, pid))
		return NULL;
	err = grow(&s->pids, s->n, sizeof(*s->pids));
	if (!err)
		s->pids[s->n++] = pid;
	return err;
}

static struct error *search(struct search *s)
{
	struct error *err = each_process(s->proc, add_matching, s);

	if (err) {
		free(s->pids);
		s->pids = NULL;
		s->n = 0;
	}
	return err;
}

struct error *selection_find(const struct selection *selection, const char *proc, pid_t **pids, u32 *n)
{
	struct search s = {.proc = proc, .selection = selection};
	struct error *err = search(&s);

	*pids = s.pids;
	*n = s.n;
	return err;
}

/* --- what comes close --- */

struct near {
	const char *proc;
	enum select_key key;
	const char *value;
	bool by_name;                    /* any name of a process is looked for, not one of a kind */
	const struct select_rule *rest;  /* the other terms of this one match; NULL: they need not */
	const struct select_rule *begin; /* programs where its first term matches; NULL: what is similar */
	char *text;                      /* of what was found so far */
	u32 n;
};

/* A third of the letters may be wrong, two at most. */
static bool is_near(const char *wanted, const char *there)
{
	const char *slash = strrchr(wanted, '/');
	u32 wrong;

	wanted = slash && slash[1] ? slash + 1 : wanted;
	wrong = (u32)MIN(strlen(wanted) / 3, 2);
	return strcasestr(there, wanted) || (strlen(there) > 2 && strcasestr(wanted, there)) ||
	       edit_distance(wanted, there) <= wrong;
}

/* What a process has of the kind that is looked for, and whether it is worth listing. */
static bool near_value(const struct near *near, const struct process_facts *f, char ret[SELECT_ID])
{
	switch (near->key) {
	case SELECT_POD:
		return facts_pod(f, ret);
	case SELECT_CONTAINER:
		return facts_container(f, ret);
	case SELECT_UNIT:
		return facts_unit(f, ret);
	case SELECT_CGROUP_PATH:
		snprintf(ret, SELECT_ID, "%.*s", (int)strcspn(f->cgroup, "\n"), f->cgroup);
		return strcasestr(f->cgroup, near->value);
	case SELECT_COMM:
		snprintf(ret, SELECT_ID, "%s", f->comm);
		return is_near(near->value, f->comm);
	default:
		if (is_near(near->value, facts_name(f))) {
			snprintf(ret, SELECT_ID, "%.*s", SELECT_ID - 1, name_like(near->value, f));
			return true;
		}
		snprintf(ret, SELECT_ID, "%s%s", near->by_name ? "" : "comm=", f->comm); /* what exe= does not match */
		return is_near(near->value, f->comm);
	}
}

static struct error *add_near(void *ctx, pid_t pid)
{
	struct near *near = ctx;
	struct process_facts f;
	char value[SELECT_ID], *text;

	if (near->n > TOLD || !facts_read(near->proc, pid, &f))
		return NULL;
	if (near->begin ? !rule_begin_matches(near->begin, &f) : !near_value(near, &f, value))
		return NULL;
	if (near->begin)
		snprintf(value, sizeof(value), "%s", facts_name(&f));
	if (near->rest && !rule_rest_matches(near->rest, &f))
		return NULL;
	if (near->text && strstr(near->text, value)) /* one process of a pod, a unit, a program is enough */
		return NULL;
	if (++near->n > TOLD)
		return NULL;
	if (asprintf(&text, "%s%s%s (pid %d)", near->text ? near->text : "", near->text ? ", " : "", value, pid) < 0)
		return &error_no_memory;
	free(near->text);
	near->text = text;
	return NULL;
}

static struct error *hint_near(struct error *err, struct near *near)
{
	bool of_cgroup = near->key >= SELECT_CGROUP_PATH;

	error_free(each_process(near->proc, add_near, near));
	if (!near->text && near->rest) {
		near->rest = NULL;
		error_free(each_process(near->proc, add_near, near));
	}
	if (process_is_hidden(1))
		error_hint(
		        err, "/proc, as it is mounted here (hidepid), shows only some processes: %s", process_remedy());
	else if (near->text)
		error_hint(err, "similar: %s%s", near->text, near->n > TOLD ? ", ..." : "");
	else if (of_cgroup && near->key != SELECT_CGROUP_PATH)
		error_hint(err,
		        "no process here is in any %s; in a pod, hostPID: true makes the node's processes visible",
		        select_key_name(near->key));
	else
		error_hint(err, "there is nothing similar; ps -e lists all processes");
	free(near->text);
	return err;
}

/* The pod is there, but not the program: what runs in it. */
static bool hint_begin(struct error *err, const struct select_rule *rule, const char *proc)
{
	struct near near = {.proc = proc, .begin = rule};
	bool found;

	error_free(each_process(proc, add_near, &near));
	found = near.text;
	if (found)
		error_hint(err, "%s=%s has %s%s", select_key_name(rule->term[0].key), rule->term[0].value, near.text,
		        near.n > TOLD ? ", ..." : "");
	free(near.text);
	return found;
}

static struct error *refuse_hidden(void *ctx, pid_t pid)
{
	struct search *s = ctx;
	struct process_facts f;

	if (!facts_read(s->proc, pid, &f) || !selection_hides(s->selection, &f))
		return NULL;
	return error_hint(error_new(ERROR_PERMISSION,
	                          "cannot see whether process %d (%s) matches %s: readlink() of its exe is refused",
	                          pid, f.comm, s->selection->text),
	        "%s", process_remedy());
}

struct error *selection_hidden(const struct selection *s, const char *proc)
{
	struct search search = {.proc = proc, .selection = s};

	return each_process(proc, refuse_hidden, &search);
}

struct error *selection_missed(const struct selection *s, const char *proc)
{
	const struct select_rule *rule = &s->rules[0];
	struct near near = {.proc = proc, .key = rule->term[0].key, .value = rule->term[0].value, .rest = rule};
	struct error *err = selection_hidden(s, proc);

	if (err)
		return err;
	err = error_new(ERROR_NO_PROCESS, "no process matches %s", s->text);
	return rule->nterms > 1 && hint_begin(err, rule, proc) ? err : hint_near(err, &near);
}

struct error *selection_never_matched(const struct selection *s, const char *proc)
{
	struct error *missed = selection_missed(s, proc), *err;

	if (missed->kind != ERROR_NO_PROCESS)
		return missed;
	err = error_hint(
	        error_new(ERROR_NO_PROCESS, "no process has matched %s until now", s->text), "%s", missed->hint);
	error_free(missed);
	return err;
}

/* "pid 12: nginx: worker process" a line. The command line is the target's: whoever prints it, escapes it. */
static char *list_pids(const char *proc, const pid_t *pids, u32 n)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (u32 i = 0; out && i < n && i < TOLD; i++) {
		cleanup(free) char *path = NULL;
		cleanup(close) int fd =
		        asprintf(&path, "%s/%d/cmdline", proc, pids[i]) < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
		char args[ARGS + 1];
		ssize_t length = fd < 0 ? 0 : read(fd, args, ARGS);

		for (ssize_t c = 0; c < length; c++)
			args[c] = args[c] ? args[c] : ' ';
		args[length > 0 ? length : 0] = '\0';
		fprintf(out, "%s%d (%s)", i ? ", " : "", pids[i], args);
	}
	if (out && n > TOLD)
		fprintf(out, " and %u more", n - TOLD);
	if (out)
		fclose(out);
	return text;
}

/* Is that the name of the program of all that were found, or only what they call themselves? */
static bool are_programs(const struct search *s)
{
	struct process_facts f;

	for (u32 i = 0; i < s->n; i++)
		if (facts_read(s->proc, s->pids[i], &f) && strcmp(s->name, name_like(s->name, &f)) != 0)
			return false;
	return true;
}

static struct error *several(const struct search *s, const char *what, const char *name)
{
	cleanup(free) char *list = list_pids(s->proc, s->pids, s->n);

	return error_new(ERROR_USAGE, "%u processes %s %s: %s", s->n, what, name, list ? list : "");
}

struct error *selection_find_one(const struct selection *selection, const char *proc, pid_t *ret)
{
	struct search s = {.proc = proc, .selection = selection};
	struct error *err = search(&s);
	cleanup(free) pid_t *pids = s.pids;

	if (err)
		return err;
	if (!s.n)
		return selection_missed(selection, proc);
	if (s.n > 1)
		return error_hint(several(&s, "match", selection->text), "give the pid of one: -p PID");
	*ret = pids[0];
	return NULL;
}

struct error *find_by_name(const char *name, const char *proc, bool one, pid_t *ret)
{
	struct search s = {.proc = proc, .name = name};
	struct near near = {.proc = proc, .key = SELECT_EXE, .value = name, .by_name = true};
	struct error *err = search(&s);
	cleanup(free) pid_t *pids = s.pids;

	if (err)
		return err;
	if (!s.n)
		return hint_near(error_new(ERROR_NO_PROCESS, "no process is called %s", name), &near);
	if (s.n == 1) {
		*ret = pids[0];
		return NULL;
	}
	err = several(&s, "are called", name);
	return one ? error_hint(err, "give the pid of one: -p PID")
	           : error_hint(err, "give the pid of one, or --select %s=%s for all, also those that start later",
	                     are_programs(&s) ? "exe" : "comm", name);
}
