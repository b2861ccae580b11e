/* SPDX-License-Identifier: Apache-2.0 */
#include "core_threads.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/binary/core_file.h"

static int by_tid(const void *a, const void *b)
{
	const struct thread_record *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

struct error *core_threads(const struct core_file *core, struct thread_list *ret)
{
	*ret = (struct thread_list){.items = calloc(core->nthreads, sizeof(*ret->items)), .n = core->nthreads};
	for (u32 i = 0; ret->items && i < core->nthreads; i++) {
		const struct core_thread *t = &core->threads[i];
		struct thread_record *r = &ret->items[i];

		*r = (struct thread_record){.tgid = core->pid,
		        .tid = t->tid,
		        .own_tid = t->tid,
		        .flags = THREAD_IN_CORE | (core->signal && t->tid == core->killed ? THREAD_KILLED : 0),
		        .syscall = t->at.syscall,
		        .thread_pointer = t->at.thread_pointer};
		memcpy(r->arguments, t->at.arguments, sizeof(r->arguments));
		memcpy(r->reg, t->at.reg, sizeof(r->reg));
		memcpy(r->comm, core->comm, sizeof(r->comm));
	}
	if (!ret->items)
		return &error_no_memory;
	qsort(ret->items, ret->n, sizeof(*ret->items), by_tid);
	return NULL;
}
