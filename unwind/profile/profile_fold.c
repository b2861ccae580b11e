/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_fold.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "process/module.h"

enum part { PART_OTHER, PART_NATIVE, PART_SCRIPT };

struct part_of { /* what a function is to fold_groups */
	enum part part;
	u32 fold_group; /* 0: none */
	bool running;
	const struct runtime_ops *ops;
	u32 copy; /* in the new profile; 0: not yet */
};

/*
 * Where a node of the old profile comes to lie. A run is functions of one fold group with only native ones between
 * them; it becomes the fold group if one of them runs the others.
 */
struct place {
	u32 below;        /* the old node that it comes to lie below */
	u32 node;         /* in the new profile */
	u32 run_below;    /* what the run that ends here, or leads here by native code alone, comes to lie below */
	bool running;     /* that run is the fold group */
	bool own, needed; /* its function is drawn; something is counted there */
	const struct part_of *run;        /* a function of that run; NULL: there is none */
	const struct part_of *fold_group; /* drawn before the function; NULL: none */
};

struct folding {
	const struct profile *old;
	struct profile *to;
	struct part_of *parts;
	struct place *places;
};

static const struct runtime_ops *runtime_of(const struct profile_function *fn)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if ((*r)->fold_group && !strcmp((*r)->name, fn->module))
			return *r;
	return NULL;
}

static bool is_native(enum profile_kind kind)
{
	return kind == KIND_NATIVE || kind == KIND_CXX || kind == KIND_RUST || kind == KIND_VM;
}

/* Native code that is part of a fold group is so for a runtime whose name it does not have. */
static void native_part(struct part_of *part, const char *name, const char *path, u32 flags)
{
	for (const struct runtime_ops *const *r = runtimes; *r && !part->fold_group; r++)
		if ((*r)->fold_group && (*r)->expands_native) {
			part->ops = *r;
			part->fold_group = (*r)->fold_group(name, path, flags, &part->running);
		}
}

static struct part_of part_of(const struct profile_function *fn, const struct profile_image *images, u32 flags)
{
	struct part_of ret = {.part = is_native(fn->kind) ? PART_NATIVE : PART_OTHER};
	const char *place = strstr(fn->name, " (");
	char name[512];

	if (ret.part == PART_NATIVE && fn->image)
		native_part(&ret, fn->name, images[fn->image].path, flags);
	if (fn->kind != KIND_SCRIPT)
		return ret;
	ret.ops = runtime_of(fn);
	if (!ret.ops)
		return ret;
	snprintf(name, sizeof(name), "%.*s", (int)(place ? (size_t)(place - fn->name) : strlen(fn->name)), fn->name);
	ret.part = PART_SCRIPT;
	ret.fold_group = ret.ops->fold_group(name, fn->file, flags, &ret.running);
	return ret;
}

static struct place place_fold_group(const struct part_of *part, u32 parent, const struct place *up)
{
	bool goes_on = up->run && up->run->fold_group == part->fold_group;
	struct place ret = {.below = parent, .run_below = goes_on ? up->run_below : parent, .run = part};

	ret.running = part->running || (goes_on && up->running);
	ret.own = !ret.running;
	if (ret.running) {
		ret.below = ret.run_below;
		ret.fold_group = part;
	}
	return ret;
}

/* up: that of the parent. */
static struct place place_function(const struct part_of *part, u32 parent, const struct place *up)
{
	struct place ret = {.below = parent, .own = true};

	if (part->fold_group)
		return place_fold_group(part, parent, up);
	if (part->part == PART_NATIVE) {
		ret.run = up->run;
		ret.run_below = up->run_below;
		ret.running = up->running;
	} else if (part->part == PART_SCRIPT &&
	           up->running) { /* the native code between has to do with the fold group */
		ret.below = up->run_below;
		ret.fold_group = up->run;
	}
	return ret;
}

/* All nodes, and which of them are needed: children come behind their parents. */
static void place_all(struct folding *f)
{
	const struct profile *old = f->old;

	for (u32 i = 1; i < old->nnodes; i++) {
		const struct profile_node *n = &old->nodes[i];

		f->places[i] = place_function(&f->parts[n->function], n->parent, &f->places[n->parent]);
	}
	for (u32 i = old->nnodes; i-- > 1;) {
		struct place *p = &f->places[i];

		p->needed = p->needed || old->nodes[i].self || old->nodes[i].more;
		if (p->needed)
			f->places[p->below].needed = true;
	}
}

static struct error *copy(struct folding *f, u32 function, u32 *ret)
{
	struct profile_function fn = f->old->functions[function];
	u32 *known = &f->parts[function].copy;
	struct error *err = NULL;

	if (function <= PROFILE_FULL)
		*known = function;
	else if (!*known) {
		if (fn.image && fn.image < f->old->nimages)
			err = profile_image(
			        f->to, f->old->images[fn.image].path, f->old->images[fn.image].build_id, &fn.image);
		if (!err)
			err = profile_function(f->to, function, &fn, false, known);
	}
	*ret = *known;
	return err;
}

static struct error *fold_group_function(struct folding *f, const struct part_of *part, u32 *ret)
{
	struct profile_function fn = {.name = part->ops->fold_group_name(part->fold_group),
	        .module = part->ops->name,
	        .file = "",
	        .kind = KIND_SCRIPT};

	return profile_function(f->to, 0, &fn, false, ret);
}

static struct error *draw(struct folding *f, u32 node)
{
	const struct profile_node *old = &f->old->nodes[node];
	struct place *p = &f->places[node];
	struct error *err = NULL;
	u32 function;

	p->node = f->places[p->below].node;
	if (p->fold_group) {
		err = fold_group_function(f, p->fold_group, &function);
		if (!err)
			err = profile_child(f->to, p->node, function, &p->node);
	}
	if (p->own && !err) {
		err = copy(f, old->function, &function);
		if (!err)
			err = profile_child(f->to, p->node, function, &p->node);
	}
	if (!err) {
		profile_add(f->to, p->node, old->self);
		profile_add_more(f->to, p->node, old->more);
	}
	return err;
}

static struct error *copy_meta(const struct profile_meta *m, struct profile *to)
{
	const char **strings[] = {&to->meta.title, &to->meta.heading, &to->meta.command, &to->meta.target,
	        &to->meta.unit, &to->meta.more, &to->meta.loss, &to->meta.stats, &to->meta.before};
	struct error *err = NULL;

	to->meta = *m;
	for (u32 i = 0; i < sizeof(strings) / sizeof(*strings) && !err; i++)
		err = profile_string(to, *strings[i], strings[i]);
	return err;
}

static struct error *fold_all(struct folding *f, u32 flags)
{
	struct error *err = copy_meta(&f->old->meta, f->to);

	for (u32 i = 0; i < f->old->nfunctions; i++)
		f->parts[i] = part_of(&f->old->functions[i], f->old->images, flags);
	place_all(f);
	profile_add(f->to, 0, f->old->nodes[0].self);
	profile_add_more(f->to, 0, f->old->nodes[0].more);
	for (u32 i = 1; i < f->old->nnodes && !err; i++)
		if (f->places[i].needed)
			err = draw(f, i);
	for (u32 i = 0; i < f->old->ntimes && !err; i++)
		err = profile_add_time(f->to, f->places[f->old->times[i].node].node, f->old->times[i].when);
	return err;
}

struct error *fold_profile(const struct profile *old, u32 flags, struct profile **ret)
{
	cleanup(free) struct part_of *parts = calloc(old->nfunctions + 1, sizeof(*parts));
	cleanup(free) struct place *places = calloc(old->nnodes, sizeof(*places));
	struct folding f = {.old = old, .parts = parts, .places = places};
	struct error *err = parts && places ? profile_create(&f.to) : &error_no_memory;

	if (err)
		return err;
	f.to->max_nodes = old->max_nodes;
	err = fold_all(&f, flags);
	if (err) {
		profile_destroy(f.to);
		return err;
	}
	profile_finish(f.to);
	*ret = f.to;
	return NULL;
}
