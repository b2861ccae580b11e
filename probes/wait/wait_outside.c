/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_outside.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "probes/object.h"
#include "probes/sampler.h"
#include "unwind/binary/memory.h"
#include "unwind/process/accepted.h"
#include "unwind/process/process.h"
#include "unwind/process/switches.h"
#include "unwind/unwind.h"
#include "wait_record.h"

#define FRAMES_MAX (33 * CHUNK_FRAMES)

struct wait_walker {
	const struct event_host *host;
	struct accepted *accepted;
	struct stack_record record;
	struct frame frames[FRAMES_MAX];
};

struct wait_walker *wait_walker_create(const struct event_host *host)
{
	struct wait_walker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->host = host;
	w->accepted = accepted_create();
	if (!w->accepted) {
		free(w);
		return NULL;
	}
	return w;
}

void wait_walker_destroy(struct wait_walker *w)
{
	if (w)
		accepted_destroy(w->accepted);
	free(w);
}

/* As wait_polled() and wait_selected() of BPF, which can not read the memory of a thread that sleeps. */
static enum wait_file polled(const struct wait_walker *w, const struct process *p, const struct wait_thread *t)
{
	struct pollfd all[WAIT_POLLED];
	u64 n = t->reg[DWREG_RSI] < WAIT_POLLED ? t->reg[DWREG_RSI] : WAIT_POLLED;

	if (!memory_read(p->memory, all, n * sizeof(*all), t->reg[DWREG_RDI]))
		return WAIT_NO_FILE;
	for (u64 i = 0; i < n; i++) {
		enum hears hears =
		        all[i].events & POLLIN ? accepted_hears(w->accepted, (pid_t)t->tgid, all[i].fd) : HEARS_OTHERS;

		if (hears)
			return hears == HEARS_CLIENT && n == 1 ? WAIT_CLIENT : WAIT_SERVER;
	}
	return WAIT_NO_FILE;
}

static enum wait_file selected(const struct wait_walker *w, const struct process *p, const struct wait_thread *t)
{
	u64 n = t->reg[DWREG_RDI];
	u32 wanted = 0;

	if (!memory_read(p->memory, &wanted, sizeof(wanted), t->reg[DWREG_RSI]))
		return WAIT_NO_FILE;
	for (int fd = 0; fd < WAIT_SELECTED && (u64)fd < n; fd++)
		if (wanted >> fd & 1 && accepted_hears(w->accepted, (pid_t)t->tgid, fd))
			return WAIT_SERVER;
	return WAIT_NO_FILE;
}

static enum wait_file file_of_memory(const struct wait_walker *w, const struct process *p, const struct wait_thread *t)
{
	s64 call = (s64)(t->reason & 0xffff) - 1;

	if (t->reason >> 24 != WAIT_BLOCKED)
		return WAIT_NO_FILE;
	return wait_is_poll(call) ? polled(w, p, t) : wait_is_select(call) ? selected(w, p, t) : WAIT_NO_FILE;
}

/* Has the thread not run since, by its count of switches? */
static bool is_still(const struct wait_thread *t)
{
	struct switches now;

	return switches_read(t->tgid, t->tid, &now) && now.voluntary + now.others == t->switches;
}

/* Frames of a thread that sleeps, walked from outside. */
static u32 walk(struct wait_walker *w, const struct process *p, const struct wait_thread *t, u32 *stop)
{
	struct unwind_registers regs = {.thread_pointer = t->thread_pointer, .probes = &t->probes};
	u32 n = 0, user = 0, file = (u32)file_of_memory(w, p, t) << 16;

	memcpy(regs.reg, t->reg, sizeof(regs.reg));
	w->frames[n++] = (struct frame){
	        .where = frame_where(FRAME_REASON, RUNTIME_NATIVE, 0, t->object), .detail = t->reason | file};
	for (u32 i = 0; i < WAIT_KERNEL_FRAMES && t->kernel[i]; i++)
		w->frames[n++] =
		        (struct frame){.where = frame_where(FRAME_KERNEL, RUNTIME_NATIVE, FRAME_RETADDR, t->kernel[i])};
	*stop = w->host->options->no_user
	                ? STOP_ROOT
	                : unwind_stack(p, &regs, w->frames + n,
	                          w->host->options->depth < FRAMES_MAX - n ? w->host->options->depth : FRAMES_MAX - n,
	                          &user);
	return n + user;
}

/* As if BPF had sent it. */
static void put_stack(struct wait_walker *w, const struct wait_thread *t, u64 hash, u32 n, u32 stop)
{
	struct stack_record *r = &w->record;

	for (u32 i = 0; i * CHUNK_FRAMES <= n; i++) {
		u32 rest = n - i * CHUNK_FRAMES;

		*r = (struct stack_record){.type = RECORD_STACK,
		        .nframes = rest < CHUNK_FRAMES ? rest : CHUNK_FRAMES,
		        .hash = hash,
		        .instance = t->instance,
		        .tgid = t->tgid,
		        .tid = t->tid,
		        .stop = (u16)stop,
		        .first = (u16)i,
		        .last = rest <= CHUNK_FRAMES,
		        .epoch = (u16)object_epoch(w->host->object)};
		memcpy(r->comm, t->comm, sizeof(r->comm));
		memcpy(r->frame, w->frames + i * CHUNK_FRAMES, r->nframes * sizeof(*r->frame));
		w->host->put(w->host->ctx, r, offsetof(struct stack_record, frame) + r->nframes * sizeof(*r->frame));
		if (r->last)
			break;
	}
}

bool wait_walk_thread(struct wait_walker *w, const struct process *p, const struct wait_thread *t, u64 hash, u32 *stop)
{
	u32 n = walk(w, p, t, stop);

	if (!is_still(t))
		return false;
	put_stack(w, t, hash, n, *stop);
	return true;
}

void wait_put_birth(struct wait_walker *w, const struct wait_thread *t, u64 hash)
{
	w->frames[0] = (struct frame){.where = frame_where(FRAME_REASON, RUNTIME_NATIVE, 0, 0), .detail = t->reason};
	put_stack(w, t, hash, 1, STOP_ROOT);
}
