/* SPDX-License-Identifier: Apache-2.0 */
#include "y_stacks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "probes/hit/hit_arguments.h"
#include "probes/hit/hit_callees.h"
#include "probes/hit/hit_find.h"
#include "probes/hit/hit_latency.h"
#include "probes/object.h"
#include "probes/run.h"
#include "probes/sampler.h"
#include "probes/uprobe.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/profile/collect.h"
#include "unwind/table.h"
#include "unwind/thread_start.h"
#include "y_probe.h"

#define DEPTH_MOST 512 /* frames in a text */
#define PENDING    Y_KINDS
#define STACKS     (Y_KINDS + 1)
#define HANDLERS   (Y_KINDS + 2)
#define ARGUMENTS  (Y_KINDS + 3)
#define FDS        (Y_KINDS + 4)

struct y_stacks {
	struct run_request request;
	struct run_result result;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ready, over;
	volatile sig_atomic_t stop;
	struct error *error;
	const struct event_host *host;
	const struct y_object *object;
	struct hit_options calls; /* n 0: no function of a language is watched */
	struct hit_callees *callees;
	struct hit_latency *latency; /* NULL: nothing is done where they return */
	bool wanted;                 /* arguments */
	struct hit_arguments *arguments;
	void (*warn)(void *ctx, struct error *err);
	void *ctx;
	int fds[FDS]; /* of its own, as the run may end before: tables, pending, stacks, handlers */
	u64 lost;
	struct table by_hash, by_text; /* 1 + number of a text */
	struct y_stack_text *texts;
	u32 (*nodes)[2]; /* of each, in the run's profile: of the whole, of the thread's own frames */
	u32 ntexts;
};

/* --- the event, in the run's thread --- */

static void prepare(struct object *o)
{
	struct sample *skel = object_skeleton(o);
	const struct y_stacks *s = object_of_event(o);
	u32 wanted = s->object->stacks;

	if (wanted & 1u << Y_OF_CODE) {
		object_want(o, "on_y");
		uprobe_prepare(skel->progs.on_y);
		uprobe_prepare(skel->progs.on_y_walk);
	}
	if (wanted & 1u << Y_OF_KERNEL)
		object_want(o, "on_y_point");
	if (wanted & 1u << Y_OF_CLOCK)
		object_want(o, "on_y_tick");
	if (wanted & 1u << Y_OF_CALL)
		object_want(o, "on_y_call");
	if (s->calls.n) {
		hit_callees_prepare(o, &s->calls);
		bpf_map__set_max_entries(skel->maps.y_handlers, s->object->nhandlers + 1);
		skel->bss->y_values_at = s->object->nhandlers;
	}
	if (s->wanted) {
		hit_arguments_prepare(o, false, false);
		object_want(o, "on_y_values");
	}
	if (s->calls.returns)
		hit_latency_prepare_counts(o, &s->calls);
	bpf_map__set_max_entries(skel->maps.y_pendings, Y_PENDING);
	bpf_map__set_max_entries(skel->maps.y_stacks, Y_STACKS_MOST);
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct y_stacks *s = (struct y_stacks *)host->options->of_event;
	struct error *err = NULL;

	s->host = host;
	*ret = s;
	if (s->calls.returns)
		err = hit_latency_create(host, &s->calls, NULL, &s->latency);
	if (!err && s->wanted)
		err = hit_arguments_create(host, &s->arguments);
	if (!err && s->calls.n)
		err = hit_callees_create(host, &s->calls, s->latency, s->arguments, &s->callees);
	return err;
}

static void destroy(void *event)
{
	struct y_stacks *s = event;

	pthread_mutex_lock(&s->lock);
	s->host = NULL;
	pthread_mutex_unlock(&s->lock);
	hit_callees_destroy(s->callees);
	hit_latency_destroy(s->latency);
	hit_arguments_destroy(s->arguments);
	s->arguments = NULL;
	s->callees = NULL;
	s->latency = NULL;
}

static void tell(struct y_stacks *s, bool *what)
{
	pthread_mutex_lock(&s->lock);
	*what = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* All of them must be there, and watched all the time. */
static struct error *watch(struct y_stacks *s)
{
	struct error *err = hit_callees_poll(s->callees, now_ns());

	for (u32 i = 0; !err && i < s->calls.n; i++)
		if (!hit_callees_found(s->callees, i))
			err = hit_callees_missing(s->callees, i);
	if (!err && hit_callees_turns(s->callees) > 1)
		err = error_hint(error_new(ERROR_UNSUPPORTED, "a thread has four debug registers, and the program's "
		                                              "functions of languages need more"),
		        "a call takes one register; where it returns is watched too, that takes up to three more");
	return err;
}

/* Calls whose arguments are wanted go by there to their handlers. */
static struct error *take_values(struct y_stacks *s)
{
	int program = object_program(s->host->object, "on_y_values");
	u32 at = s->object->nhandlers;

	return bpf_map_update_elem(
	               bpf_map__fd(object_skeleton(s->host->object)->maps.y_handlers), &at, &program, BPF_ANY)
	               ? error_new(ERROR_INTERNAL, "the kernel takes no reader of arguments")
	               : NULL;
}

static struct error *start(void *event, bool at_exec)
{
	struct y_stacks *s = event;
	const struct sample *skel = object_skeleton(s->host->object);
	struct error *err = s->callees ? watch(s) : NULL;

	const int maps[] = {bpf_map__fd(skel->maps.on_y_now), bpf_map__fd(skel->maps.on_y_point_now),
	        bpf_map__fd(skel->maps.on_y_tick_now), bpf_map__fd(skel->maps.on_y_call_now),
	        bpf_map__fd(skel->maps.y_pendings), bpf_map__fd(skel->maps.y_stacks),
	        bpf_map__fd(skel->maps.y_handlers), bpf_map__fd(skel->maps.y_arguments)};

	if (!err && s->wanted)
		err = take_values(s);
	if (err)
		return err;
	for (u32 i = 0; i < FDS; i++)
		if (i >= Y_KINDS ? i < HANDLERS || s->calls.n : s->object->stacks & 1u << i)
			s->fds[i] = dup(maps[i]);
	object_take_ticks(s->host->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	tell(s, &s->ready);
	return NULL;
}

static struct error *poll(void *event, u64 now)
{
	struct y_stacks *s = event;

	return s->callees ? event_goes_on(s->host, hit_callees_poll(s->callees, now)) : NULL;
}

static bool urgent(void *event, const void *data, size_t size)
{
	struct y_stacks *s = event;

	if (!s->callees || size != sizeof(struct callee_change))
		return false;
	hit_callees_record(s->callees, data);
	return true;
}

static struct error *stop(void *event)
{
	struct y_stacks *s = event;

	object_take_ticks(s->host->object, TICKS_IGNORED);
	if (s->callees && s->ready)
		hit_callees_end(s->callees);
	s->lost = object_skeleton(s->host->object)->bss->y_stacks_lost;
	return NULL;
}

static u32 parent_beyond_kernel(const struct profile *p, u32 node)
{
	while (node && p->functions[p->nodes[node].function].kind == KIND_KERNEL)
		node = p->nodes[node].parent;
	return node;
}

/* own: the innermost frame that is not the kernel's. */
static struct y_stack_text text_of(const struct profile *p, u32 node, u32 own)
{
	u32 nodes[DEPTH_MOST], n = 0;
	struct y_stack_text ret = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (; node && n < DEPTH_MOST; node = p->nodes[node].parent)
		nodes[n++] = node;
	for (u32 i = n; out && i--;) {
		fprintf(out, "%s%s", i + 1 < n ? ";" : "", p->functions[p->nodes[nodes[i]].function].name);
		if (nodes[i] == own)
			ret.user = (u32)ftell(out);
	}
	ret.kernel = ret.user + (ret.user != 0);
	if (out && fclose(out)) {
		free(text);
		return ret;
	}
	ret.text = text;
	ret.kernel = ret.kernel < size ? ret.kernel : (u32)size;
	return ret;
}

static struct error *keep(struct y_stacks *s, u64 hash, struct y_stack_text text, u32 node, u32 own)
{
	struct error *err = text.text ? grow(&s->texts, s->ntexts, sizeof(*s->texts)) : &error_no_memory;

	if (!err)
		err = grow(&s->nodes, s->ntexts, sizeof(*s->nodes));
	if (!err)
		err = table_put(&s->by_hash, hash, s->ntexts + 1);
	if (!err)
		err = table_put(&s->by_text, XXH3_64bits(text.text, text.user), 2 * s->ntexts + 2);
	if (!err)
		err = table_put(&s->by_text, XXH3_64bits(text.text, strlen(text.text)), 2 * s->ntexts + 1);
	if (err) {
		free((char *)text.text);
		return err;
	}
	s->nodes[s->ntexts][0] = node;
	s->nodes[s->ntexts][1] = own;
	s->texts[s->ntexts++] = text;
	return NULL;
}

static struct error *stack(void *event, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct y_stacks *s = event;
	const struct profile *p = collector_profile(s->host->collector);
	struct error *err;
	u32 node, own;

	if (table_get(&s->by_hash, record->hash))
		return NULL;
	err = collector_place(s->host->collector, record, frames, n, NULL, &node);
	if (err || node == COLLECTOR_FILTERED)
		return err;
	own = parent_beyond_kernel(p, node);
	pthread_mutex_lock(&s->lock);
	err = keep(s, record->hash, text_of(p, node, own), node, own);
	pthread_mutex_unlock(&s->lock);
	return err;
}

static void stats(void *event, struct sampler_stats *st)
{
}

const struct event_ops y_event = {
        .name = "y",
        .topic = TOPIC_CALLS,
        .summary = "stacks of a Y program's handlers",
        .unit = "hits",
        .slots = 4,
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .poll = poll,
        .urgent = urgent,
        .stop = stop,
        .leads_to_program = hit_leads_to_program,
        .stack = stack,
        .stats = stats,
};

/* --- the run --- */

static void *run(void *ctx)
{
	struct y_stacks *s = ctx;
	struct error *err = run_profile(&s->request, &s->result);

	pthread_mutex_lock(&s->lock);
	s->error = err;
	pthread_mutex_unlock(&s->lock);
	tell(s, &s->over);
	return NULL;
}

/* What -e of `yrt probe` would have refused is the handler's. */
static struct error *of_handler(struct error *err, const struct y_object *object)
{
	for (u32 i = 0; err != &error_no_memory && i < object->nhandlers; i++) {
		const struct y_object_handler *h = &object->handlers[i];
		size_t len = strlen(h->spec);

		if (h->kind == Y_OF_CALL && !strncmp(err->message, "-e ", 3) &&
		        !strncmp(err->message + 3, h->spec, len) && err->message[3 + len] == ':')
			return y_probe_at(err, h);
	}
	return err;
}

/* What the run says of stacks nobody asked for; of functions everybody. */
static void warn(void *ctx, struct error *err)
{
	struct y_stacks *s = ctx;

	if (s->calls.n)
		s->warn(s->ctx, of_handler(err, s->object));
	else
		error_free(err);
}

/* The handlers of calls, each at its function. */
static struct error *add_calls(struct y_stacks *s, const struct y_object *object)
{
	struct hit_options *c = &s->calls;
	struct error *err = NULL;

	c->handled = true;
	for (u32 i = 0; !err && i < object->nhandlers; i++) {
		const struct y_object_handler *h = &object->handlers[i];
		u32 spec = 0;

		if (h->kind != Y_OF_CALL)
			continue;
		while (spec < c->n && strcmp(c->spec[spec].text, h->spec) != 0)
			spec++;
		if (spec == c->n)
			err = hit_add(c, h->spec);
		if (!err && c->handler[spec][h->returns])
			err = error_new(ERROR_USAGE, "-e %s: it has a handler already, at line %u", h->spec,
			        object->handlers[c->handler[spec][h->returns] - 1].line);
		if (err)
			break;
		c->handler[spec][h->returns] = i + 1;
		if (h->nwanted) {
			c->wanted[spec] = h->wanted;
			c->nwanted[spec] = h->nwanted;
			s->wanted = true;
		}
		c->returns |= h->returns;
	}
	return err;
}

struct error *y_stacks_start(pid_t pid, const struct y_object *object, void (*warn_of)(void *ctx, struct error *err),
        void *ctx, struct y_stacks **ret)
{
	struct y_stacks *s = calloc(1, sizeof(*s));
	struct error *err = s ? NULL : &error_no_memory;

	*ret = NULL;
	if (!s)
		return err;
	s->object = object;
	s->warn = warn_of;
	s->ctx = ctx;
	for (u32 i = 0; i < FDS; i++)
		s->fds[i] = -1;
	err = add_calls(s, object);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	run_defaults(&s->request);
	s->request.sampler.event = &y_event;
	s->request.sampler.of_event = s;
	s->request.sampler.duration_s = 0;
	s->request.sampler.warn = warn;
	s->request.sampler.ctx = s;
	s->request.sampler.cpu_percent = 0; /* handlers see all calls */
	s->request.stop = &s->stop;
	s->request.sampler.everyone = !pid;
	if (!err && pid && !run_add_pid(&s->request, pid))
		err = &error_no_memory;
	s->request.nasked = pid != 0;
	if (!err && thread_start(&s->thread, NULL, run, s))
		err = error_new(ERROR_INTERNAL, "no thread for stacks can be started");
	if (err) {
		s->over = true;
		run_free(&s->request);
		free(s);
		return of_handler(err, object);
	}
	pthread_mutex_lock(&s->lock);
	while (!s->ready && !s->over)
		pthread_cond_wait(&s->changed, &s->lock);
	err = s->ready ? NULL : TAKE(s->error);
	pthread_mutex_unlock(&s->lock);
	if (!s->ready) {
		y_stacks_free(s);
		return err ? of_handler(err, object) : error_new(ERROR_NO_PROCESS, "process %d has ended", (int)pid);
	}
	*ret = s;
	return NULL;
}

void y_stacks_open(struct y_stacks *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->host)
		object_skeleton(s->host->object)->bss->y_handlers_run = 1;
	pthread_mutex_unlock(&s->lock);
}

void y_stacks_stop(struct y_stacks *s)
{
	if (s->stop)
		return;
	s->stop = 1;
	pthread_join(s->thread, NULL);
}

void y_stacks_free(struct y_stacks *s)
{
	if (!s)
		return;
	y_stacks_stop(s);
	run_result_free(&s->result);
	s->request.own = NULL;
	run_free(&s->request);
	for (u32 i = 0; i < s->ntexts; i++)
		free((char *)s->texts[i].text);
	free(s->texts);
	free(s->nodes);
	table_free(&s->by_hash);
	table_free(&s->by_text);
	error_free(s->error);
	for (u32 i = 0; i < FDS; i++)
		if (s->fds[i] >= 0)
			close(s->fds[i]);
	free(s);
}

/* --- data --- */

void y_stacks_maps(const struct y_stacks *s, int *pending, int tables[Y_KINDS], int *handlers, int *arguments)
{
	*arguments = s->fds[ARGUMENTS];
	*pending = s->fds[PENDING];
	*handlers = s->fds[HANDLERS];
	memcpy(tables, s->fds, Y_KINDS * sizeof(*tables));
}

struct y_stack_text y_stacks_text(struct y_stacks *s, u64 hash)
{
	struct y_stack_text text = {0};
	const u64 *number;

	pthread_mutex_lock(&s->lock);
	number = table_get(&s->by_hash, hash);
	if (number)
		text = s->texts[*number - 1];
	pthread_mutex_unlock(&s->lock);
	return text;
}

void y_stacks_weigh(struct y_stacks *s, const char *text, size_t len, u64 weight)
{
	const u64 *number = table_get(&s->by_text, XXH3_64bits(text, len));
	u32 which = number ? (u32)*number - 1 : 0;

	if (number && s->result.profile && (s64)weight > 0)
		profile_add(s->result.profile, s->nodes[which / 2][which % 2], weight);
}

struct profile *y_stacks_profile(struct y_stacks *s)
{
	if (s->result.profile)
		profile_finish(s->result.profile);
	return s->result.profile;
}

bool y_stacks_next(struct y_stacks *s, const struct y_stack_key *key, struct y_stack_key *ret)
{
	return !bpf_map_get_next_key(s->fds[STACKS], key, ret);
}

bool y_stacks_get(struct y_stacks *s, const struct y_stack_key *key, struct y_stack_total *ret)
{
	return !bpf_map_lookup_elem(s->fds[STACKS], key, ret);
}

void y_stacks_delete(struct y_stacks *s, const struct y_stack_key *key)
{
	bpf_map_delete_elem(s->fds[STACKS], key);
}

u64 y_stacks_lost(struct y_stacks *s)
{
	return s->lost;
}
