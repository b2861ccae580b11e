/* SPDX-License-Identifier: Apache-2.0 */
#include "hit.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hit_arguments.h"
#include "hit_callees.h"
#include "hit_calls.h"
#include "hit_exits.h"
#include "hit_find.h"
#include "hit_latency.h"
#include "hit_missing.h"
#include "hit_price.h"
#include "hit_shifts.h"
#include "latency.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "probes/uprobe.h"
#include "probes/wait/wait_reason.h"
#include "probes/wait/wait_record.h"
#include "probes/y/y.h"
#include "sample.skel.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/profile/names.h"
#include "unwind/runtime_tasks.h"

#define TURNS_MAX   4096          /* threads that are about to begin a turn */
#define PARK_SPEC   HIT_SPECS_MAX /* is placed as if it were one more -e */
#define COST_SPREAD 1.5           /* a hit may cost the target so much more than it costs yrt */

struct placed { /* stays where the process executes another program */
	pid_t pid;
	u32 spec;
	dev_t dev;
	ino_t ino;
};

struct looked { /* a process as it was looked at last */
	u32 process;
	u64 maps_hash;
};

struct hit {
	const struct event_host *host;
	const struct hit_options *options;
	struct bpf_link *tracepoint;
	struct hit_shifts *shifts;
	struct hit_callees *callees;     /* NULL: no spec means a function of a language */
	struct hit_arguments *arguments; /* NULL: they are not told */
	struct placed *placed;
	u32 nplaced;
	struct looked *looked;
	u32 nlooked;
	bool started;
	struct hit_latency *latency; /* NULL: hits are counted */
	struct hit_calls *calls;     /* the same */
	struct hit_price *price;     /* the same */
	s64 cpu_at_start, cpu_at_stop;
	u64 started_ns, stopped_ns;
	struct hit_jumps jumps;
	u32 found[HIT_SPECS_MAX];    /* places of each spec */
	bool told[HIT_SPECS_MAX];    /* that several functions have its name */
	bool matched[HIT_SPECS_MAX]; /* a file of that name was there */
	char where[HIT_SPECS_MAX][128];
	struct hit_summary summary;
};

static const struct hit_options *shown;  /* of the run, for words of reasons */
static const struct hit_arguments *told; /* the same, of objects */

struct error *hit_add(struct hit_options *o, const char *text)
{
	struct error *err;

	if (o->n == HIT_SPECS_MAX)
		return error_new(ERROR_USAGE, "-e can be given %d times", HIT_SPECS_MAX);
	err = hit_parse(text, &o->spec[o->n]);
	for (u32 i = 0; !err && i < o->n; i++)
		if (o->spec[i].kind == HIT_TRACEPOINT && o->spec[o->n].kind == HIT_TRACEPOINT)
			err = error_new(
			        ERROR_USAGE, "-e takes one tracepoint, not both %s and %s", o->spec[i].text, text);
	o->n += !err;
	return err;
}

static bool has_kind(const struct hit_options *o, bool tracepoint)
{
	for (u32 i = 0; i < o->n; i++)
		if ((o->spec[i].kind == HIT_TRACEPOINT) == tracepoint)
			return true;
	return false;
}

static bool has_language(const struct hit_options *o)
{
	for (u32 i = 0; i < o->n; i++)
		if (o->spec[i].language)
			return true;
	return false;
}

/* "python:PyObject_Call" may be a function of a file, too. */
static bool may_be_in_file(const struct hit_spec *s)
{
	return !s->language || !strpbrk(s->name, ".:*");
}

static bool has_files(const struct hit_options *o)
{
	for (u32 i = 0; i < o->n; i++)
		if (may_be_in_file(&o->spec[i]))
			return true;
	return false;
}

bool hit_wants_arguments(const struct hit_options *o)
{
	for (u32 i = 0; i < o->n; i++)
		if (o->nwanted[i])
			return true;
	return false;
}

static bool has_key(const struct hit_options *o)
{
	for (u32 i = 0; i < o->n; i++)
		if (o->key[i])
			return true;
	return false;
}

/* Of the functions of a language, or what a key says: all calls', those of slow ones, or what conditions ask for. */
static bool has_arguments(const struct hit_options *o)
{
	return (has_language(o) || has_key(o)) && (o->arguments || o->over_ns || hit_wants_arguments(o));
}

static void prepare_conditions(struct object *o, const struct hit_options *options)
{
	struct sample *skel = object_skeleton(o);

	bpf_map__set_max_entries(skel->maps.y_pendings, Y_PENDING);
	if (has_language(options)) {
		object_want(o, "on_callee_if");
		bpf_map__set_max_entries(skel->maps.y_handlers, HIT_SPECS_MAX + 1);
		skel->bss->y_values_at = HIT_SPECS_MAX;
	}
	if (hit_wants_arguments(options))
		object_want(o, "on_y_values");
	if (!has_files(options))
		return;
	object_want(o, options->returns ? "on_enter_if" : "on_hit_if");
	object_want(o, "on_hit_ask");
	uprobe_prepare(skel->progs.on_hit_ask);
	uprobe_prepare(skel->progs.on_hit_if);
	uprobe_prepare(skel->progs.on_hit_if_walk);
	uprobe_prepare(skel->progs.on_enter_if);
	uprobe_prepare(skel->progs.on_enter_if_walk);
	bpf_map__set_max_entries(skel->maps.hit_ifs, HIT_SPECS_MAX);
	skel->bss->hit_asks = 1;
}

static void prepare(struct object *o)
{
	const struct hit_options *options = object_of_event(o);

	if (has_language(options))
		hit_callees_prepare(o, options);
	if (has_arguments(options))
		hit_arguments_prepare(o, !options->returns, options->returns);
	if (has_language(options) && has_key(options))
		object_want(o, "on_callee_fields");
	if (options->conditions)
		prepare_conditions(o, options);
	if (options->returns) {
		if (has_files(options))
			hit_latency_prepare(o, options);
		else
			hit_latency_prepare_counts(o, options);
		return;
	}
	if (has_kind(options, true))
		object_want(o, "on_tracepoint");
	if (!has_kind(options, false))
		return;
	object_want(o, "on_hit");
	object_want(o, "on_turn");
	uprobe_prepare(object_skeleton(o)->progs.on_hit);
	uprobe_prepare(object_skeleton(o)->progs.on_hit_walk);
	uprobe_prepare(object_skeleton(o)->progs.on_turn);
	hit_latency_prepare_jumps(o);
	bpf_map__set_max_entries(object_skeleton(o)->maps.hit_turns, TURNS_MAX);
}

static void destroy(void *event)
{
	struct hit *h = event;

	if (!h)
		return;
	hit_shifts_destroy(h->shifts);
	hit_callees_destroy(h->callees);
	hit_arguments_destroy(h->arguments);
	free(h->summary.calls);
	told = NULL;
	hit_latency_destroy(h->latency);
	hit_calls_destroy(h->calls);
	hit_price_destroy(h->price);
	bpf_link__destroy(h->tracepoint);
	free(h->jumps.of);
	free(h->placed);
	free(h->looked);
	free(h);
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct hit *h = calloc(1, sizeof(*h));
	struct error *err;

	if (!h)
		return &error_no_memory;
	h->host = host;
	h->options = shown = host->options->of_event;
	err = hit_shifts_create(host, &h->shifts);
	if (!err && h->options->returns)
		err = hit_calls_create(host, h->shifts, &h->calls);
	if (!err && h->options->returns)
		err = hit_latency_create(host, h->options, h->calls, &h->latency);
	if (!err && h->options->returns)
		err = hit_price_create(host, &h->price);
	if (!err && has_arguments(h->options))
		err = hit_arguments_create(host, &h->arguments);
	if (!err && has_language(h->options))
		err = hit_callees_create(host, h->options, h->latency, h->arguments, &h->callees);
	told = h->arguments;
	if (err)
		destroy(h);
	else
		*ret = h;
	return err;
}

static bool is_placed(const struct hit *h, pid_t pid, u32 spec, const struct image *img)
{
	for (u32 i = 0; i < h->nplaced; i++)
		if (h->placed[i].pid == pid && h->placed[i].spec == spec && h->placed[i].dev == img->dev &&
		        h->placed[i].ino == img->ino)
			return true;
	return false;
}

static struct error *mark_placed(struct hit *h, const struct process *p, u32 spec, const struct image *img)
{
	struct error *err = grow(&h->placed, h->nplaced, sizeof(*h->placed));

	if (!err)
		h->placed[h->nplaced++] =
		        (struct placed){.pid = p->pid, .spec = spec, .dev = img->dev, .ino = img->ino};
	return err;
}

/* Where it is left first: a call that is entered then has all of them. */
static struct error *place_exits(struct hit *h, const struct process *p, u32 spec, struct image *img, const char *path,
        const struct hit_found *found)
{
	const struct hit_spec *s = &h->options->spec[spec];
	struct error *err = NULL;

	if (found->usdt)
		return error_new(ERROR_USAGE, "-e %s: a USDT probe has no duration; give a function", s->text);
	for (u32 k = 0; !err && k < found->n; k++) {
		u32 number;

		err = hit_latency_add(h->latency, spec, p, img, found->addr[k], &number);
		if (!err)
			err = hit_calls_place(h->calls, s->text, p, img, path, found->addr[k], number);
	}
	return err;
}

static struct error *place_turn(
        struct hit *h, const struct process *p, struct image *img, const char *path, const struct hit_exit *exit)
{
	struct hit_uprobe u = {.program = object_skeleton(h->host->object)->progs.on_turn, .exit = true};
	struct error *err = NULL;

	if (exit->asks)
		err = hit_latency_jump(h->host->object, &h->jumps, &exit->jump, &u.cookie);
	if (err || !hit_offset(img, exit->jump.at, true, &u.at.offset))
		return err;
	object_skeleton(h->host->object)->bss->hit_has_turns = 1;
	return hit_shifts_place(h->shifts, p, img, path, &u);
}

/* Where a function that is probed goes on at its start. What its code does not tell stays unknown. */
static struct error *place_turns(struct hit *h, const struct process *p, u32 spec, struct image *img, const char *path,
        const struct hit_found *found)
{
	cleanup(free) struct hit_exits *exits = calloc(1, sizeof(*exits));
	struct error *err = exits ? NULL : &error_no_memory;

	for (u32 k = 0; !err && k < found->n; k++) {
		error_free(hit_exits_find(h->options->spec[spec].text, img, found->addr[k], exits));
		for (u32 i = 0; !err && i < exits->n; i++)
			if (exits->of[i].again)
				err = place_turn(h, p, img, path, &exits->of[i]);
	}
	return err;
}

/* What its key reads of the arguments of a function in this file. */
static struct error *add_key(struct hit *h, const struct process *p, u32 spec, const struct image *img, u32 *number)
{
	const u8 *regs = parameter_regs;
	u32 n = sizeof(parameter_regs);

	*number = 0;
	if (!h->arguments || !h->options->key[spec])
		return NULL;
	for (u32 i = 0; i < p->ninstances; i++)
		if (p->instances[i].loaded->image == img && p->instances[i].ops->argument_regs) {
			regs = p->instances[i].ops->argument_regs;
			n = p->instances[i].ops->nargument_regs;
		}
	return hit_arguments_add_native(h->arguments, h->options, spec, regs, n, number);
}

/* Where the i-th that was found begins. */
static struct error *place_entry(struct hit *h, const struct process *p, u32 spec, struct image *img, const char *path,
        const struct hit_found *found, u32 i)
{
	const struct sample *skel = object_skeleton(h->host->object);
	struct bpf_program *entry = h->latency               ? skel->progs.on_enter
	                            : h->options->conditions ? skel->progs.on_hit_ask
	                                                     : skel->progs.on_hit;
	struct hit_uprobe u = {.program = entry, .at = found->place[i]};
	struct error *err = NULL;
	u32 number = 0, key = 0;

	if (h->latency) {
		err = hit_latency_add(h->latency, spec, p, img, found->addr[i], &number);
		u.cookie = (u64)number << LATENCY_FUNCTION;
	} else {
		u.cookie = h->options->n > 1 ? spec + 1 : 0; /* with one, there is no choice of words */
	}
	if (!err)
		err = add_key(h, p, spec, img, &key);
	if (!err)
		err = hit_shifts_place(h->shifts, p, img, path, &u);
	if (!err && key)
		err = hit_shifts_place(h->shifts, p, img, path,
		        &(struct hit_uprobe){.program = skel->progs.on_keep, .at = found->place[i], .cookie = key});
	return err || !h->price ? err : hit_price_place(h->price, p, img, path, &u.at);
}

/* A function may be in one file of a process. */
static struct error *refuse_second(struct hit *h, const struct process *p, u32 spec, const char *path)
{
	for (u32 i = 0; i < h->nplaced; i++)
		if (h->placed[i].pid == p->pid && h->placed[i].spec == spec)
			return error_hint(error_new(ERROR_USAGE, "-e %s: %s and %s have it",
			                          h->options->spec[spec].text, h->where[spec], path),
			        "choose one by -e FILE:NAME; a FILE with a '/' is the end of its path");
	snprintf(h->where[spec], sizeof(h->where[spec]), "%s", path);
	return NULL;
}

/* Once a run. */
static void tell_others(struct hit *h, u32 spec, const struct image *img, const struct hit_found *found)
{
	if (h->told[spec])
		return;
	h->told[spec] = true;
	h->host->options->warn(h->host->options->ctx,
	        hit_is_pattern(&h->options->spec[spec])
	                ? error_new(ERROR_USAGE, "-e %s: %u functions of %s match, all are taken%s",
	                          h->options->spec[spec].text, found->n, img->path, found->others)
	                : error_new(ERROR_USAGE, "-e %s: %s has %u functions of that name, all are taken: %.900s",
	                          h->options->spec[spec].text, img->path, found->n, found->others));
}

bool hit_holds(const struct hit_options *o, u32 spec, const struct process *p, struct error **why)
{
	*why = NULL;
	return !o->condition[spec] || o->fit->fits(o->fit, p->number, p->pid, why);
}

/* path: for the kernel; root: of its file system. */
static struct error *look_at(
        struct hit *h, const struct process *p, u32 spec, struct image *img, const char *path, const char *root)
{
	const struct hit_spec *s = &h->options->spec[spec];
	struct hit_found found;
	struct error *err;

	if (s->kind == HIT_TRACEPOINT || img->fd < 0 || is_placed(h, p->pid, spec, img) ||
	        (s->language && hit_callees_found(h->callees, spec)) ||
	        ((h->options->returns || h->options->condition[spec]) && !may_be_in_file(s)))
		return NULL;
	h->matched[spec] |= hit_is_file(s, img->path);
	err = hit_find(s, img, root, &found);
	if (!err && found.n && !hit_holds(h->options, spec, p, &err))
		found.n = 0;
	if (!err && found.n && !found.usdt)
		err = refuse_second(h, p, spec, img->path);
	if (!err && found.n)
		err = mark_placed(h, p, spec, img);
	if (!err && found.n && h->options->returns)
		err = place_exits(h, p, spec, img, path, &found);
	else if (!err && found.n && !found.usdt)
		err = place_turns(h, p, spec, img, path, &found);
	for (u32 i = 0; !err && i < found.n; i++)
		err = place_entry(h, p, spec, img, path, &found, i);
	if (!err && found.others)
		tell_others(h, spec, img, &found);
	free(found.others);
	h->found[spec] += err ? 0 : found.n;
	return err;
}

/* Where what waits without a thread leaves it, and comes back: waits of slow calls. */
static struct error *place_park(
        struct hit *h, const struct process *p, struct image *img, const char *path, const struct hit_found *found)
{
	struct sample *skel = object_skeleton(h->host->object);
	cleanup(free) struct hit_exits *exits = calloc(1, sizeof(*exits));
	struct hit_uprobe u = {.program = skel->progs.on_call_resume, .exit = true};
	struct error *err = exits ? hit_exits_find("", img, found->addr[0], exits) : &error_no_memory;

	for (u32 i = 0; !err && i < exits->n; i++)
		if (!exits->of[i].again && hit_offset(img, exits->of[i].jump.at, true, &u.at.offset))
			err = hit_shifts_place(h->shifts, p, img, path, &u);
	u = (struct hit_uprobe){.program = skel->progs.on_call_park, .at = found->place[0]};
	return err ? err : hit_shifts_place(h->shifts, p, img, path, &u);
}

static struct error *look_for_park(
        struct hit *h, const struct process *p, const struct image *img, const char *path, const char *root)
{
	struct runtime_process view = process_view(p);
	struct error *err = NULL;

	for (u32 i = 0; !err && i < p->ninstances; i++) {
		const struct instance *instance = &p->instances[i];
		struct hit_spec spec = {.kind = HIT_FUNCTION};
		struct runtime_stacks stacks;
		struct hit_found found;

		if (instance->loaded->image != img || !instance->data || !instance->ops->moving_stacks ||
		        !instance->ops->moving_stacks(instance->data, &view, &stacks) || !stacks.parks ||
		        is_placed(h, p->pid, PARK_SPEC, img))
			continue;
		snprintf(spec.name, sizeof(spec.name), "%s", stacks.parks);
		object_skeleton(h->host->object)->bss->slow_park_reason =
		        wait_reason_of_task(instance->ops->tasks ? instance->ops->tasks->kind : "task", "parked");
		err = hit_find(&spec, instance->loaded->image, root, &found);
		if (!err && found.n)
			err = mark_placed(h, p, PARK_SPEC, img);
		if (!err && found.n)
			err = place_park(h, p, instance->loaded->image, path, &found);
		free(found.others);
	}
	return err;
}

static struct error *look_at_process(struct hit *h, const struct process *p)
{
	pid_t tid = living_thread(p->pid) ?: p->pid;
	struct error *err = NULL;
	char root[64];

	snprintf(root, sizeof(root), "/proc/%d/root", tid);
	if (h->options->returns)
		hit_latency_tell(h->host->object, p);
	for (u32 i = 0; !err && i < p->maps.nlines; i++) {
		const struct mapping *m = &p->mappings[i];
		char path[PROC_MAP_PATH];

		if (!m->image || !(m->prot & PROT_EXEC))
			continue;
		proc_map_path(path, tid, m->start, m->end);
		for (u32 k = 0; !err && k < h->options->n; k++)
			err = look_at(h, p, k, m->image, path, root);
		if (!err && h->options->returns && h->options->over_ns)
			err = look_for_park(h, p, m->image, path, root);
	}
	return err;
}

/* A program that is to be started: its file and what it is linked with were opened (ahead.h). */
static struct error *look_ahead(struct hit *h)
{
	const struct modules *m = h->host->targets->modules;
	struct error *err = NULL;
	char root[64];

	for (u32 i = 0; !err && i < h->host->targets->nprocesses; i++) {
		const struct process *p = h->host->targets->processes[i];

		proc_path(root, sizeof(root), p->pid, "root");
		for (u32 k = 0; !err && k < m->nloaded; k++) {
			struct loaded *l = m->loaded[k];

			if (!l->image || hit_is_own(l->image))
				continue;
			for (u32 s = 0; !err && s < h->options->n; s++)
				err = look_at(h, p, s, l->image, l->path, root);
		}
	}
	return err;
}

static struct looked *looked_at(struct hit *h, u32 process)
{
	for (u32 i = 0; i < h->nlooked; i++)
		if (h->looked[i].process == process)
			return &h->looked[i];
	return NULL;
}

/* Processes that are new, or have other mappings than before. */
static struct error *look(struct hit *h)
{
	const struct targets *t = h->host->targets;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < t->nprocesses; i++) {
		const struct process *p = t->processes[i];
		struct looked *l = looked_at(h, p->number);

		if (p->dead || (l && l->maps_hash == p->maps_hash))
			continue;
		if (!l && (err = grow(&h->looked, h->nlooked, sizeof(*h->looked))))
			break;
		l = l ? l : &h->looked[h->nlooked++];
		*l = (struct looked){.process = p->number, .maps_hash = p->maps_hash};
		err = look_at_process(h, p);
	}
	return err;
}

bool hit_found_any(const void *event)
{
	const struct hit *h = event;

	for (u32 i = 0; i < h->options->n; i++)
		if (h->found[i] || (h->callees && hit_callees_found(h->callees, i)))
			return true;
	return false;
}

static struct error *find_missing(const struct hit *h)
{
	if (h->options->none)
		return hit_found_any(h) ? NULL : h->options->none();
	for (u32 i = 0; i < h->options->n; i++)
		if (h->options->spec[i].language && !h->found[i] && !hit_callees_found(h->callees, i))
			return hit_callees_missing(h->callees, i);
		else if (h->options->spec[i].kind != HIT_TRACEPOINT && !h->options->spec[i].language && !h->found[i])
			return hit_missing(&h->options->spec[i], h->matched[i], h->host->targets);
	return NULL;
}

static struct error *attach_tracepoint(struct hit *h)
{
	struct sample *skel = object_skeleton(h->host->object);

	for (u32 i = 0; i < h->options->n; i++) {
		const struct hit_spec *s = &h->options->spec[i];

		if (s->kind != HIT_TRACEPOINT)
			continue;
		skel->bss->hit_tracepoint = i + 1;
		h->tracepoint = bpf_program__attach_raw_tracepoint(skel->progs.on_tracepoint, s->name);
		if (!h->tracepoint)
			return error_errno(errno, "-e %s: the kernel refuses the tracepoint", s->text);
	}
	return NULL;
}

/* Keys of calls are read as a Y program's handler would be run. */
static struct error *put_fields(struct object *o)
{
	struct sample *skel = object_skeleton(o);
	int program = object_program(o, "on_callee_fields");

	if (bpf_map_update_elem(bpf_map__fd(skel->maps.y_handlers), &skel->bss->y_values_at, &program, BPF_ANY))
		return error_errno(errno, "the kernel takes no reader of keys");
	skel->bss->y_handlers_run = 1;
	return NULL;
}

static struct error *start(void *event, bool at_exec)
{
	struct hit *h = event;
	struct hit_conditions *conditions = h->options->conditions;
	struct error *err = attach_tracepoint(h);

	if (!err && has_language(h->options) && has_key(h->options))
		err = put_fields(h->host->object);
	if (!err && conditions)
		err = conditions->put(conditions, h->host->object);
	if (!err && h->latency)
		err = hit_latency_watch(h->latency);
	if (!err && h->callees && !at_exec)
		err = hit_callees_poll(h->callees, now_ns());
	if (!err)
		err = at_exec ? look_ahead(h) : look(h);
	if (!err && !at_exec && !h->host->options->selection)
		err = find_missing(h);
	h->started = !err;
	h->cpu_at_start = object_cpu_ns(h->host->object);
	h->started_ns = now_ns();
	if (!err)
		object_take_ticks(h->host->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	return err;
}

/* A process that came later, or a file: what can not be in it is reported, and the run goes on. */
static struct error *poll(void *event, u64 now)
{
	struct hit *h = event;
	struct error *err = look(h);

	if (!err && h->calls)
		err = hit_calls_poll(h->calls);
	if (h->price)
		hit_price_poll(h->price);
	hit_shifts_steer(h->shifts, now);
	if (!err && h->callees)
		err = hit_callees_poll(h->callees, now);
	return event_goes_on(h->host, err);
}

static struct error *stop(void *event)
{
	struct hit *h = event;
	struct error *err;

	object_take_ticks(h->host->object, TICKS_IGNORED);
	hit_shifts_end(h->shifts);
	h->cpu_at_stop = object_final_cpu_ns(h->host->object);
	h->stopped_ns = now_ns();
	if (h->callees && h->started)
		hit_callees_end(h->callees);
	err = h->started && h->options->conditions
	              ? h->options->conditions->say(h->options->conditions, h->host->object)
	              : NULL;
	if (err)
		h->host->options->warn(h->host->options->ctx, err);
	err = h->started ? find_missing(h) : NULL;
	if (err)
		h->host->options->warn(h->host->options->ctx, err);
	return NULL;
}

static void stats(void *event, struct sampler_stats *st)
{
	struct hit *h = event;

	st->expected = hit_shifts_hits(h->shifts) + (h->callees ? hit_callees_hits(h->callees) : 0);
	st->probed = hit_shifts_part(h->shifts);
	if (h->callees && !st->probed)
		st->probed = hit_callees_part(h->callees);
	h->summary.inlined = h->callees ? hit_callees_inlined(h->callees) : NULL;
	h->summary.unseen = h->callees ? hit_callees_unseen(h->callees) : (struct hit_unseen){0};
	if (h->arguments) {
		free(h->summary.calls);
		error_free(hit_arguments_counts(h->arguments, &h->summary.calls, &h->summary.ncalls));
	}
	st->of_event = &h->summary;
}

/* Until its new code is watched, calls of a function are not seen. */
static bool urgent(void *event, const void *data, size_t size)
{
	struct hit *h = event;

	if (!h->callees || size != sizeof(struct callee_change))
		return false;
	hit_callees_record(h->callees, data);
	return true;
}

static u64 due(void *event)
{
	struct hit *h = event;

	return h->callees ? hit_callees_due(h->callees) : 0;
}

static void reason(u32 reason, char *text)
{
	if (shown && reason && reason <= shown->n)
		snprintf(text, REASON_LEN, "%.*s", REASON_LEN - 1, shown->spec[reason - 1].text);
}

/* With what a call was made. */
static void object(u64 key, char *text)
{
	const char *call = told ? hit_arguments_text(told, key) : NULL;

	snprintf(text, REASON_LEN, "%s", call ? call : "(other arguments)");
}

static struct error *record(void *event, const void *data, size_t size)
{
	struct hit *h = event;

	return h->arguments && size == sizeof(struct values_record) ? hit_arguments_record(h->arguments, data) : NULL;
}

const struct event_ops hit_event = {
        .name = "hit",
        .command = "probe",
        .topic = TOPIC_CALLS,
        .summary = "calls of any function, USDT probe or tracepoint, by stack",
        .unit = "hits",
        .slots = 4, /* a tracepoint's thread may be interrupted by another one's */
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .poll = poll,
        .due = due,
        .stop = stop,
        .halve = event_halve_by_weight,
        .record = record,
        .urgent = urgent,
        .stats = stats,
        .reason = reason,
        .object = object,
        .object_kind = KIND_LABEL,
        .leads_to_program = hit_leads_to_program,
        .command_line = &hit_command,
        .words = &hit_words,
};

/* Which part of the time that the target has a CPU is its own, while hits are counted. */
static double progress(const struct hit *h)
{
	s64 ran = (h->stopped_ns ? h->cpu_at_stop : object_cpu_ns(h->host->object)) - h->cpu_at_start;
	u64 passed = (h->stopped_ns ? h->stopped_ns : now_ns()) - h->started_ns;
	double taken = hit_shifts_taken(h->shifts), cpus = passed && ran > 0 ? (double)ran / (double)passed : 0;

	return cpus > 0 ? fmax(0, 1 - COST_SPREAD * taken / cpus) : 1;
}

struct hit_latency *hit_latency_of(const void *event)
{
	return ((const struct hit *)event)->latency;
}

const char *hit_text_of(const void *event, const struct latency_record *record)
{
	const struct hit *h = event;

	return h->arguments ? hit_arguments_text(h->arguments, record->call) : NULL;
}

double hit_watched(const void *event)
{
	const struct hit *h = event;

	return fmax(hit_shifts_part(h->shifts), h->callees ? hit_callees_part(h->callees) : 0);
}

static void latency_stats(void *event, struct sampler_stats *st)
{
	struct hit *h = event;
	struct latency_summary *summary = hit_latency_summary(h->latency);

	for (u32 i = 0; i < summary->n; i++) {
		struct latency_of *of = &summary->of[i];
		bool language = h->options->spec[i].language && hit_callees_found(h->callees, i);

		of->price = language ? (struct latency_price){0} : hit_price_get(h->price);
		of->progress = language ? 1 : progress(h);
		of->probed = language ? hit_callees_part(h->callees) : hit_shifts_part(h->shifts);
	}
	summary->inlined = h->callees ? hit_callees_inlined(h->callees) : NULL;
	summary->unseen = h->callees ? hit_callees_unseen(h->callees) : (struct hit_unseen){0};
	st->of_event = summary;
	st->probed = hit_watched(h);
}

static struct error *latency_record(void *event, const void *data, size_t size)
{
	struct hit *h = event;

	if (h->arguments && size == sizeof(struct values_record))
		return hit_arguments_record(h->arguments, data);
	return hit_latency_record(h->latency, data, size, h->arguments);
}

static struct error *latency_poll(void *event, u64 now)
{
	struct hit *h = event;
	struct error *err = hit_latency_poll(h->latency, now);

	return err ? err : poll(event, now);
}

static u64 latency_due(void *event)
{
	struct hit *h = event;
	u64 shift = due(event), look = hit_latency_due(h->latency);

	return !shift || (look && look < shift) ? look : shift;
}

static struct error *latency_drain(void *event, u32 epoch)
{
	struct hit *h = event;

	hit_latency_name(h->latency);
	return NULL;
}

static struct error *latency_finish(void *event)
{
	return latency_drain(event, 0);
}

const struct event_ops latency_event = {
        .name = "latency",
        .command = "latency",
        .topic = TOPIC_CALLS,
        .summary = "how long calls of a function take: a histogram, and stacks of slow ones",
        .unit = "nanoseconds",
        .more = "calls",
        .slots = 4,
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .poll = latency_poll,
        .drain = latency_drain,
        .stop = stop,
        .finish = latency_finish,
        .due = latency_due,
        .halve = event_halve_by_weight,
        .record = latency_record,
        .urgent = urgent,
        .stats = latency_stats,
        .reason = wait_reason_text,
        .kind = wait_kind,
        .queued = WAIT_FOR_CPU,
        .leads_to_program = wait_leads_to_program,
        .command_line = &latency_command,
        .words = &latency_words,
};
