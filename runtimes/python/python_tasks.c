/* SPDX-License-Identifier: Apache-2.0 */
#include "python_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "grow.h"
#include "python_async.h"
#include "python_coro.h"

#define V3_12 0x030c0000
#define V3_14 0x030e0000

#define TASKS_MAX   (1u << 20)
#define THREADS_MAX 4096
#define SET_CHUNK   64
#define SET_MAX     (1u << 22) /* places of a set */
#define TASK_WORDS  48
#define TRIES       4
#define TYPE_FLAGS  152        /* tp_flags of PyTypeObject, from its head on */
#define IS_INT      (1u << 24) /* Py_TPFLAGS_LONG_SUBCLASS */
#define IS_STR      (1u << 28) /* Py_TPFLAGS_UNICODE_SUBCLASS */

/* All that is at hand while one process is read. */
struct reading {
	struct python_coros coros;
	const struct python_reader *r;
	struct python_task_list list; /* 3.14 on */
	u32 waiter;                   /* where a task has what it waits for; 0: not seen yet */
	u64 *tasks;
	u32 ntasks;
	struct python_chain chain, again;
	struct frame frames[PYTHON_CORO_DEPTH];
};

static struct error *add_object(struct reading *w, u64 object)
{
	struct error *err;

	if (!object || w->ntasks == TASKS_MAX)
		return NULL;
	err = grow(&w->tasks, w->ntasks, sizeof(*w->tasks));
	if (!err)
		w->tasks[w->ntasks++] = object;
	return err;
}

/* The elements of a set (fill, used, mask, table behind its head): element and hash, -1 where one was removed. */
static struct error *each_element(
        const struct python_reader *r, u64 set, struct error *(*add)(struct reading *w, u64 element), struct reading *w)
{
	u64 about[4], entries[2 * SET_CHUNK];
	struct error *err = NULL;

	if (!set || !python_read(r, about, sizeof(about), set + python_head(r)) || about[2] >= SET_MAX)
		return NULL;
	for (u64 i = 0; !err && i <= about[2]; i += SET_CHUNK) {
		u64 n = about[2] + 1 - i < SET_CHUNK ? about[2] + 1 - i : SET_CHUNK;

		if (!python_read(r, entries, 16 * n, about[3] + 16 * i))
			return NULL;
		for (u64 k = 0; !err && k < n; k++)
			if (entries[2 * k] && entries[2 * k + 1] != ~0ull)
				err = add(w, entries[2 * k]);
	}
	return err;
}

/* A weak reference: what it refers to follows its head; None when that is gone, which has no coroutine. */
static struct error *add_reference(struct reading *w, u64 reference)
{
	return add_object(w, python_word(w->r, reference + python_head(w->r)));
}

static struct error *find_in_set(struct reading *w, u64 interp)
{
	u64 module = python_module(w->r, interp, "asyncio.tasks"), set;

	set = module ? python_dict_find(w->r, module, w->r->version < V3_12 ? "_all_tasks" : "_scheduled_tasks") : 0;
	return each_element(w->r, python_attribute(w->r, set, "data"), add_reference, w);
}

/* A list of next and previous, which ends where it begins; one that is not linked both ways is being changed. */
static struct error *find_in_list(struct reading *w, u64 head)
{
	u64 links[2], at = head;
	struct error *err = NULL;

	for (u32 i = 0; !err && i <= TASKS_MAX; i++) {
		u64 next = python_word(w->r, at);

		if (!next || next == head || !python_read(w->r, links, sizeof(links), next) || links[1] != at)
			break;
		err = add_object(w, next - w->list.task_node);
		at = next;
	}
	return err;
}

/* Those that are there twice, as the lists moved, come once. */
static int by_address(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static void sort(struct reading *w)
{
	u32 n = 0;

	if (w->ntasks)
		qsort(w->tasks, w->ntasks, sizeof(*w->tasks), by_address);
	for (u32 i = 0; i < w->ntasks; i++)
		if (!n || w->tasks[n - 1] != w->tasks[i])
			w->tasks[n++] = w->tasks[i];
	w->ntasks = n;
}

static struct error *find_in_lists(struct reading *w, u64 interp)
{
	const struct python_layout *l = w->r->l;
	u64 ts = python_word(w->r, interp + l->interp_threads.at);
	struct error *err = find_in_list(w, interp + w->list.interp_head);

	for (u32 i = 0; !err && ts && i < THREADS_MAX; i++, ts = python_word(w->r, ts + l->ts_next.at))
		err = find_in_list(w, ts + w->list.ts_head);
	return err;
}

static struct error *find(struct reading *w, u64 runtime)
{
	u64 interp[PYTHON_INTERPRETERS_MAX];
	u32 n = python_interpreters(w->r, runtime, interp);
	struct error *err = NULL;

	for (u32 i = 0; !err && i < n; i++)
		err = w->r->version >= V3_14 ? find_in_lists(w, interp[i]) : find_in_set(w, interp[i]);
	sort(w);
	return err;
}

static bool is_of(const struct python_reader *r, u64 object, u64 flags)
{
	u64 type = object ? python_word(r, object + r->l->ob_type.at) : 0;

	return type && python_word(r, type + TYPE_FLAGS + python_head(r)) & flags;
}

/* Where a task has what it waits for, its coroutine, its name; the same in all of them. */
static bool find_members(struct reading *w, u64 task)
{
	u32 head = python_head(w->r);
	u64 type = python_word(w->r, task + w->r->l->ob_type.at), words[TASK_WORDS], size;

	if (w->waiter)
		return true;
	size = type ? python_word(w->r, type + head + 16) : 0; /* tp_basicsize */
	size = size > head + sizeof(words) ? sizeof(words) : size > head ? size - head : 0;
	if (!python_read(w->r, words, size, task + head))
		return false;
	for (u32 i = 1; i + 1 < size / 8; i++)
		if (words[i] && words[i + 1] && !(words[i] & 7) && !(words[i + 1] & 7) &&
		        python_kind_of(&w->coros, words[i]) == PYTHON_CORO &&
		        is_of(w->r, words[i + 1], IS_STR | IS_INT)) {
			w->waiter = head + 8 * (i - 1);
			return true;
		}
	return false;
}

static u64 member(const struct reading *w, u64 task, u32 i)
{
	return python_word(w->r, task + w->waiter + 8 * i);
}

/* From 3.12 on a name that was not given is a number until somebody asks for it. */
static void read_name(const struct reading *w, u64 object, struct runtime_task *t)
{
	u64 number;

	if (is_of(w->r, object, IS_INT) && python_int(w->r, object, &number))
		snprintf(t->name, sizeof(t->name), "Task-%lu", number);
	else if (!python_str(w->r->mem, w->r->l, object, t->name, sizeof(t->name)))
		t->name[0] = '\0';
}

static bool is_task(const struct reading *w, u64 object)
{
	return object && w->ntasks && bsearch(&object, w->tasks, w->ntasks, sizeof(*w->tasks), by_address);
}

/* "_asyncio.Future" is a future; a class of the program's own has a name of its own. */
static void report_wait(const struct reading *w, u64 object, struct runtime_task *t)
{
	u64 type = python_word(w->r, object + w->r->l->ob_type.at), at;
	char name[64] = "", *dot;

	at = type ? python_word(w->r, type + python_head(w->r) + 8) : 0;
	if (!at || !python_read(w->r, name, sizeof(name) - 1, at))
		name[0] = '\0';
	dot = strrchr(name, '.');
	dot = dot ? dot + 1 : name;
	if (!*dot || !strcmp(dot, "Future"))
		snprintf(t->state, sizeof(t->state), "waits for a future");
	else
		snprintf(t->state, sizeof(t->state), "waits for %s", dot);
}

static void report_task(const struct reading *w, const struct python_chain *c, u64 waiter, struct runtime_task *t)
{
	u64 object = waiter ? waiter : c->awaits;

	t->on_thread = c->state == PYTHON_RUNNING;
	if (t->on_thread)
		snprintf(t->state, sizeof(t->state), "running");
	else if (c->state == PYTHON_CREATED && c->n == 1)
		snprintf(t->state, sizeof(t->state), "not started");
	else if (!waiter)
		snprintf(t->state, sizeof(t->state), "ready to run");
	else if (is_task(w, object) && (t->awaits = object))
		snprintf(t->state, sizeof(t->state), "waits for a task");
	else
		report_wait(w, object, t);
}

static struct error *add_awaiter(struct runtime_task *t, u64 task)
{
	if (t->nawaited_by < RUNTIME_TASK_AWAITERS)
		t->awaited_by[t->nawaited_by++] = task;
	return NULL;
}

/* A set's elements as each_element() has them; it is small. */
static void read_awaiters(const struct reading *w, u64 task, struct runtime_task *t)
{
	u64 by = python_word(w->r, task + w->list.task_awaited_by), about[4], entry[2];
	u8 is_set;

	if (!w->list.task_node || !by || !python_read(w->r, &is_set, 1, task + w->list.task_awaited_by_is_set))
		return;
	if (!is_set) {
		error_free(add_awaiter(t, by));
		return;
	}
	if (!python_read(w->r, about, sizeof(about), by + python_head(w->r)))
		return;
	for (u64 i = 0; i <= about[2] && i < SET_CHUNK; i++)
		if (python_read(w->r, entry, sizeof(entry), about[3] + 16 * i) && entry[0] && entry[1] != ~0ull)
			error_free(add_awaiter(t, entry[0]));
}

static bool same(const struct python_chain *a, const struct python_chain *b)
{
	return a->n == b->n && a->state == b->state && a->awaits == b->awaits && a->cut == b->cut &&
	       !memcmp(a->frames, b->frames, a->n * sizeof(*a->frames));
}

/* Read twice, it is of one moment if both are the same. False: it moved each time. */
static bool read_chain(struct reading *w, u64 task, u64 *waiter, bool *gone)
{
	for (u32 i = 0; i < TRIES; i++) {
		u64 coro = member(w, task, 1);

		*gone = python_kind_of(&w->coros, coro) != PYTHON_CORO;
		if (*gone)
			return false;
		*waiter = member(w, task, 0);
		if (python_chain(&w->coros, coro, &w->chain) && python_chain(&w->coros, coro, &w->again) &&
		        same(&w->chain, &w->again) && member(w, task, 0) == *waiter && member(w, task, 1) == coro)
			return true;
	}
	return false;
}

static struct error *add_task(
        struct reading *w, u64 task, struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	struct runtime_task t = {.id = task, .frames = w->frames, .stop = STOP_ROOT_RUNTIME};
	bool gone, stands;
	u64 waiter;

	if (!find_members(w, task))
		return NULL;
	stands = read_chain(w, task, &waiter, &gone);
	if (gone || (stands && w->chain.state == PYTHON_ENDED))
		return NULL;
	read_name(w, member(w, task, 2), &t);
	read_awaiters(w, task, &t);
	if (!stands) {
		snprintf(t.state, sizeof(t.state), "moved whenever it was read");
		return add(ctx, &t);
	}
	report_task(w, &w->chain, waiter, &t);
	t.stop = w->chain.cut ? STOP_DEPTH : STOP_ROOT_RUNTIME;
	for (u32 i = 0; i < w->chain.n && w->chain.state != PYTHON_RUNNING; i++)
		w->frames[t.nframes++] = w->chain.frames[w->chain.n - 1 - i];
	return add(ctx, &t);
}

static struct error *why_not(const struct python_image *image, pid_t pid, const char *why)
{
	return error_new(ERROR_UNSUPPORTED, "process %d: tasks of Python %u.%u are not listed: %s", pid,
	        image->version >> 24, image->version >> 16 & 0xff, why);
}

struct error *python_tasks(const struct python_image *image, u64 bias, struct python_names *names, u32 reads,
        const struct runtime_process *p, struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	u32 left = reads, i = 0;
	struct python_reader r = {.mem = p->memory, .l = image->layout, .version = image->version, .left = &left};
	cleanup(free) struct reading *w = calloc(1, sizeof(*w));
	struct error *err = NULL;

	if (!w)
		return &error_no_memory;
	if (image->version < PYTHON_CORO_FIRST)
		return why_not(image, p->pid, "it needs 3.8");
	if (image->version >= V3_14 && !python_async_list(image, p, &w->list))
		return NULL; /* asyncio was not imported */
	w->r = &r;
	w->coros = (struct python_coros){.r = &r, .names = names};
	err = find(w, bias + image->runtime);
	for (; !err && left && i < w->ntasks; i++)
		err = add_task(w, w->tasks[i], add, ctx);
	if (!err && !left)
		err = error_new(ERROR_UNSUPPORTED, "process %d has more tasks than yrt reads: %u of %u are shown",
		        p->pid, i, w->ntasks);
	table_free(&w->coros.kinds);
	free(w->tasks);
	return err;
}

u32 python_suspended(const struct python_reader *r, struct python_names *names, u64 frame, struct frame *ret, u32 max)
{
	cleanup(free) struct reading *w = calloc(1, sizeof(*w));
	u64 coro = r->version < PYTHON_CORO_FIRST ? 0 : python_coro_of(r, frame);
	bool stands;
	u32 n = 0;

	if (!w || !coro)
		return 0;
	w->r = r;
	w->coros = (struct python_coros){.r = r, .names = names};
	stands = python_chain(&w->coros, coro, &w->chain) && python_chain(&w->coros, coro, &w->again) &&
	         same(&w->chain, &w->again);
	for (; stands && w->chain.state == PYTHON_SUSPENDED && n < w->chain.n && n < max; n++)
		ret[n] = w->chain.frames[w->chain.n - 1 - n];
	table_free(&w->coros.kinds);
	return n;
}
