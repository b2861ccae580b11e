/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_expand.h"

#include <stdlib.h>

#include "cleanup.h"

struct expansion {
	const struct profile *old;
	struct profile *to;
	struct error *(*chain)(void *ctx, struct profile *to, const struct profile_function *fn, u32 function,
	        const u32 **ret, u32 *n);
	void *ctx;
	u32 *nodes;  /* of to, by those of old */
	u32 *copies; /* of functions of old that stay themselves; 0: not copied yet */
};

/* Two functions of the old profile that look the same stay two. */
static struct error *copy_function(struct expansion *x, const struct profile_function *fn, u32 function, u32 *ret)
{
	struct error *err = NULL;

	if (function <= PROFILE_FULL)
		x->copies[function] = function;
	else if (!x->copies[function])
		err = profile_function(x->to, function, fn, false, &x->copies[function]);
	*ret = x->copies[function];
	return err;
}

static struct error *copy_image(struct expansion *x, struct profile_function *fn)
{
	const struct profile_image *image;

	if (!fn->image || fn->image >= x->old->nimages)
		return NULL;
	image = &x->old->images[fn->image];
	return profile_image(x->to, image->path, image->build_id, &fn->image);
}

static struct error *expand_node(struct expansion *x, u32 i)
{
	const struct profile_node *node = &x->old->nodes[i];
	struct profile_function fn = x->old->functions[node->function];
	u32 at = x->nodes[node->parent], n = 0, own;
	const u32 *functions = NULL;
	struct error *err = copy_image(x, &fn);

	if (!err)
		err = x->chain(x->ctx, x->to, &fn, node->function, &functions, &n);
	if (!err && !functions) {
		err = copy_function(x, &fn, node->function, &own);
		functions = &own;
		n = 1;
	}
	for (u32 k = 0; k < n && !err; k++)
		err = profile_child(x->to, at, functions[k], &at);
	x->nodes[i] = at;
	if (!err) {
		profile_add(x->to, at, node->self);
		profile_add_more(x->to, at, node->more);
	}
	return err;
}

struct error *expand_profile(const struct profile *old,
        struct error *(*chain)(void *ctx, struct profile *to, const struct profile_function *fn, u32 function,
                const u32 **ret, u32 *n),
        void *ctx, struct profile **ret)
{
	cleanup(free) u32 *nodes = calloc(old->nnodes + 1, sizeof(*nodes));
	cleanup(free) u32 *copies = calloc(old->nfunctions + 1, sizeof(*copies));
	struct expansion x = {.old = old, .chain = chain, .ctx = ctx, .nodes = nodes, .copies = copies};
	struct error *err;

	if (!nodes || !copies)
		return &error_no_memory;
	err = profile_create(&x.to);
	if (err)
		return err;
	x.to->max_nodes = old->max_nodes;
	profile_add(x.to, 0, old->nodes[0].self);
	profile_add_more(x.to, 0, old->nodes[0].more);
	for (u32 i = 1; i < old->nnodes && !err; i++)
		err = expand_node(&x, i);
	if (!err)
		err = profile_copy_times(x.to, old, nodes);
	if (err)
		profile_destroy(x.to);
	else
		*ret = x.to;
	return err;
}
