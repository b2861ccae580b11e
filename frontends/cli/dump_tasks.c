/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that wait without a thread, in a dump: equal stacks grouped, and who waits for whom. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "colour.h"
#include "dump_view.h"
#include "frontends/format/text.h"
#include "unwind/profile/thread_names.h"
#include "unwind/table.h"

#define TASKS_SHOWN  8 /* of those with one stack */
#define NAME_COLUMNS 200

static u64 key_of(const struct process *p, const struct runtime_tasks_ops *ops, u64 id)
{
	const u64 words[3] = {(u64)(uintptr_t)p, (u64)(uintptr_t)ops, id};

	return XXH3_64bits(words, sizeof(words)) | 1;
}

static void find_tops(const struct profile *p, struct dump_view *v)
{
	for (u32 i = p->nodes[0].child; i; i = p->nodes[i].sibling) {
		u32 number;

		if (task_of_function(&p->functions[p->nodes[i].function], &number) && number && number <= v->ntasks)
			v->tasks[number - 1].top = p->nodes[i].child;
	}
	for (u32 i = 0; i < v->ntasks; i++)
		v->tasks[i].stack = view_path_hash(p, v->tasks[i].top);
}

static int by_stack(const void *a, const void *b)
{
	const struct view_task *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int by_count(const void *a, const void *b)
{
	const struct view_task *x = a, *y = b;

	/* awaiters: for the moment how many have this stack */
	return x->awaiters != y->awaiters ? (x->awaiters > y->awaiters) - (x->awaiters < y->awaiters) : by_stack(a, b);
}

static u32 group_end(const struct dump_view *v, u32 i)
{
	u32 end = i + 1;

	while (end < v->ntasks && v->tasks[end].stack == v->tasks[i].stack)
		end++;
	return end;
}

/* What few do comes first, as among threads. */
static void sort(struct dump_view *v)
{
	qsort(v->tasks, v->ntasks, sizeof(*v->tasks), by_stack);
	for (u32 i = 0, end; i < v->ntasks; i = end, v->ntask_stacks++) {
		end = group_end(v, i);
		for (u32 k = i; k < end; k++)
			v->tasks[k].awaiters = end - i;
	}
	qsort(v->tasks, v->ntasks, sizeof(*v->tasks), by_count);
	for (u32 i = 0; i < v->ntasks; i++)
		v->tasks[i].awaiters = 0;
}

static void add_awaiter(struct dump_view *v, u32 awaiter, u32 awaited)
{
	struct view_task *t = &v->tasks[awaited];

	if (t->awaiter == awaiter + 1) /* both of them say so */
		return;
	t->awaiters++;
	if (!t->awaiter)
		t->awaiter = awaiter + 1;
}

static struct error *find_awaiters(struct dump_view *v)
{
	struct table index = {0};
	struct error *err = NULL;

	for (u32 i = 0; !err && i < v->ntasks; i++)
		err = table_put(&index, key_of(v->tasks[i].t->process, v->tasks[i].t->ops, v->tasks[i].t->id), i);
	for (u32 i = 0; !err && i < v->ntasks; i++) {
		const struct dump_task *t = v->tasks[i].t;
		const u64 *at = t->awaits ? table_get(&index, key_of(t->process, t->ops, t->awaits)) : NULL;

		v->tasks[i].awaits = at ? (u32)*at + 1 : 0;
		for (u32 k = 0; k < t->nawaited_by; k++) {
			at = table_get(&index, key_of(t->process, t->ops, t->awaited_by[k]));
			if (at)
				add_awaiter(v, (u32)*at, i);
		}
	}
	for (u32 i = 0; !err && i < v->ntasks; i++)
		if (v->tasks[i].awaits && !v->tasks[v->tasks[i].awaits - 1].t->nawaited_by)
			add_awaiter(v, i, v->tasks[i].awaits - 1);
	table_free(&index);
	return err;
}

struct error *view_tasks(const struct dump_list *list, struct dump_view *v)
{
	v->tasks = calloc(list->ntasks + 1, sizeof(*v->tasks));
	if (!v->tasks)
		return &error_no_memory;
	v->ntasks = list->ntasks;
	v->partial = list->partial;
	for (u32 i = 0; i < v->ntasks; i++)
		v->tasks[i] = (struct view_task){.t = &list->tasks[i], .number = i + 1};
	find_tops(v->profile, v);
	sort(v);
	return find_awaiters(v);
}

static void put_name(const struct view_task *t, FILE *out)
{
	char clean[TEXT_CLEAN];

	text_clean(t->t->name, clean);
	fprintf(out, *clean ? "\"%.*s\"" : "%.*s", NAME_COLUMNS, *clean ? clean : t->t->ops->kind);
}

static void put_task(const struct dump_view *v, const struct view_task *t, FILE *out)
{
	char clean[TEXT_CLEAN];

	fputs(colour(out, COLOUR_BOLD), out);
	if (*t->t->name)
		fprintf(out, "%s ", t->t->ops->kind);
	put_name(t, out);
	text_clean(t->t->state, clean);
	fprintf(out, "%s: %s", colour(out, COLOUR_NONE), clean);
	if (t->awaits) {
		fputc(' ', out);
		put_name(&v->tasks[t->awaits - 1], out);
	}
	if (t->awaiter) {
		fputs(", awaited by ", out);
		put_name(&v->tasks[t->awaiter - 1], out);
	}
	if (t->awaiters > 1)
		fprintf(out, " and %u more", t->awaiters - 1);
	fputc('\n', out);
}

/* One line for each kind. */
static void put_heads(const struct dump_view *v, FILE *out)
{
	for (u32 i = 0; i < v->ntasks; i++) {
		const struct runtime_tasks_ops *ops = v->tasks[i].t->ops;
		u32 n = 0, before = 0;

		for (u32 k = 0; k < i && !before; k++)
			before = v->tasks[k].t->ops == ops;
		for (u32 k = i; !before && k < v->ntasks; k++)
			n += v->tasks[k].t->ops == ops;
		if (!before)
			fprintf(out, "%s%u %s", i ? ", " : "\n", n, n == 1 ? ops->kind : ops->kinds);
	}
	fprintf(out, ": %u different stack%s\n", v->ntask_stacks, v->ntask_stacks == 1 ? "" : "s");
}

struct error *dump_tasks_text(
        const struct dump_view *v, struct error *(*put_stack)(const struct dump_view *v, u32 top, FILE *out), FILE *out)
{
	struct error *err = NULL;

	if (v->ntasks)
		put_heads(v, out);
	else if (v->partial)
		fputs("\ntasks that wait without a thread could not be listed: the messages on stderr say why\n", out);
	else if (v->logical)
		fputs("\nno tasks that wait without a thread were found\n", out);
	for (u32 i = 0, end; !err && i < v->ntasks; i = end) {
		end = group_end(v, i);
		fputc('\n', out);
		for (u32 k = i; k < end && k < i + TASKS_SHOWN; k++)
			put_task(v, &v->tasks[k], out);
		if (end - i > TASKS_SHOWN)
			fprintf(out, "and %u more\n", end - i - TASKS_SHOWN);
		if (v->tasks[i].top)
			err = put_stack(v, v->tasks[i].top, out);
	}
	return err;
}
