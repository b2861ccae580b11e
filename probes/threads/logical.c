/* SPDX-License-Identifier: Apache-2.0 */
#include "logical.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/grow.h"
#include "unwind/process/process.h"
#include "unwind/runtime.h"

struct taking {
	struct dump_list *list;
	struct process *process;
	const struct runtime_tasks_ops *ops;
};

static struct error *copy(const struct taking *t, const struct runtime_task *from, struct dump_task *ret)
{
	*ret = (struct dump_task){.process = t->process,
	        .ops = t->ops,
	        .id = from->id,
	        .name = strdup(from->name),
	        .state = strdup(from->state),
	        .awaits = from->awaits,
	        .nawaited_by = from->nawaited_by,
	        .frames = calloc(from->nframes + 1, sizeof(*ret->frames)),
	        .nframes = from->nframes,
	        .stop = from->stop};
	memcpy(ret->awaited_by, from->awaited_by, sizeof(ret->awaited_by));
	if (!ret->name || !ret->state || !ret->frames)
		return &error_no_memory;
	memcpy(ret->frames, from->frames, from->nframes * sizeof(*ret->frames));
	return NULL;
}

static struct error *add(void *ctx, const struct runtime_task *task)
{
	struct taking *t = ctx;
	struct dump_list *list = t->list;
	struct error *err = grow(&list->tasks, list->ntasks, sizeof(*list->tasks));

	return err ? err : copy(t, task, &list->tasks[list->ntasks++]);
}

struct error *logical_take(
        struct process *p, void (*warn)(void *ctx, struct error *err), void *ctx, struct dump_list *list)
{
	struct runtime_process view = process_view(p);
	struct taking t = {.list = list, .process = p};
	struct error *err = NULL;

	for (u32 i = 0; !err && !p->dead && i < p->ninstances; i++) {
		t.ops = p->instances[i].ops->tasks;
		if (!t.ops)
			continue;
		if (!p->instances[i].data) { /* refused, and said so */
			list->partial = true;
			continue;
		}
		err = t.ops->list(p->instances[i].data, &view, add, &t);
		if (err && err != &error_no_memory) {
			warn(ctx, err);
			err = NULL;
			list->partial = true;
		}
	}
	return err;
}

void logical_free(struct dump_list *list)
{
	for (u32 i = 0; i < list->ntasks; i++) {
		free(list->tasks[i].name);
		free(list->tasks[i].state);
		free(list->tasks[i].frames);
	}
	free(list->tasks);
	list->tasks = NULL;
	list->ntasks = 0;
	list->partial = false;
}

struct error *logical_name(struct collector *c, const struct dump_list *list)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < list->ntasks; i++) {
		const struct dump_task *t = &list->tasks[i];
		struct stack_record record = {.instance = t->process->number,
		        .tgid = (u32)t->process->pid,
		        .stop = (u16)t->stop,
		        .weight = 1};
		u32 node;

		err = collector_place_task(
		        c, &record, *t->name ? t->name : t->ops->kind, i + 1, t->frames, t->nframes, &node);
		if (!err && node != COLLECTOR_FILTERED)
			profile_add(collector_profile(c), node, 1);
	}
	return err;
}
