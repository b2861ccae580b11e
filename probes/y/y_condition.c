/* SPDX-License-Identifier: Apache-2.0 */
#include "y_condition.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "probes/object.h"
#include "sample.skel.h"
#include "y_if.h"
#include "y_probe.h"

struct y_condition {
	struct hit_conditions ops; /* the first member */
	const struct y_object *object;
	struct hit_options *of;
	struct y_kernel kernel;
	struct y_probe_options options;
	struct y_probe *probe;
	u32 other_kind;
};

static void record(void *ctx, const struct y_record *r) /* they print nothing */
{
}

static struct error *put_one(struct y_condition *c, const struct sample *skel, u32 spec, u32 number)
{
	bool call = c->object->handlers[number].kind == Y_OF_CALL;
	int program = y_probe_program(c->probe, number);

	return bpf_map_update_elem(bpf_map__fd(call ? skel->maps.y_handlers : skel->maps.hit_ifs),
	               call ? &number : &spec, &program, BPF_ANY)
	               ? error_errno(errno, "the kernel takes no condition")
	               : NULL;
}

static struct error *open_probe(struct y_condition *c, const struct sample *skel)
{
	int code = bpf_map__fd(c->of->returns ? skel->maps.on_enter_if_now : skel->maps.on_hit_if_now);
	struct error *err = y_kernel_ask(&c->kernel);

	c->options = (struct y_probe_options){.kernel = &c->kernel,
	        .root = "",
	        .record = record,
	        .pending = bpf_map__fd(skel->maps.y_pendings),
	        .on_y = {[Y_OF_CODE] = code,
	                [Y_OF_KERNEL] = -1,
	                [Y_OF_CLOCK] = -1,
	                [Y_OF_CALL] = bpf_map__fd(skel->maps.on_callee_if_now)},
	        .handlers = bpf_map__fd(skel->maps.y_handlers),
	        .arguments = bpf_map__fd(skel->maps.y_arguments)};
	return err ? err : y_probe_open(c->object, &c->options, &c->probe);
}

static struct error *put(struct hit_conditions *ops, struct object *o)
{
	struct y_condition *c = (struct y_condition *)ops;
	struct sample *skel = object_skeleton(o);
	int values = object_program(o, "on_y_values");
	struct error *err = open_probe(c, skel);

	if (!err && hit_wants_arguments(c->of) &&
	        bpf_map_update_elem(bpf_map__fd(skel->maps.y_handlers), &skel->bss->y_values_at, &values, BPF_ANY))
		err = error_errno(errno, "the kernel takes no reader of arguments");
	for (u32 i = 0, number = 0; !err && i < c->of->n; i++)
		if (c->of->condition[i])
			err = put_one(c, skel, i, number++);
	if (err)
		return err;
	((struct y_control *)y_probe_globals(c->probe))->running = 1;
	skel->bss->y_handlers_run = 1;
	return NULL;
}

/* Why calls did not count, beside those that the condition is plainly false for. */
static struct error *say(struct hit_conditions *ops, struct object *o)
{
	const struct sample *skel = object_skeleton(o);
	u64 all = 0, other_kind = skel->bss->y_if_failed[((struct y_condition *)ops)->other_kind];

	for (u32 i = 0; i < Y_STATUSES; i++)
		all += skel->bss->y_if_failed[i];
	if (all > other_kind)
		return error_new(ERROR_LOST,
		        "--if could not be computed for %lu calls, which did not count: their memory could not be "
		        "read, "
		        "or was not there",
		        all - other_kind);
	if (!skel->bss->y_if_met && skel->bss->y_if_refused + other_kind)
		return error_new(ERROR_LOST, "none of %lu calls met --if", skel->bss->y_if_refused + other_kind);
	return NULL;
}

struct error *y_condition_new(
        const struct y_object *object, u32 other_kind, struct hit_options *o, struct y_condition **ret)
{
	struct y_condition *c = calloc(1, sizeof(*c));
	u32 number = 0;

	*ret = c;
	if (!c)
		return &error_no_memory;
	*c = (struct y_condition){.ops = {put, say}, .object = object, .of = o, .other_kind = other_kind};
	if (other_kind >= Y_STATUSES)
		return error_new(ERROR_INTERNAL, "a status of Y is beyond those of BPF");
	for (u32 i = 0; i < o->n; i++) {
		const struct y_object_handler *h = &object->handlers[number];

		if (!o->condition[i])
			continue;
		if (number == object->nhandlers || h->kind != (o->spec[i].language ? Y_OF_CALL : Y_OF_CODE) ||
		        h->nvariants || o->spec[i].kind == HIT_TRACEPOINT || o->spec[i].kind == HIT_USDT)
			return error_hint(error_new(ERROR_USAGE, "-e %s: --if takes functions", o->spec[i].text),
			        "`yrt y` has conditions of tracepoints and USDT probes");
		o->handler[i][0] = ++number;
		o->wanted[i] = h->wanted;
		o->nwanted[i] = h->nwanted;
	}
	o->conditions = &c->ops;
	return NULL;
}

void y_condition_free(struct y_condition *c)
{
	if (c)
		y_probe_close(c->probe);
	free(c);
}
