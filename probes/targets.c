/* SPDX-License-Identifier: Apache-2.0 */
#include "targets.h"

#include <stdlib.h>

void targets_free(struct targets *t)
{
	for (u32 i = 0; i < t->nprocesses; i++)
		process_destroy(t->processes[i]);
	free(t->processes);
	t->processes = NULL;
	t->nprocesses = 0;
}

struct process *targets_find(const struct targets *t, u32 number)
{
	for (u32 i = t->nprocesses; i-- > 0;)
		if (t->processes[i]->number == number)
			return t->processes[i];
	return NULL;
}

/* Code that stays unknown must not cost a copy of the stack each time: so many are taken after each new file. */
static void allow_late(struct process *p)
{
	u32 n = 0;

	for (u32 i = 0; i < p->maps.nlines; i++)
		n += p->mappings[i].module != 0;
	if (n > p->late_modules)
		p->late_left = LATE_MOST;
	p->late_modules = n;
	p->entry.late = p->late_left;
}

static struct error *tell(struct targets *t, struct process *p)
{
	p->entry.flags = t->follow ? PROCESS_FOLLOW : 0;
	allow_late(p);
	return object_set_process(t->object, p->pid, &p->entry);
}

/* Takes over p. */
static struct error *keep(struct targets *t, struct process *p)
{
	struct process **grown = realloc(t->processes, (t->nprocesses + 1) * sizeof(*grown));

	if (!grown) {
		process_destroy(p);
		return &error_no_memory;
	}
	t->processes = grown;
	t->processes[t->nprocesses++] = p;
	t->alive += !p->dead;
	return NULL;
}

struct error *targets_add(struct targets *t, pid_t pid, u32 number)
{
	struct process *p;
	struct error *err = process_create(t->modules, pid, number, &p);

	if (!err)
		err = keep(t, p);
	return err ? err : tell(t, p);
}

static void bury(struct targets *t, struct process *p)
{
	if (p && !p->dead) {
		p->dead = true;
		t->alive--;
	}
}

/* What it had mapped since it was last looked at. */
static struct error *recall(struct targets *t, struct process *p)
{
	struct maps files;
	struct error *err = t->watch ? mmap_watch_recall(t->watch, p->pid, &files) : NULL;

	if (err || !t->watch)
		return err;
	err = process_recall(p, &files);
	maps_free(&files);
	return err;
}

static struct error *rescan(struct targets *t, struct process *p)
{
	bool changed, was_dead = p->dead;
	struct error *err = p->dead ? NULL : process_rescan(p, &changed);

	if (err || was_dead)
		return err;
	if (p->dead) {
		t->alive--;
		return recall(t, p);
	}
	return changed ? tell(t, p) : NULL;
}

/* A new process or program under a number that BPF chose. */
static struct error *follow(struct targets *t, pid_t pid, u32 number)
{
	struct error *err = targets_add(t, pid, number);
	struct process *gone;

	if (!err || err == &error_no_memory)
		return err;
	if (err->kind == ERROR_NO_PROCESS)
		error_free(err);
	else
		t->warn(t->ctx, err);
	err = process_create_gone(t->modules, pid, number, &gone);
	if (!err)
		err = keep(t, gone);
	return err ? err : recall(t, gone);
}

struct error *targets_record(struct targets *t, const struct process_record *record)
{
	struct process *p = targets_find(t, record->instance);

	switch (record->type) {
	case RECORD_FORK:
		return follow(t, (pid_t)record->tgid, record->instance);
	case RECORD_EXEC:
		bury(t, targets_find(t, record->parent));
		return follow(t, (pid_t)record->tgid, record->instance);
	case RECORD_EXIT:
		bury(t, p);
		return p ? recall(t, p) : NULL;
	case RECORD_UNKNOWN:
		return p ? rescan(t, p) : NULL;
	default:
		return NULL;
	}
}

struct error *targets_mapped(struct targets *t, pid_t pid)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < t->nprocesses; i++)
		if (!pid || t->processes[i]->pid == pid)
			err = rescan(t, t->processes[i]);
	return err;
}

struct error *targets_starting(struct targets *t)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < t->nprocesses; i++)
		if (!t->processes[i]->dead && process_starting(t->processes[i]))
			err = rescan(t, t->processes[i]);
	return err;
}

void targets_sweep(struct targets *t)
{
	u32 kept = 0;

	for (u32 i = 0; i < t->nprocesses; i++)
		if (t->processes[i]->dead && i)
			process_destroy(t->processes[i]);
		else
			t->processes[kept++] = t->processes[i];
	t->nprocesses = kept;
}
