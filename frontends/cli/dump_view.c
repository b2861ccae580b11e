/* SPDX-License-Identifier: Apache-2.0 */
#include "dump_view.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "frontends/format/text.h"
#include "unwind/process/process.h"
#include "unwind/profile/thread_names.h"
#include "unwind/table.h"

/* What is known of a thread from the dumps before, by its number. */
struct seen {
	u64 switches, stack;
	u32 same, still, dump;
};

struct history {
	struct table index; /* 1 + index into seen, by tid */
	struct seen *seen;
	u32 nseen, dumps;
};

struct history *history_create(void)
{
	return calloc(1, sizeof(struct history));
}

void history_free(struct history *h)
{
	if (!h)
		return;
	table_free(&h->index);
	free(h->seen);
	free(h);
}

static u64 stack_hash(const struct dump_thread *t)
{
	return XXH3_64bits(t->frames, t->nframes * sizeof(*t->frames));
}

static struct seen *find_seen(const struct history *h, u32 tid)
{
	const u64 *at = table_get(&h->index, (u64)tid + 1);

	return at ? &h->seen[*at - 1] : NULL;
}

static void compare(const struct history *h, const struct seen *s, const struct dump_thread *t, u32 *same, u32 *still)
{
	bool known = s && s->dump == h->dumps && t->how == DUMP_WALKED;

	*same = known && s->stack == stack_hash(t) ? s->same + 1 : 0;
	*still = known && s->switches == t->at.switches ? s->still + 1 : 0;
}

struct error *history_add(struct history *h, const struct dump_list *list)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < list->n; i++) {
		const struct dump_thread *t = &list->items[i];
		struct seen *s = find_seen(h, t->at.tid),
		            fresh = {.switches = t->at.switches, .stack = stack_hash(t), .dump = h->dumps + 1};

		compare(h, s, t, &fresh.same, &fresh.still);
		if (!s) {
			struct seen *grown = realloc(h->seen, (h->nseen + 1) * sizeof(*grown));

			if (!grown)
				return &error_no_memory;
			h->seen = grown;
			s = &grown[h->nseen++];
			err = table_put(&h->index, (u64)t->at.tid + 1, h->nseen);
		}
		*s = fresh;
	}
	h->dumps++;
	return err;
}

/* The only path below a node. */
static u32 below(const struct profile *p, u32 node)
{
	return p->nodes[node].child;
}

u64 view_path_hash(const struct profile *p, u32 node)
{
	u64 hash = 1;

	for (; node; node = below(p, node)) {
		const u64 words[2] = {hash, p->nodes[node].function};

		hash = XXH3_64bits(words, sizeof(words));
	}
	return hash;
}

/* Where each thread's stack begins in the profile. */
static struct error *find_stacks(const struct profile *p, struct dump_view *v)
{
	struct table index = {0};
	struct error *err = NULL;

	for (u32 i = p->nodes[0].child; !err && i; i = p->nodes[i].sibling) {
		u32 tid;
		size_t len;

		if (thread_of_function(&p->functions[p->nodes[i].function], &tid, &len))
			err = table_put(&index, (u64)tid + 1, i);
	}
	for (u32 i = 0; !err && i < v->nthreads; i++) {
		struct view_thread *t = &v->threads[i];
		const u64 *node = table_get(&index, (u64)t->t->at.tid + 1);
		size_t len = 0;
		u32 tid;

		if (node && thread_of_function(&p->functions[p->nodes[*node].function], &tid, &len))
			t->name = strndup(p->functions[p->nodes[*node].function].name, len);
		else
			t->name = strdup(t->t->at.comm);
		t->top = node ? below(p, (u32)*node) : 0;
		t->stack = view_path_hash(p, t->top);
		err = t->name ? NULL : &error_no_memory;
	}
	table_free(&index);
	return err;
}

struct sorting {
	bool killed;
	u32 stack, count, first;
};

static int by_stack(const void *a, const void *b)
{
	const struct view_thread *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->t->at.tid > y->t->at.tid) - (x->t->at.tid < y->t->at.tid);
}

static int by_count(const void *a, const void *b)
{
	const struct sorting *x = a, *y = b;

	if (x->killed != y->killed)
		return y->killed - x->killed;
	return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
	                            : (x->first > y->first) - (x->first < y->first);
}

u32 view_group_end(const struct dump_view *v, u32 i)
{
	u32 end = i + 1;

	while (end < v->nthreads && v->threads[end].stack == v->threads[i].stack)
		end++;
	return end;
}

static bool is_any_killed(const struct dump_view *v, u32 i, u32 end)
{
	while (i < end && !(v->threads[i].t->at.flags & THREAD_KILLED))
		i++;
	return i < end;
}

/*
 * Groups, the largest last: what is rare is interesting, and what all wait in is not; of one size by thread. First
 * comes what a process died of.
 */
static struct error *sort(struct dump_view *v)
{
	struct view_thread *sorted = calloc(v->nthreads + 1, sizeof(*sorted)), *at = sorted;
	struct sorting *groups = calloc(v->nthreads + 1, sizeof(*groups));
	u32 n = 0;

	if (!sorted || !groups) {
		free(sorted);
		free(groups);
		return &error_no_memory;
	}
	qsort(v->threads, v->nthreads, sizeof(*v->threads), by_stack);
	for (u32 i = 0, end; i < v->nthreads; i = end) {
		end = view_group_end(v, i);
		groups[n++] = (struct sorting){.killed = is_any_killed(v, i, end),
		        .stack = i,
		        .count = end - i,
		        .first = v->threads[i].t->at.tid};
	}
	qsort(groups, n, sizeof(*groups), by_count);
	for (u32 i = 0; i < n; i++, at += groups[i - 1].count)
		memcpy(at, &v->threads[groups[i].stack], groups[i].count * sizeof(*at));
	free(v->threads);
	free(groups);
	v->threads = sorted;
	v->nstacks = n;
	return NULL;
}

struct error *view_make(struct dump *d, const struct dump_list *list, const struct history *h, struct dump_view *ret)
{
	const struct profile *p = dump_profile(d);
	struct dump_view v = {.profile = p,
	        .threads = calloc(list->n + 1, sizeof(*v.threads)),
	        .nthreads = list->n,
	        .dumps = h->dumps + 1};
	struct error *err = v.threads ? NULL : &error_no_memory;

	for (u32 i = 0; !err && i < list->n; i++) {
		v.threads[i].t = &list->items[i];
		compare(h, find_seen(h, list->items[i].at.tid), &list->items[i], &v.threads[i].same,
		        &v.threads[i].still);
	}
	if (!err)
		err = find_stacks(p, &v);
	if (!err)
		err = sort(&v);
	if (!err)
		err = view_waits(d, &v);
	if (!err)
		err = view_tasks(list, &v);
	if (err) {
		view_free(&v);
		return err;
	}
	*ret = v;
	return NULL;
}

void view_free(struct dump_view *v)
{
	for (u32 i = 0; v->threads && i < v->nthreads; i++) {
		free(v->threads[i].name);
		free(v->threads[i].own);
	}
	free(v->threads);
	free(v->tasks);
	free(v->verdict);
	*v = (struct dump_view){0};
}

u32 *view_frames(const struct dump_view *v, u32 top, u32 *n)
{
	u32 *frames, i = 0;

	for (u32 node = top; node; node = below(v->profile, node))
		i++;
	*n = i;
	frames = calloc(i + 1, sizeof(*frames));
	for (u32 node = top; frames && node; node = below(v->profile, node))
		frames[--i] = node;
	return frames;
}

const char *view_file(const struct profile_function *f)
{
	const char *slash = strrchr(f->file, '/');

	return slash ? slash + 1 : f->file;
}

/* "FILE:LINE)", or "FILE)" of a chunk: the rest of a name. */
static bool is_place(const char *text, const char *file)
{
	size_t n = strlen(file);

	if (!n || strncmp(text, file, n))
		return false;
	text += n;
	if (*text == ':')
		text += 1 + strspn(text + 1, "0123456789");
	return !strcmp(text, ")");
}

/* "A.run (app.py:7):9" is A.run at app.py, line 9; "read:26" of C is read at that line of its file. */
void view_name(const struct profile_function *f, char ret[VIEW_NAME])
{
	text_plain_name(f, ret, VIEW_NAME);
	for (char *open = ret; f->line && (open = strstr(open, " (")); open += 2)
		if (open > ret && (is_place(open + 2, view_file(f)) || is_place(open + 2, f->file))) {
			*open = '\0';
			return;
		}
}

const char *view_state(const struct dump_thread *t)
{
	if (t->how == DUMP_EXITING)
		return "exiting";
	if (t->at.flags & THREAD_KILLED)
		return "killed";
	if (t->at.flags & THREAD_IN_CORE)
		return t->at.syscall < 0 ? "in user code" : "in a system call";
	if (t->at.flags & THREAD_ON_CPU || t->how == DUMP_SAMPLED)
		return "running";
	if (t->at.state & THREAD_TRACED)
		return "stopped by a debugger";
	if (t->at.state & THREAD_STOPPED)
		return "stopped";
	if (t->at.state & THREAD_FROZEN)
		return "frozen";
	if (t->at.state & THREAD_UNINTERRUPTIBLE)
		return t->at.state & THREAD_NOLOAD ? "idle" : "sleeping, uninterruptible";
	return t->at.state & THREAD_INTERRUPTIBLE ? "sleeping" : "waiting for a CPU";
}
