/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <stdlib.h>
#include <time.h>

#include "event_command.h"
#include "loss.h"
#include "unwind/cfi/cfi.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/process/children.h"

void run_defaults(struct run_request *ret)
{
	*ret = (struct run_request){.sampler = {.event = events[0],
	                                    .frequency = 99,
	                                    .duration_s = -1,
	                                    .depth = 1024,
	                                    .cpu_percent = 10,
	                                    .cache_dir = cfi_default_cache()}};
}

struct error *run_choose(struct run_request *r, const struct event_ops *event)
{
	const struct event_command *c = event->command_line;
	void *own;

	if (r->sampler.event == event && (r->own || !c || !c->size))
		return NULL;
	own = c && c->size ? calloc(1, c->size) : NULL;
	if (c && c->size && !own)
		return &error_no_memory;
	free(r->own);
	r->own = own;
	r->sampler.event = event;
	r->sampler.of_event = own;
	return NULL;
}

struct error *run_option(struct run_request *r, int key, const char *argument, bool *taken)
{
	const struct event_command *c = r->sampler.event->command_line;
	bool also = false;
	struct error *err = NULL;

	*taken = false;
	if (c && c->own)
		err = settings_apply(c->own, key, argument, r->own, taken);
	if (!err && c && c->run)
		err = settings_apply(c->run, key, argument, r, &also);
	*taken |= also;
	return err || *taken || !c || !c->option ? err : c->option(r, key, argument, taken);
}

bool run_add_pid(struct run_request *r, pid_t pid)
{
	for (int i = 0; i < r->npids; i++)
		if (r->pids[i] == pid)
			return true;
	if (grow(&r->pids, r->npids, sizeof(*r->pids)))
		return false;
	r->pids[r->npids++] = pid;
	return true;
}

struct error *run_add_children(struct run_request *r)
{
	r->nasked = r->npids;
	for (int i = 0; r->sampler.follow && i < r->npids; i++) {
		cleanup(free) pid_t *children = NULL;
		u32 n;
		struct error *err = children_list(r->pids[i], &children, &n);

		if (err)
			return err;
		for (u32 k = 0; k < n; k++)
			if (!run_add_pid(r, children[k]))
				return &error_no_memory;
	}
	return NULL;
}

static void refuse(const struct run_request *r, struct error *err, bool asked)
{
	if (r->refused)
		r->refused(r->sampler.ctx, err, asked);
	else
		error_free(err);
}

struct error *run_attach(struct sampler *s, const struct run_request *r, enum error_kind *refused)
{
	bool more = r->sampler.selection != NULL; /* may come */
	int attached = 0;

	*refused = 0;
	if (r->command)
		return sampler_start_command(s, r->command);
	for (int i = 0; i < r->npids; i++) {
		bool asked = i < r->nasked;
		struct error *err = sampler_attach(s, r->pids[i], r->npids == 1);

		attached += !err;
		if (!err)
			continue;
		if (asked && !attached && i == r->npids - 1 && (!more || r->npids == 1))
			return err;
		if (asked && err->kind != ERROR_NO_PROCESS) /* one that has ended needs nobody's help */
			*refused = err->kind;
		if (asked || err->kind != ERROR_NO_PROCESS) /* a child that was found may be gone by now */
			refuse(r, err, asked);
		else
			error_free(err);
	}
	return NULL;
}

void run_free(struct run_request *r)
{
	free(r->pids);
	free(r->own);
	r->pids = NULL;
	r->own = NULL;
	r->npids = 0;
}

static const char *second_unit(const struct run_request *r)
{
	const struct event_ops *event = r->sampler.event;
	const char *unit = event->command_line && event->command_line->more ? event->command_line->more(r->own) : NULL;

	return unit ? unit : event->more;
}

static void fill_meta(const struct run_request *r, struct run_result *ret)
{
	struct profile_meta *meta = &ret->profile->meta;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	meta->target = sampler_target(ret->sampler);
	meta->unit = r->sampler.event->unit;
	meta->more = second_unit(r);
	meta->frequency = r->sampler.event->rated ? r->sampler.frequency : 0;
	meta->duration_ns = (u64)(ret->stats.duration_s * 1e9);
	meta->start_unix_ns = (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec - meta->duration_ns;
	meta->loss = ret->loss = loss_line(&ret->stats);
	meta->stats = ret->stats_text = stats_text(&ret->stats);
}

/* What there is becomes the result. */
static void take(const struct run_request *r, struct run_result *ret)
{
	ret->profile = sampler_profile(ret->sampler);
	ret->runtimes = sampler_runtimes(ret->sampler);
	fill_meta(r, ret);
	if (r->second)
		profile_swap(ret->profile);
	profile_finish(ret->profile);
}

struct error *run_profile(struct run_request *r, struct run_result *ret)
{
	static volatile sig_atomic_t never;
	const struct event_command *c = r->sampler.event->command_line;
	struct error *err;

	*ret = (struct run_result){0};
	r->sampler.no_kernel |= c && c->no_kernel;
	err = sampler_create(&r->sampler, &ret->sampler);
	if (!err)
		err = run_add_children(r);
	if (!err)
		err = run_attach(ret->sampler, r, &ret->refused);
	if (err)
		return err;
	if (r->begins)
		r->begins(r->sampler.ctx);
	err = sampler_run(ret->sampler, r->stop ? r->stop : &never);
	if (r->ended)
		r->ended(r->sampler.ctx);
	sampler_stats(ret->sampler, &ret->stats);
	if (!err || ret->stats.probe.weights)
		take(r, ret);
	return err;
}

void run_result_free(struct run_result *r)
{
	sampler_destroy(r->sampler);
	free(r->loss);
	free(r->stats_text);
	*r = (struct run_result){0};
}
