/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_fold.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "module.h"

enum part { PART_OTHER, PART_NATIVE, PART_SCRIPT };

struct part_of { /* what a function is to walls */
	enum part part;
	u32 wall; /* 0: none */
	bool running;
	const struct runtime_ops *ops;
	u32 copy; /* in the new profile; 0: not yet */
};

struct folding {
	const struct profile *old;
	struct profile *to;
	struct part_of *parts;
	u32 *path; /* functions of a stack, leaf first */
	u32 *folded;
	u32 depth, capacity;
};

static const struct runtime_ops *runtime_of(const struct profile_function *fn)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if ((*r)->wall && !strcmp((*r)->name, fn->module))
			return *r;
	return NULL;
}

static bool is_native(enum profile_kind kind)
{
	return kind == KIND_NATIVE || kind == KIND_CXX || kind == KIND_RUST || kind == KIND_VM;
}

/* Native code that is part of a wall is so for a runtime whose name it does not have. */
static void native_part(struct part_of *part, const char *name, const char *path, u32 flags)
{
	for (const struct runtime_ops *const *r = runtimes; *r && !part->wall; r++)
		if ((*r)->wall && (*r)->expands_native) {
			part->ops = *r;
			part->wall = (*r)->wall(name, path, flags, &part->running);
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
	ret.wall = ret.ops->wall(name, fn->file, flags, &ret.running);
	return ret;
}

static const struct part_of *part_at(const struct folding *f, u32 i)
{
	return &f->parts[f->path[i]];
}

/* The next function of a script or wall at or behind i, with only other native ones before it; depth: none. */
static u32 next_part(const struct folding *f, u32 i)
{
	while (i < f->depth && part_at(f, i)->part == PART_NATIVE && !part_at(f, i)->wall)
		i++;
	return i < f->depth && part_at(f, i)->part != PART_OTHER ? i : f->depth;
}

/* How many functions from i on the wall that begins there, or at the next function, stands for; 0: there is none. */
static u32 wall_at(const struct folding *f, u32 i, u32 *wall)
{
	u32 first = part_at(f, i)->wall ? i : next_part(f, i + 1), last = i;
	bool running = false;

	*wall = first < f->depth ? part_at(f, first)->wall : 0;
	for (u32 at = first; *wall && at < f->depth && part_at(f, at)->wall == *wall; at = next_part(f, at + 1)) {
		running = running || part_at(f, at)->running;
		last = at;
	}
	return running ? last - i + 1 : 0;
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
			err = profile_image(f->to, f->old->images[fn.image].path, f->old->images[fn.image].build_id, &fn.image);
		if (!err)
			err = profile_function(f->to, function, &fn, false, known);
	}
	*ret = *known;
	return err;
}

static struct error *wall_function(struct folding *f, const struct runtime_ops *ops, u32 wall, u32 *ret)
{
	struct profile_function fn = {.name = ops->wall_name(wall), .module = ops->name, .file = "", .kind = KIND_SCRIPT};

	return profile_function(f->to, 0, &fn, false, ret);
}

/* The functions of the path as they are drawn, to f->folded. */
static struct error *fold_path(struct folding *f, u32 *n)
{
	struct error *err = NULL;

	*n = 0;
	for (u32 i = 0, wall = 0; i < f->depth && !err;) {
		u32 eaten = part_at(f, i)->part == PART_SCRIPT || part_at(f, i)->wall ? wall_at(f, i, &wall) : 0;

		if (!eaten || !part_at(f, i)->wall)
			err = copy(f, f->path[i], &f->folded[(*n)++]);
		if (eaten && !err)
			err = wall_function(f, part_at(f, i)->ops, wall, &f->folded[(*n)++]);
		i += eaten ? eaten : 1;
	}
	return err;
}

static bool grow(struct folding *f)
{
	u32 capacity = 2 * f->capacity + 256;
	u32 *path = realloc(f->path, capacity * sizeof(*path)), *folded;

	if (path)
		f->path = path;
	folded = path ? realloc(f->folded, capacity * sizeof(*folded)) : NULL;
	if (folded)
		f->folded = folded;
	if (folded)
		f->capacity = capacity;
	return folded;
}

static struct error *fold_node(struct folding *f, u32 node)
{
	const struct profile_node *nodes = f->old->nodes;
	struct error *err;
	u32 at = 0, n;

	f->depth = 0;
	for (u32 i = node; i; i = nodes[i].parent) {
		if (f->depth == f->capacity && !grow(f))
			return &error_no_memory;
		f->path[f->depth++] = nodes[i].function;
	}
	err = fold_path(f, &n);
	while (n && !err)
		err = profile_child(f->to, at, f->folded[--n], &at);
	if (!err) {
		profile_add(f->to, at, nodes[node].self);
		profile_add_more(f->to, at, nodes[node].more);
	}
	return err;
}

static struct error *copy_meta(const struct profile_meta *m, struct profile *to)
{
	const char **strings[] = {&to->meta.title, &to->meta.command, &to->meta.target, &to->meta.unit, &to->meta.more,
	        &to->meta.loss, &to->meta.stats, &to->meta.before};
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
	for (u32 i = 0; i < f->old->nnodes && !err; i++)
		if (f->old->nodes[i].self || f->old->nodes[i].more)
			err = fold_node(f, i);
	return err;
}

struct error *fold_profile(const struct profile *old, u32 flags, struct profile **ret)
{
	cleanup(free) struct part_of *parts = calloc(old->nfunctions + 1, sizeof(*parts));
	struct folding f = {.old = old, .parts = parts};
	struct error *err = parts ? profile_create(&f.to) : &error_no_memory;

	if (err)
		return err;
	f.to->max_nodes = old->max_nodes;
	err = fold_all(&f, flags);
	free(f.path);
	free(f.folded);
	if (err) {
		profile_destroy(f.to);
		return err;
	}
	profile_finish(f.to);
	*ret = f.to;
	return NULL;
}
