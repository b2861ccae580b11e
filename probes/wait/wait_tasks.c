/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_tasks.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "unwind/now.h"
#include "unwind/profile/collect.h"
#include "unwind/runtime.h"
#include "unwind/runtime_tasks.h"
#include "unwind/table.h"
#include "wait_reason.h"

#define EACH_NS    20000000ull /* between two looks, on average, at least */
#define EACH_MAX   (1000 * EACH_NS)
#define STACKS_MAX (1u << 20)
#define WARNED_MAX 64

struct wait_tasks {
	const struct event_host *host;
	struct table counts; /* ns by hash of a stack that was put; 0 until the first of these is over */
	struct stack_record record;
	struct frame reason;
	u64 began_ns, last_ns, next_ns;
	u64 span_ns; /* that each task of this look stands for */
	const struct process *process;
	const struct runtime_ops *runtime;
	const struct runtime_tasks_ops *ops; /* its */
	struct table warned;                 /* processes whose tasks could not be listed, and said so */
	struct wait_tasks_summary summary;
};

struct error *wait_tasks_create(const struct event_host *host, struct wait_tasks **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	(*ret)->host = host;
	return NULL;
}

void wait_tasks_destroy(struct wait_tasks *t)
{
	if (!t)
		return;
	table_free(&t->counts);
	table_free(&t->warned);
	free(t);
}

void wait_tasks_start(struct wait_tasks *t)
{
	t->began_ns = t->last_ns = now_ns();
}

static u64 hash_of(const struct wait_tasks *t, const struct runtime_task *task)
{
	const u64 words[] = {XXH3_64bits(task->frames, task->nframes * sizeof(*task->frames)), t->reason.detail,
	        t->process->number, task->stop};

	return XXH3_64bits(words, sizeof(words)) | 1;
}

static const struct frame *frame_at(const struct wait_tasks *t, const struct runtime_task *task, u32 i)
{
	return i ? &task->frames[i - 1] : &t->reason;
}

/* As if BPF had sent it: the reason, and what the task has on its stack. */
static void put_stack(struct wait_tasks *t, const struct runtime_task *task, u64 hash)
{
	struct stack_record *r = &t->record;
	u32 n = task->nframes + 1;

	for (u32 first = 0, i = 0; first < n; first += CHUNK_FRAMES, i++) {
		u32 rest = n - first;

		*r = (struct stack_record){.type = RECORD_STACK,
		        .nframes = rest < CHUNK_FRAMES ? rest : CHUNK_FRAMES,
		        .hash = hash,
		        .instance = t->process->number,
		        .tgid = (u32)t->process->pid,
		        .stop = (u16)task->stop,
		        .first = (u16)i,
		        .last = rest <= CHUNK_FRAMES,
		        .epoch = (u16)object_epoch(t->host->object)};
		strncpy(r->comm, t->ops->kind, sizeof(r->comm) - 1);
		for (u32 k = 0; k < r->nframes; k++)
			r->frame[k] = *frame_at(t, task, first + k);
		t->host->put(t->host->ctx, r, offsetof(struct stack_record, frame) + r->nframes * sizeof(*r->frame));
	}
}

static struct error *add(void *ctx, const struct runtime_task *task)
{
	struct wait_tasks *t = ctx;
	struct error *err = NULL;
	u64 hash, *count;

	if (task->on_thread)
		return NULL;
	if (!task->nframes && task->stop != STOP_ROOT_RUNTIME) {
		t->summary.unseen_ns += t->span_ns;
		return NULL;
	}
	t->reason = (struct frame){.where = frame_where(FRAME_REASON, t->runtime->id, 0, 0),
	        .detail = wait_reason_of_task(t->ops->kind, task->state)};
	hash = hash_of(t, task);
	count = table_get(&t->counts, hash);
	if (!count && t->counts.used >= STACKS_MAX) {
		t->summary.unseen_ns += t->span_ns;
		return NULL;
	}
	if (!count)
		put_stack(t, task, hash);
	err = table_put(&t->counts, hash, (count ? *count : 0) + t->span_ns);
	t->summary.ns += t->span_ns;
	t->summary.stop[task->stop < STOP_MAX ? task->stop : 0] += t->span_ns;
	return err;
}

/* Once a process. */
static struct error *warn(struct wait_tasks *t, struct error *why)
{
	u64 number = t->process->number, key = XXH3_64bits(&number, sizeof(number)) | 1;

	if (table_get(&t->warned, key) || t->warned.used >= WARNED_MAX) {
		error_free(why);
		return NULL;
	}
	t->host->options->warn(t->host->options->ctx, why);
	return table_put(&t->warned, key, 1);
}

static struct error *look_at(struct wait_tasks *t, struct process *p)
{
	struct runtime_process view = process_view(p);
	struct error *err = NULL;

	t->process = p;
	for (u32 i = 0; !err && !p->dead && i < p->ninstances; i++) {
		t->runtime = p->instances[i].ops;
		t->ops = t->runtime->tasks;
		if (!t->ops || !p->instances[i].data)
			continue;
		err = t->ops->list(p->instances[i].data, &view, add, t);
		if (err && err != &error_no_memory)
			err = warn(t, err);
	}
	return err;
}

/* At random, so that it does not keep in step with a program that does something each 20 ms. */
static u64 pause_of(const struct wait_tasks *t, u64 cost_ns)
{
	double percent = t->host->options->cpu_percent / 2;
	u64 each = percent > 0 ? (u64)((double)cost_ns * 100 / percent) : 0;

	each = each < EACH_NS ? EACH_NS : each > EACH_MAX ? EACH_MAX : each;
	return each / 2 + (u64)((double)each * drand48());
}

struct error *wait_tasks_poll(struct wait_tasks *t, u64 now, bool last)
{
	u64 before = thread_cpu_ns();
	struct error *err = NULL;

	if (!t->began_ns || (now < t->next_ns && !last))
		return NULL;
	t->span_ns = now > t->last_ns ? now - t->last_ns : 0;
	t->last_ns = now;
	for (u32 i = 0; !err && i < t->host->targets->nprocesses; i++)
		err = look_at(t, t->host->targets->processes[i]);
	t->summary.looks++;
	t->next_ns = now_ns() + pause_of(t, thread_cpu_ns() - before);
	return err;
}

u64 wait_tasks_due(const struct wait_tasks *t)
{
	return t->next_ns;
}

void wait_tasks_drain(struct wait_tasks *t, u32 epoch)
{
	for (size_t i = 0; i < t->counts.capacity; i++)
		if (t->counts.entries[i].key)
			collector_count(
			        t->host->collector, epoch, t->counts.entries[i].key, t->counts.entries[i].value, 0);
	table_clear(&t->counts);
}

const struct wait_tasks_summary *wait_tasks_summary(const struct wait_tasks *t)
{
	return &t->summary;
}
