/* SPDX-License-Identifier: Apache-2.0 */
#include "filter.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "unwind/profile/containers.h"

enum verdict { FILTER_JUDGED = 1, FILTER_INCLUDED = 2, FILTER_EXCLUDED = 4, FILTER_DROPPED = 8 };

struct filter_level { /* of the path to the current node */
	u32 function, node;
	bool made;  /* node is that of the profile */
	u8 verdict; /* of this frame and of those above it */
};

void filter_free(struct filter *s)
{
	profile_destroy(s->profile);
	pattern_free(&s->include);
	pattern_free(&s->exclude);
	free(s->verdict);
	free(s->path);
}

static bool is_dropped(const struct filter_options *o, enum profile_kind kind)
{
	if (kind == KIND_THREAD || kind == KIND_PROCESS)
		return kind == KIND_THREAD && !o->threads;
	if (kind == KIND_CONTAINER || kind == KIND_RUNNING || kind == KIND_RUNNABLE || kind == KIND_WAITING)
		return false;
	return kind == KIND_KERNEL ? o->no_kernel : o->no_user;
}

static bool matches(const struct pattern *p, const struct profile_function *f)
{
	return pattern_matches(p, text_name(f)) || pattern_matches(p, f->file);
}

static u8 judge(const struct filter *s, const struct profile_function *f)
{
	bool dropped = is_dropped(&s->options, f->kind);
	/* "python app.py" would match "app" */
	bool heard = f->kind == KIND_THREAD || (!dropped && f->kind != KIND_PROCESS && f->kind != KIND_CONTAINER);

	return FILTER_JUDGED | (heard && matches(&s->include, f) ? FILTER_INCLUDED : 0) |
	       (heard && matches(&s->exclude, f) ? FILTER_EXCLUDED : 0) | (dropped ? FILTER_DROPPED : 0);
}

/* Judges a function of the profile once. */
static struct error *set_verdict(struct filter *s, u32 function)
{
	if (function >= s->nverdicts) {
		u32 more = function + function / 2 + 256;
		u8 *verdict = realloc(s->verdict, more);

		if (!verdict)
			return &error_no_memory;
		memset(verdict + s->nverdicts, 0, more - s->nverdicts);
		s->nverdicts = more;
		s->verdict = verdict;
	}
	if (!s->verdict[function])
		s->verdict[function] = judge(s, &s->profile->functions[function]);
	return NULL;
}

struct error *filter_function(struct filter *s, u64 key, const struct profile_function *f, u32 *ret)
{
	struct error *err = profile_function(s->profile, key, f, false, ret);

	return err ? err : set_verdict(s, *ret);
}

struct error *filter_create(const struct filter_options *options, struct filter *ret)
{
	struct filter s = {.options = *options, .capacity = 256};
	struct error *err = pattern_compile(options->include, &s.include);

	if (!err)
		err = pattern_compile(options->exclude, &s.exclude);
	if (!err)
		err = profile_create(&s.profile);
	if (!err && !(s.path = calloc(s.capacity, sizeof(*s.path))))
		err = &error_no_memory;
	if (!err)
		err = set_verdict(&s, PROFILE_FULL);
	if (err) {
		filter_free(&s);
		return err;
	}
	s.path[0] = (struct filter_level){.made = true, .verdict = s.include.set ? 0 : FILTER_INCLUDED};
	*ret = s;
	return NULL;
}

/* Makes the nodes of the path down to depth. */
static struct error *make_path(struct filter *s, u32 depth)
{
	struct error *err = NULL;
	u32 from = depth;

	while (!s->path[from].made)
		from--;
	for (u32 d = from + 1; !err && d <= depth; d++) {
		struct filter_level *level = &s->path[d];

		level->node = level[-1].node;
		if (!(s->verdict[level->function] & FILTER_DROPPED))
			err = profile_child(s->profile, level->node, level->function, &level->node);
		level->made = !err;
	}
	return err;
}

static struct error *reserve(struct filter *s, u32 depth)
{
	u32 more = depth + depth / 2 + 64;
	struct filter_level *path;

	if (depth < s->capacity)
		return NULL;
	path = reallocarray(s->path, more, sizeof(*path));
	if (!path)
		return &error_no_memory;
	s->path = path;
	s->capacity = more;
	return NULL;
}

static bool is_left_out(u8 verdict)
{
	return !(verdict & FILTER_INCLUDED) || verdict & FILTER_EXCLUDED;
}

struct error *filter_node(struct filter *s, u32 depth, u32 function, u64 count)
{
	struct error *err = reserve(s, depth);
	u8 verdict;

	if (err)
		return err;
	verdict = s->path[depth - 1].verdict | s->verdict[function];
	s->path[depth] = (struct filter_level){.function = function, .verdict = verdict};
	if (!count || is_left_out(verdict))
		return NULL;
	err = make_path(s, depth);
	if (!err)
		profile_add(s->profile, s->path[depth].node, count);
	return err;
}

struct error *filter_container(struct filter *s, const char *text, u32 *depth)
{
	u32 levels[CONTAINER_LEVELS], n;
	struct error *err = container_functions(s->profile, text, levels, &n);

	for (u32 i = 0; !err && i < n; i++) {
		err = set_verdict(s, levels[i]);
		if (!err)
			err = filter_node(s, ++*depth, levels[i], 0);
	}
	return err;
}

u32 filter_place(const struct filter *s, u32 depth)
{
	return s->path[depth].made ? s->path[depth].node : UINT32_MAX;
}

struct error *filter_more(struct filter *s, u32 depth, u64 count)
{
	struct error *err = NULL;

	if (!count || (!s->path[depth].made && (!depth || is_left_out(s->path[depth].verdict))))
		return NULL;
	if (!s->path[depth].made)
		err = make_path(s, depth);
	if (!err)
		profile_add_more(s->profile, s->path[depth].node, count);
	return err;
}
