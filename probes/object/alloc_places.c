/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_places.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "alloc.h"
#include "alloc_samples.h"
#include "seen_files.h"
#include "probes/hit/hit_find.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/process/view.h"
#include "unwind/runtime_allocator.h"
#include "unwind/grow.h"
#include "unwind/symbols/symbols.h"

#define PROCESSES  1024
#define INNER_MOST 8192 /* calls that an allocator makes of itself */
#define MOST       10   /* stacks in 10 ms, before the interval grows */
#define STEER_NS   100000000ull
#define IDLE       50 /* stacks in that time: so few that the interval may be smaller */
#define FOUND_MAX  (4 * RUNTIME_ALLOCATORS_MAX)

struct file {
	struct image *img; /* owned */
	struct alloc_functions functions;
	u32 number; /* of its first function */
};

struct looked { /* a process as it was looked at last */
	u32 process;
	pid_t pid;
	u64 maps_hash;
	u32 unknown; /* alloc_places_unknown() */
};

struct alloc_places {
	struct alloc_places_options options;
	struct file **files;
	u32 nfiles;
	struct seen_files seen;
	struct looked *looked;
	u32 nlooked, missed;
	u32 numbers;                               /* of functions so far */
	u32 unknown;                               /* of that process: runtime_allocator_ops.find */
	struct runtime_allocator found[FOUND_MAX]; /* of a view of a language, in the process that is looked at */
	u32 nfound;
	char text[256];
	u64 steered_ns, taken; /* stacks, until then */
};

void alloc_places_prepare(struct sample *skel, u32 threads)
{
	bpf_map__set_max_entries(skel->maps.alloc_inner, INNER_MOST);
	bpf_map__set_max_entries(skel->maps.alloc_outside, INNER_MOST);
	bpf_map__set_max_entries(skel->maps.alloc_tails, threads);
	bpf_map__set_max_entries(skel->maps.alloc_threads, threads);
	bpf_map__set_max_entries(skel->maps.alloc_counter_at, PROCESSES);
}

/* The smallest interval that was asked for, in bytes. */
static u64 alloc_interval_least(const struct alloc_options *options)
{
	return options->interval >= 1 ? (u64)options->interval : 1;
}

struct error *alloc_places_create(const struct alloc_places_options *options, struct alloc_places **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	(*ret)->options = *options;
	return NULL;
}

void alloc_places_destroy(struct alloc_places *a)
{
	if (!a)
		return;
	for (u32 i = 0; i < a->nfiles; i++) {
		image_put(a->files[i]->img);
		free(a->files[i]);
	}
	free(a->files);
	free(a->seen.of);
	free(a->looked);
	free(a);
}

/* The calls that the file's allocator makes of itself, for BPF. */
static void tell_inner(struct alloc_places *a, const struct file *f)
{
	struct bpf_map *map = object_skeleton(a->options.host->object)->maps.alloc_inner;
	const struct alloc_functions *all = &f->functions;
	u32 one = 1;

	for (u32 i = 0; i < all->ninner; i++) {
		const struct alloc_function *of = &all->of[all->inner[i].function];
		u64 key = alloc_inner_key(f->number + all->inner[i].function, (long)(all->inner[i].to - of->place));

		bpf_map__update_elem(map, &key, sizeof(key), &one, sizeof(one), BPF_ANY);
	}
}

/* The same where libc's mmap() makes the memory that an allocator of another file hands out. */
static void tell_outside(struct alloc_places *a, const struct file *f, const struct process *p, u64 bias)
{
	struct bpf_map *map = object_skeleton(a->options.host->object)->maps.alloc_outside;
	u32 one = 1;

	for (u32 i = 0; i < f->functions.noutside; i++) {
		struct alloc_outside key = {.addr = bias + f->functions.outside[i], .tgid = (u32)p->pid};

		bpf_map__update_elem(map, &key, sizeof(key), &one, sizeof(one), BPF_ANY);
	}
}

static void name_file(struct alloc_places *a, const struct file *f)
{
	const char *base = strrchr(f->img->path, '/'), *kind = alloc_functions_kind(f->img);
	size_t n = strlen(a->text);

	snprintf(a->text + n, sizeof(a->text) - n, "%s%s%s%s%s", n ? ", " : "", base ? base + 1 : f->img->path,
	        kind ? " (" : "", kind ? kind : "", kind ? ")" : "");
}

#define NEEDS_NAMES                                                                                                    \
	"give its debug file a place below /usr/lib/debug, or a symbol table to the program; `yrt leak --growth` and " \
	"`yrt heap` need "                                                                                             \
	"no names"

/* Blocks that no uprobe can see. */
static void note_unseen(const struct alloc_places *a, struct image *img, bool found)
{
	const struct sampler_options *options = a->options.host->options;
	const char *base = strrchr(img->path, '/'), *shown_by = alloc_functions_own_heap(img);
	const char *nameless = found ? NULL : alloc_functions_nameless(img);

	if (nameless)
		options->warn(options->ctx,
		        error_hint(
		                error_new(ERROR_INTERNAL,
		                        "%s has %s linked in, whose functions have no names: blocks in it are not seen",
		                        base ? base + 1 : img->path, nameless),
		                "%s", NEEDS_NAMES));
	if (shown_by)
		options->warn(options->ctx,
		        error_hint(error_new(ERROR_INTERNAL,
		                           "%s has a heap of its own, which asks libc for large parts: blocks in it "
		                           "are not seen",
		                           base ? base + 1 : img->path),
		                "`%s` shows who asks for them", shown_by));
}

/* What of it is known; files without malloc() are kept, too, so that they are read once. */
static struct error *read_file(struct alloc_places *a, struct image *img, const char *root, struct file **ret)
{
	struct error *err = symbols_load(img, root);
	const char *refused = err ? NULL : alloc_functions_refused(img);
	cleanup(free) struct file *f = NULL;

	if (!err && refused)
		err = error_hint(error_new(ERROR_UNSUPPORTED,
		                         "%s replaces the allocator (%s): its calls say little of "
		                         "the program",
		                         img->path, refused),
		        "its own reports show leaks and errors; use a build without it");
	if (!err)
		err = grow(&a->files, a->nfiles, sizeof(*a->files));
	f = err ? NULL : calloc(1, sizeof(*f));
	if (!f)
		return err ? err : &error_no_memory;
	err = alloc_functions_find(img, &f->functions);
	if (err)
		return err;
	note_unseen(a, img, f->functions.n);
	f->img = image_get(img);
	f->number = a->numbers;
	a->numbers += f->functions.n;
	if (f->functions.n) {
		tell_inner(a, f);
		name_file(a, f);
	}
	*ret = f;
	a->files[a->nfiles++] = TAKE(f);
	return NULL;
}

/* The functions by which runtimes of the view make their objects, in this process. */
static void find_allocators(struct alloc_places *a, const struct process *p, const struct view *view)
{
	struct runtime_process seen = process_view(p);
	struct symbol sym;

	a->nfound = a->unknown = 0;
	for (u32 i = 0; i < p->ninstances && a->nfound <= FOUND_MAX - RUNTIME_ALLOCATORS_MAX; i++) {
		const struct instance *in = &p->instances[i];
		const struct runtime_allocator_ops *ops = view_has(view, in->ops->id) ? in->ops->allocator : NULL;

		u32 n = ops && ops->find && in->data ? ops->find(in->data, &seen, &a->found[a->nfound], &a->unknown)
		                                     : 0;

		a->nfound += n;
		for (const struct runtime_allocator *r = ops && !n ? ops->named : NULL;
		        r && r->symbol && a->nfound < FOUND_MAX && in->loaded->image; r++)
			if (symbols_lookup(in->loaded->image, r->symbol, &sym))
				a->found[a->nfound++] =
				        (struct runtime_allocator){r->symbol, sym.start + in->bias, r->shape, 0};
	}
}

static bool is_instruction(const struct runtime_allocator *r)
{
	return r->shape == ALLOC_AT || r->shape == ALLOC_BEFORE;
}

static void gather(
        const struct alloc_places *a, const struct process *p, const struct mapping *m, struct alloc_functions *f)
{
	for (u32 i = 0; i < a->nfound; i++)
		if (!is_instruction(&a->found[i]) && mapping_find(p->mappings, p->maps.nlines, a->found[i].addr) == m)
			alloc_functions_add(f, a->found[i].symbol, a->found[i].shape, a->found[i].addr - m->bias);
}

/* Of a view of a language. *ret is NULL if nothing of it is there yet: it is looked for again. */
static struct error *find_of_runtime(
        struct alloc_places *a, const struct process *p, const struct mapping *m, const char *root, struct file **ret)
{
	cleanup(free) struct file *f = calloc(1, sizeof(*f));
	struct error *err = f ? symbols_load(m->image, root) : &error_no_memory;

	*ret = NULL;
	for (u32 i = 0; !err && i < a->nfiles; i++)
		if (a->files[i]->img == m->image) {
			*ret = a->files[i];
			return NULL;
		}
	if (!err)
		gather(a, p, m, &f->functions);
	if (err || !f->functions.n)
		return err;
	err = alloc_functions_read(m->image, &f->functions);
	if (!err)
		err = grow(&a->files, a->nfiles, sizeof(*a->files));
	if (err)
		return err;
	f->img = image_get(m->image);
	f->number = a->numbers;
	a->numbers += f->functions.n;
	tell_inner(a, f);
	name_file(a, f);
	*ret = f;
	a->files[a->nfiles++] = TAKE(f);
	return NULL;
}

static struct error *find_file(struct alloc_places *a, struct image *img, const char *root, struct file **ret)
{
	for (u32 i = 0; i < a->nfiles; i++)
		if (a->files[i]->img == img) {
			*ret = a->files[i];
			return NULL;
		}
	return read_file(a, img, root, ret);
}

/* Instructions that allocate in place of a function. */
static struct error *place_at(
        const struct alloc_places *a, const struct process *p, const struct mapping *m, const char *path)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < a->nfound; i++) {
		struct alloc_function f = {
		        .name = a->found[i].symbol, .shape = a->found[i].shape, .operand = a->found[i].operand};

		if (is_instruction(&a->found[i]) && mapping_find(p->mappings, p->maps.nlines, a->found[i].addr) == m &&
		        hit_offset(m->image, a->found[i].addr - m->bias, true, &f.offset))
			err = a->options.place(a->options.ctx, p, m->image, path, &f, 0);
	}
	return err;
}

static struct error *look_at_file(struct alloc_places *a, const struct process *p, const struct mapping *m, pid_t tid)
{
	char path[PROC_MAP_PATH], root[64];
	struct error *err;
	struct file *f;

	snprintf(root, sizeof(root), "/proc/%d/root", tid);
	proc_map_path(path, tid, m->start, m->end);
	err = a->options.host->options->collect.names.view ? find_of_runtime(a, p, m, root, &f)
	                                                   : find_file(a, m->image, root, &f);
	if (err || !f || !f->functions.n || seen_files_has(&a->seen, p->pid, f))
		return err;
	err = seen_files_add(&a->seen, p->pid, f);
	if (err)
		return err;
	tell_outside(a, f, p, m->bias);
	if (a->options.allocator)
		err = a->options.allocator(a->options.ctx, p, m->image, path, m->bias, &f->functions);
	for (u32 i = 0; !err && a->options.place_return && i < f->functions.nreturns; i++)
		err = a->options.place_return(a->options.ctx, p, m->image, path, f->functions.returns[i].offset,
		        f->functions.returns[i].clearing);
	for (u32 i = 0; !err && i < f->functions.n; i++)
		if (!f->functions.of[i].wrapper)
			err = a->options.place(a->options.ctx, p, m->image, path, &f->functions.of[i], f->number + i);
	return err || !a->nfound ? err : place_at(a, p, m, path);
}

static struct error *look_at(struct alloc_places *a, const struct process *p)
{
	const struct view *view = a->options.host->options->collect.names.view;
	pid_t tid = living_thread(p->pid) ?: p->pid;
	bool sampled = false;
	struct error *err = a->options.samples && !view ? alloc_samples_look(a->options.samples, p, &sampled) : NULL;

	if (err || sampled)
		return err;
	if (view)
		find_allocators(a, p, view);
	for (u32 i = 0; !err && i < p->maps.nlines; i++) {
		const struct mapping *m = &p->mappings[i];

		if (m->image && m->prot & PROT_EXEC && m->image->fd >= 0)
			err = look_at_file(a, p, m, tid);
	}
	return err;
}

static struct looked *looked_at(struct alloc_places *a, u32 process)
{
	for (u32 i = 0; i < a->nlooked; i++)
		if (a->looked[i].process == process)
			return &a->looked[i];
	return NULL;
}

static bool was_looked_at(const struct alloc_places *a, pid_t pid)
{
	for (u32 i = 0; i < a->nlooked; i++)
		if (a->looked[i].pid == pid)
			return true;
	return false;
}

/* Those that have ended by now. What a process was before it ran another program is no process of its own. */
static struct error *count_missed(struct alloc_places *a)
{
	const struct targets *t = a->options.host->targets;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < t->nprocesses; i++) {
		const struct process *p = t->processes[i];

		if (!p->dead || looked_at(a, p->number))
			continue;
		err = grow(&a->looked, a->nlooked, sizeof(*a->looked));
		if (err)
			break;
		a->missed += !was_looked_at(a, p->pid);
		a->looked[a->nlooked++] = (struct looked){.process = p->number, .pid = p->pid};
	}
	return err;
}

struct error *alloc_places_look(struct alloc_places *a)
{
	const struct view *view = a->options.host->options->collect.names.view;
	const struct targets *t = a->options.host->targets;
	struct error *err = NULL;

	seen_files_forget_ended(&a->seen);
	for (u32 i = 0; !err && i < t->nprocesses; i++) {
		const struct process *p = t->processes[i];
		struct looked *l = looked_at(a, p->number);

		if (p->dead || (l && l->maps_hash == p->maps_hash && (a->seen.n || !view)))
			continue;
		if (!l && (err = grow(&a->looked, a->nlooked, sizeof(*a->looked))))
			break;
		l = l ? l : &a->looked[a->nlooked++];
		*l = (struct looked){.process = p->number, .pid = p->pid, .maps_hash = p->maps_hash};
		err = look_at(a, p);
		l->unknown = a->unknown;
	}
	return err ? err : count_missed(a);
}

static struct error *no_allocator(const struct process *p, const struct view *view)
{
	const char *hint = "`yrt alloc` shows what it asks libc for";

	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		for (u32 i = 0; i < p->ninstances; i++)
			if (p->instances[i].ops == *r && view_has(view, (*r)->id) && (*r)->allocator)
				hint = (*r)->allocator->missing;
	return error_hint(error_new(ERROR_UNSUPPORTED, "process %d (%s): the allocator of %s was not found", p->pid,
	                          p->comm, view->language),
	        "%s", hint);
}

struct error *alloc_places_check(const struct alloc_places *a)
{
	const struct targets *t = a->options.host->targets;
	const struct view *view = a->options.host->options->collect.names.view;

	if (*a->text || !t->nprocesses || *alloc_samples_text(a->options.samples))
		return NULL;
	if (view)
		return no_allocator(t->processes[0], view);
	return error_hint(error_new(ERROR_UNSUPPORTED, "process %d (%s) has no malloc that has a name",
	                          t->processes[0]->pid, t->processes[0]->comm),
	        "it is linked statically and stripped: %s; Go programs have `yrt go-alloc`", NEEDS_NAMES);
}

struct error *alloc_places_start(struct alloc_places *a, bool at_exec)
{
	const struct sampler_options *options = a->options.host->options;
	struct sample *skel = object_skeleton(a->options.host->object);
	struct error *err = at_exec ? NULL : alloc_places_look(a);

	if (!err && !at_exec && !options->selection)
		err = alloc_places_check(a);
	if (err)
		return err;
	skel->data->alloc_interval = alloc_interval_least(options->of_event);
	skel->bss->alloc_most = options->cpu_percent ? MOST : 0;
	return NULL;
}

void alloc_places_steer(struct alloc_places *a, u64 now)
{
	struct object *o = a->options.host->object;
	struct sample *skel = object_skeleton(o);
	struct alloc_counters counters;

	if (now - a->steered_ns < STEER_NS || skel->bss->alloc_window)
		return;
	error_free(object_sum(o, skel->maps.alloc_counted, (u64 *)&counters, sizeof(counters)));
	if (counters.taken - a->taken < IDLE &&
	        skel->data->alloc_interval / 2 >= alloc_interval_least(a->options.host->options->of_event))
		skel->data->alloc_interval /= 2;
	a->taken = counters.taken;
	a->steered_ns = now;
}

const char *alloc_places_text(const struct alloc_places *a)
{
	return a->text;
}

u32 alloc_places_missed(const struct alloc_places *a)
{
	return a->missed;
}

u32 alloc_places_unknown(const struct alloc_places *a)
{
	u32 sum = 0;

	for (u32 i = 0; i < a->nlooked; i++)
		sum += a->looked[i].unknown;
	return sum;
}
