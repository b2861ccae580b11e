/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "profile.h"
#include "string_pool.h"

#define FUNCTIONS_MAX (1u << 20)

struct private
{
	struct index_table nodes, functions;
	struct string_pool strings;
	char **texts; /* longer than those of the pool; owned */
	u32 ntexts;
	u64 *keys; /* of functions */
	u32 nodes_capacity, functions_capacity, images_capacity;
	u32 overflow; /* the node of stacks that found no room, 0: none yet */
};

static u32 mix(u64 a, u64 b)
{
	u64 h = (a ^ b * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;

	h ^= h >> 32;
	return (u32)(h * 0xd6e8feb86659fd93 >> 32);
}

/*
 * Makes array, of *capacity elements of which n are used, hold one more. Not grow() of grow.h: while nodes are merged
 * in place, those that are not merged yet lie behind n.
 */
static struct error *reserve(void *array, u32 n, u32 *capacity, size_t size)
{
	u32 more = *capacity + *capacity / 2 + 64;
	void *bigger;

	if (n < *capacity)
		return NULL;
	bigger = reallocarray(*(void **)array, more, size);
	if (!bigger)
		return &error_no_memory;
	*(void **)array = bigger;
	*capacity = more;
	return NULL;
}

struct identity {
	u64 key;
	const struct profile_function *fn; /* interned */
};

static bool same_function(const void *ctx, u32 index, const void *wanted)
{
	const struct profile *p = ctx;
	const struct private *v = p->private;
	const struct profile_function *f = &p->functions[index];
	const struct identity *id = wanted;

	if (id->key || v->keys[index])
		return id->key == v->keys[index];
	return f->name == id->fn->name && f->module == id->fn->module && f->file == id->fn->file &&
	       f->line == id->fn->line && f->flags == id->fn->flags && f->kind == id->fn->kind;
}

static u32 hash_function(const struct identity *id)
{
	const struct profile_function *f = id->fn;

	if (id->key)
		return mix(id->key, 1);
	return mix((u64)mix((uintptr_t)f->name, (uintptr_t)f->module) << 32 | mix((uintptr_t)f->file, f->line),
	        (u64)f->flags << 32 | f->kind);
}

static struct error *intern_function(struct profile *p, const struct profile_function *fn, struct profile_function *ret)
{
	struct private *v = p->private;
	struct error *err;

	*ret = *fn;
	if ((err = string_pool_add(&v->strings, fn->name, &ret->name)) ||
	        (err = string_pool_add(&v->strings, fn->module, &ret->module)))
		return err;
	return string_pool_add(&v->strings, fn->file, &ret->file);
}

static struct error *add_function(struct profile *p, const struct identity *id)
{
	struct private *v = p->private;
	u32 capacity = v->functions_capacity;
	struct error *err;

	if ((err = reserve(&v->keys, p->nfunctions, &capacity, sizeof(*v->keys))) ||
	        (err = reserve(&p->functions, p->nfunctions, &v->functions_capacity, sizeof(*p->functions))))
		return err;
	v->keys[p->nfunctions] = id->key;
	p->functions[p->nfunctions++] = *id->fn;
	return NULL;
}

static struct error *improve_function(struct profile *p, u32 index, const struct profile_function *fn)
{
	struct profile_function *f = &p->functions[index];
	struct profile_function new;
	struct error *err = intern_function(p, fn, &new);

	if (err)
		return err;
	f->name = new.name;
	if (*new.file) {
		f->file = new.file;
		f->line = new.line;
		f->definition = new.definition;
	}
	return NULL;
}

struct error *profile_function(struct profile *p, u64 key, const struct profile_function *fn, bool better, u32 *ret)
{
	struct private *v = p->private;
	struct profile_function own = {0};
	struct identity id = {key, &own};
	struct error *err = NULL;

	if (!key && (err = intern_function(p, fn, &own)))
		return err;
	u32 hash = hash_function(&id);
	u32 index = index_table_find(&v->functions, hash, same_function, p, &id);

	if (index && key && better && fn->name && *fn->name)
		err = improve_function(p, index, fn);
	if (!index && p->nfunctions < FUNCTIONS_MAX) {
		if ((key && (err = intern_function(p, fn, &own))) || (err = index_table_reserve(&v->functions)) ||
		        (err = add_function(p, &id)))
			return err;
		index = p->nfunctions - 1;
		index_table_put(&v->functions, hash, index);
	}
	if (!err)
		*ret = index ? index : PROFILE_FULL;
	return err;
}

static struct error *add_text(struct private *v, const char *s, const char **ret)
{
	struct error *err = grow(&v->texts, v->ntexts, sizeof(*v->texts));
	char *copy = err ? NULL : strdup(s);

	if (!copy)
		return err ? err : &error_no_memory;
	*ret = v->texts[v->ntexts++] = copy;
	return NULL;
}

struct error *profile_string(struct profile *p, const char *s, const char **ret)
{
	struct private *v = p->private;

	*ret = NULL;
	if (!s)
		return NULL;
	return strlen(s) < STRING_MAX ? string_pool_add(&v->strings, s, ret) : add_text(v, s, ret);
}

struct error *profile_image(struct profile *p, const char *path, const char *build_id, u32 *ret)
{
	struct private *v = p->private;
	struct profile_image image;
	struct error *err;

	*ret = 0;
	if ((err = string_pool_add(&v->strings, path, &image.path)) ||
	        (err = string_pool_add(&v->strings, build_id, &image.build_id)))
		return err;
	for (u32 i = 1; i < p->nimages; i++)
		if (p->images[i].path == image.path && p->images[i].build_id == image.build_id) {
			*ret = i;
			return NULL;
		}
	if (p->nimages == PROFILE_MAX_IMAGES)
		return NULL;
	err = reserve(&p->images, p->nimages, &v->images_capacity, sizeof(*p->images));
	if (!err)
		p->images[ *ret = p->nimages++] = image;
	return err;
}

static bool same_node(const void *ctx, u32 index, const void *wanted)
{
	const struct profile *p = ctx;
	const struct profile_node *a = &p->nodes[index], *b = wanted;

	return a->parent == b->parent && a->function == b->function;
}

static struct error *add_node(struct profile *p, const struct profile_node *node, u32 hash)
{
	struct private *v = p->private;
	struct profile_node *parent;
	struct error *err;

	if ((err = index_table_reserve(&v->nodes)) ||
	        (err = reserve(&p->nodes, p->nnodes, &v->nodes_capacity, sizeof(*p->nodes))))
		return err;
	parent = &p->nodes[node->parent];
	p->nodes[p->nnodes] = *node;
	p->nodes[p->nnodes].sibling = parent->child;
	parent->child = p->nnodes;
	index_table_put(&v->nodes, hash, p->nnodes++);
	return NULL;
}

static struct error *make_child(struct profile *p, u32 parent, u32 function, u32 *ret)
{
	struct profile_node wanted = {.function = function, .parent = parent};
	u32 hash = mix(parent, function), index = p->nodes[parent].child;
	struct error *err;

	if (index && p->nodes[index].function != function)
		index = index_table_find(&((struct private *)p->private)->nodes, hash, same_node, p, &wanted);

	if (!index) {
		if ((err = add_node(p, &wanted, hash)))
			return err;
		index = p->nnodes - 1;
	}
	*ret = index;
	return NULL;
}

struct error *profile_child(struct profile *p, u32 node, u32 function, u32 *ret)
{
	struct private *v = p->private;
	struct profile_node wanted = {.function = function, .parent = node};
	struct error *err;

	if (node && node == v->overflow) {
		*ret = node;
		return NULL;
	}
	if (p->nnodes < p->max_nodes || index_table_find(&v->nodes, mix(node, function), same_node, p, &wanted))
		return make_child(p, node, function, ret);
	if (!v->overflow && (err = make_child(p, 0, PROFILE_FULL, &v->overflow)))
		return err;
	*ret = v->overflow;
	return NULL;
}

void profile_add(struct profile *p, u32 node, u64 count)
{
	u64 *self = &p->nodes[node].self;

	*self = (s64)count < 0 && *self < -count ? 0 : *self + count;
}

void profile_add_more(struct profile *p, u32 node, u64 count)
{
	p->nodes[node].more += count;
}

void profile_swap(struct profile *p)
{
	const char *unit = p->meta.unit;

	p->meta.unit = p->meta.more;
	p->meta.more = unit;
	for (u32 i = 0; i < p->nnodes; i++) {
		u64 self = p->nodes[i].self;

		p->nodes[i].self = p->nodes[i].more;
		p->nodes[i].more = self;
	}
}

void profile_finish(struct profile *p)
{
	for (u32 i = 0; i < p->nnodes; i++)
		p->nodes[i].total = p->nodes[i].self;
	for (u32 i = p->nnodes; i-- > 1;)
		p->nodes[p->nodes[i].parent].total += p->nodes[i].total;
}

/* Closes the gaps that functions leave which have become others. number: the new one of each. */
static void merge_functions(struct profile *p, const u32 *as, u32 *number)
{
	struct private *v = p->private;
	u32 n = p->nfunctions, at = 0;

	index_table_clear(&v->functions);
	for (u32 i = 0; i < n; i++) {
		if (as[i] != i) {
			number[i] = number[as[i]];
			continue;
		}
		v->keys[at] = v->keys[i];
		p->functions[at] = p->functions[i];
		if (i > PROFILE_FULL)
			index_table_put(
			        &v->functions, hash_function(&(struct identity){v->keys[at], &p->functions[at]}), at);
		number[i] = at++;
	}
	p->nfunctions = at;
}

/* What of a node is of the approximate form of its function. */
struct doubt {
	u64 samples;
	u32 function; /* 0: nothing */
	bool sure;    /* something is of the certain form */
};

struct merging {
	const u32 *sure;
	u32 *number, *moved;  /* new numbers of functions and nodes */
	struct doubt *doubts; /* of new nodes */
};

static void note_doubt(const struct merging *g, const struct profile_node *node, struct doubt *d)
{
	if (g->number[node->function] == g->number[g->sure[node->function]]) {
		d->sure = true;
		return;
	}
	d->function = g->number[node->function];
	d->samples += node->total;
}

/* Gives nodes the form that most of their samples are of. */
static void settle_doubts(struct profile *p, const struct doubt *doubts)
{
	struct private *v = p->private;

	index_table_clear(&v->nodes);
	for (u32 i = 1; i < p->nnodes; i++) {
		struct profile_node *node = &p->nodes[i];

		if (doubts[i].function && (!doubts[i].sure || doubts[i].samples > node->total / 2))
			node->function = doubts[i].function;
		index_table_put(&v->nodes, mix(node->parent, node->function), i);
	}
}

/* In place: a node never moves up, nor does its parent. */
static struct error *merge_nodes(struct profile *p, const struct merging *g)
{
	struct private *v = p->private;
	u32 n = p->nnodes, *moved = g->moved;

	index_table_clear(&v->nodes);
	p->nodes[0].child = 0;
	p->nnodes = 1;
	for (u32 i = 1; i < n; i++) {
		struct profile_node node = p->nodes[i];
		u64 base = p->base ? p->base[i] : 0;
		u32 next = p->nnodes;
		u32 sure = g->sure[node.function];
		struct error *err = NULL;

		moved[i] = moved[node.parent];
		if (sure)
			err = make_child(p, moved[node.parent], g->number[sure], &moved[i]);
		if (err)
			return err;
		if (sure)
			note_doubt(g, &node, &g->doubts[moved[i]]);
		p->nodes[moved[i]].self += node.self;
		p->nodes[moved[i]].more += node.more;
		if (p->base)
			p->base[moved[i]] = base + (moved[i] == next ? 0 : p->base[moved[i]]);
	}
	v->overflow = moved[v->overflow];
	for (u32 i = 0; i < p->ntimes; i++)
		p->times[i].node = moved[p->times[i].node];
	return NULL;
}

struct error *profile_merge(struct profile *p, const u32 *as, const u32 *sure)
{
	struct merging g = {sure, calloc(p->nfunctions, sizeof(*g.number)), calloc(p->nnodes, sizeof(*g.moved)),
	        calloc(p->nnodes, sizeof(*g.doubts))};
	struct error *err = g.number && g.moved && g.doubts ? NULL : &error_no_memory;

	if (!err) {
		merge_functions(p, as, g.number);
		err = merge_nodes(p, &g);
		profile_finish(p);
	}
	if (!err)
		settle_doubts(p, g.doubts);
	free(g.number);
	free(g.moved);
	free(g.doubts);
	return err;
}

/* The root, its function, the function of what found no room. */
static struct error *fill_first(struct profile *p)
{
	static const struct profile_function all = {.name = "all", .module = "", .file = "", .kind = KIND_ROOT};
	static const struct profile_function full = {
	        .name = "[profile full]", .module = "", .file = "", .kind = KIND_UNKNOWN};
	struct private *v = p->private;
	struct error *err;

	if ((err = add_function(p, &(struct identity){0, &all})) ||
	        (err = add_function(p, &(struct identity){0, &full})) ||
	        (err = reserve(&p->nodes, 0, &v->nodes_capacity, sizeof(*p->nodes))) ||
	        (err = reserve(&p->images, 0, &v->images_capacity, sizeof(*p->images))))
		return err;
	p->images[p->nimages++] = (struct profile_image){"", ""};
	p->nodes[p->nnodes++] = (struct profile_node){0};
	return NULL;
}

struct error *profile_create(struct profile **ret)
{
	struct profile *p = calloc(1, sizeof(*p));
	struct error *err;

	if (!p || !(p->private = calloc(1, sizeof(struct private)))) {
		free(p);
		return &error_no_memory;
	}
	p->max_nodes = PROFILE_MAX_NODES;
	err = fill_first(p);
	if (err)
		profile_destroy(p);
	else
		*ret = p;
	return err;
}

void profile_destroy(struct profile *p)
{
	if (!p)
		return;
	struct private *v = p->private;

	index_table_free(&v->nodes);
	index_table_free(&v->functions);
	string_pool_free(&v->strings);
	for (u32 i = 0; i < v->ntexts; i++)
		free(v->texts[i]);
	free(v->texts);
	free(v->keys);
	free(v);
	free(p->functions);
	free(p->nodes);
	free(p->images);
	free(p->base);
	free(p->times);
	free(p);
}
