/* SPDX-License-Identifier: Apache-2.0 */
/* What runtimes know of their structures where the target's files have no debug information: runtime_types.h. */
#include <stdlib.h>
#include <string.h>

#include "target.h"
#include "unwind/layout/layout_types.h"
#include "unwind/process/alone.h"
#include "unwind/runtime.h"
#include "unwind/runtime_types.h"

struct y_runtimes {
	struct process_alone alone;
	struct layout_types *types[RUNTIMES_MAX]; /* by runtime_ops.id */
	struct error *complaint;                  /* the first one; NULL: none */
};

static void complain(void *ctx, struct error *err)
{
	struct y_runtimes *r = ctx;

	if (r->complaint)
		error_free(err);
	else
		r->complaint = err;
}

static struct error *make_types(struct y_runtimes *r)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < r->alone.p->ninstances; i++) {
		const struct instance *one = &r->alone.p->instances[i];
		const struct runtime_types_ops *ops = one->ops->types;

		if (one->data && ops && !r->types[one->ops->id])
			err = layout_types_make(
			        ops->types, ops->layout(one->data), ops->place, &r->types[one->ops->id]);
	}
	return err;
}

void y_runtimes_free(struct y_runtimes *r)
{
	if (!r)
		return;
	for (u32 i = 0; i < RUNTIMES_MAX; i++)
		layout_types_free(r->types[i]);
	process_alone_close(&r->alone);
	error_free(r->complaint);
	free(r);
}

/* Opened when the first name is asked for that only runtimes may know. NULL: there is no process. */
static struct y_runtimes *runtimes_of(struct y_target *t)
{
	struct error *err;

	if (t->runtimes || !t->memory)
		return t->runtimes;
	t->runtimes = calloc(1, sizeof(*t->runtimes));
	if (!t->runtimes)
		return NULL;
	err = process_alone_open(&t->runtimes->alone, t->pid, t->core, complain, t->runtimes);
	if (!err)
		err = make_types(t->runtimes);
	if (err)
		complain(t->runtimes, err);
	return t->runtimes;
}

const struct type *y_runtimes_type(struct y_target *t, enum type_space space, const char *name)
{
	const struct type *type = NULL;

	for (u32 i = 0; !type && runtimes[i]; i++)
		if (runtimes[i]->types && layout_types_name(runtimes[i]->types->types, name)) {
			const struct y_runtimes *r = runtimes_of(t);
			const struct layout_types *types = r ? r->types[runtimes[i]->id] : NULL;

			type = types ? layout_types_find(types, space, name) : NULL;
		}
	return type;
}

const char *y_runtimes_of_type(const char *name)
{
	for (u32 i = 0; runtimes[i]; i++)
		if (runtimes[i]->types && layout_types_name(runtimes[i]->types->types, name))
			return runtimes[i]->name;
	return NULL;
}

const char *y_runtimes_complaint(const struct y_target *t)
{
	return t->runtimes && t->runtimes->complaint ? t->runtimes->complaint->message : NULL;
}

bool y_runtimes_root(const char *name, const char **language, const char **type)
{
	for (u32 i = 0; runtimes[i]; i++)
		if (runtimes[i]->types && !strcmp(runtimes[i]->types->root, name)) {
			*language = runtimes[i]->name;
			*type = runtimes[i]->types->root_type;
			return true;
		}
	return false;
}

u32 y_runtimes_roots(struct y_target *t, const char *name, u64 ret[Y_ROOTS_MOST])
{
	struct y_runtimes *r = runtimes_of(t);
	const struct process *p = r ? r->alone.p : NULL;
	u64 room[RUNTIME_ROOTS_MAX];
	u32 n = 0, found;

	for (u32 i = 0; p && i < p->ninstances; i++) {
		const struct instance *one = &p->instances[i];
		struct runtime_process view = process_view(p);

		if (!one->data || !one->ops->types || strcmp(one->ops->types->root, name) != 0)
			continue;
		found = one->ops->types->roots(one->data, &view, room);
		for (u32 k = 0; k < found && n < Y_ROOTS_MOST; k++)
			ret[n++] = room[k];
	}
	return n;
}
