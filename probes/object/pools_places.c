/* SPDX-License-Identifier: Apache-2.0 */
#include "pools_places.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "alloc_functions.h"
#include "pools_birth.h"
#include "pools_cookie.h"
#include "seen_files.h"
#include "probes/hit/hit_find.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "probes/uprobe.h"
#include "sample.skel.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/symbols/symbols.h"

#define SPECS   (POOL_SPECS_MAX + 2)
#define MAKINGS 64 /* places of a function that makes pools */

struct looked { /* a process as it was looked at last */
	u32 process;
	u64 maps_hash;
};

struct pool_places {
	const struct event_host *host;
	struct alloc_windows *windows;
	struct pool_spec spec[SPECS];
	u32 nspecs;
	struct looked *looked;
	u32 nlooked;
	struct seen_files seen;
	struct uprobe **always; /* of what makes and ends pools */
	u32 nalways;
	u32 numbers, found; /* of functions; of files in processes */
	char text[256];
};

struct place { /* what of a spec is to be placed in a process */
	struct pool_places *p;
	const struct process *process;
	struct image *img;
	const char *path;
	const struct pool_spec *spec;
};

static struct error *read_specs(struct pool_places *p, const struct pool_options *options)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < options->n; i++)
		err = pool_spec_parse(options->spec[i], &p->spec[p->nspecs++]);
	for (u32 i = 0; !err && pools_built_in[i] && p->nspecs < SPECS; i++)
		err = pool_spec_parse(pools_built_in[i], &p->spec[p->nspecs++]);
	return err;
}

struct error *pool_places_create(const struct event_host *host, struct alloc_windows *windows, struct pool_places **ret)
{
	struct pool_places *p = calloc(1, sizeof(*p));
	struct error *err;

	if (!p)
		return &error_no_memory;
	p->host = host;
	p->windows = windows;
	err = read_specs(p, host->options->of_event);
	if (err)
		pool_places_destroy(p);
	else
		*ret = p;
	return err;
}

void pool_places_destroy(struct pool_places *p)
{
	if (!p)
		return;
	for (u32 i = 0; i < p->nalways; i++)
		uprobe_take_away(p->always[i]);
	free(p->always);
	free(p->looked);
	free(p->seen.of);
	free(p);
}

/* A uprobe that is no matter of windows. */
static struct error *place_always(
        const struct place *at, const struct bpf_program *program, const u64 *offsets, const u64 *cookies, u32 n)
{
	struct pool_places *p = at->p;
	struct error *err = n ? grow(&p->always, p->nalways, sizeof(*p->always)) : NULL;

	if (!err && n)
		err = uprobe_place_all(
		        program, at->process->pid, at->path, offsets, cookies, n, &p->always[p->nalways]);
	p->nalways += n && !err;
	return err;
}

static bool find(const struct place *at, const struct pool_call *c, struct symbol *ret)
{
	return symbols_lookup(at->img, c->name, ret) && image_has_code(at->img, ret->start, ret->start + 1);
}

/* Those of a kind, with their code read. calls: which of the spec each is. */
static struct error *read_functions(
        const struct place *at, enum pool_kind kind, struct alloc_functions *f, const struct pool_call **calls)
{
	struct symbol sym;

	for (u32 i = 0; i < at->spec->n; i++) {
		const struct pool_call *c = &at->spec->call[i];
		u32 before = f->n;

		if (c->kind == kind && find(at, c, &sym))
			alloc_functions_add(f, c->name, ALLOC_ANY, sym.start);
		if (f->n > before)
			calls[before] = c;
	}
	return f->n ? alloc_functions_read(at->img, f) : NULL;
}

/* Does it call another one of them? Then that one is hit. */
static bool calls_another(const struct place *at, const struct alloc_functions *f, u32 number)
{
	struct symbol sym;

	for (u32 i = 0; i < f->ninner; i++)
		if (f->inner[i].function != number && symbols_find(at->img, f->inner[i].to - 1, &sym) &&
		        sym.start == f->of[number].addr)
			return true;
	return false;
}

static struct error *place_takers(const struct place *at)
{
	cleanup(free) struct alloc_functions *f = calloc(1, sizeof(*f));
	const struct pool_call *calls[POOL_CALLS_MAX];
	struct error *err = f ? read_functions(at, POOL_ALLOC, f, calls) : &error_no_memory;

	for (u32 i = 0; !err && i < f->n; i++) {
		const struct alloc_function *of = &f->of[i];
		u64 cookie = POOL_COOKIE((u64)calls[i]->pool, (u64)calls[i]->size) | (u64)of->pushed << 8 |
		             (u64)of->tails << 16 | (u64)of->stepped << 18 | (u64)(at->p->numbers + i) << 24;

		const struct alloc_window_place where = {.program = object_skeleton(at->p->host->object)->progs.on_pool,
		        .offset = of->offset,
		        .cookie = cookie,
		        .pair = of->pair};

		if (!of->wrapper && !calls_another(at, f, i))
			err = alloc_windows_add(at->p->windows, at->process, at->path, &where);
	}
	if (!err)
		at->p->numbers += f->n;
	return err;
}

/* What ends a pool, empties it, or frees a block of it. */
static struct error *place_ends(const struct place *at, enum pool_kind kind)
{
	const struct sample *skel = object_skeleton(at->p->host->object);
	const struct bpf_program *program = kind == POOL_FREE ? skel->progs.on_pool_free : skel->progs.on_pool_end;
	cleanup(free) struct alloc_functions *f = calloc(1, sizeof(*f));
	const struct pool_call *calls[POOL_CALLS_MAX];
	u64 offsets[POOL_CALLS_MAX], cookies[POOL_CALLS_MAX];
	struct error *err = f ? read_functions(at, kind, f, calls) : &error_no_memory;

	for (u32 i = 0; !err && i < f->n; i++) {
		offsets[i] = f->of[i].offset;
		cookies[i] = POOL_COOKIE((u64)calls[i]->pool, kind == POOL_FREE ? (u64)calls[i]->size : 0) |
		             (kind == POOL_RESET ? POOL_OUT : 0);
	}
	return err ? err : place_always(at, program, offsets, cookies, f->n);
}

/* Where it returns, if its code shows no better place. */
static struct error *place_returns(const struct place *at, const struct pool_call *c, const struct symbol *sym)
{
	const struct sample *skel = object_skeleton(at->p->host->object);
	cleanup(free) struct alloc_functions *f = calloc(1, sizeof(*f));
	u64 offsets[MAKINGS], cookies[MAKINGS], entry = POOL_COOKIE((u64)c->pool, 0), cookie = POOL_MAKES;
	struct error *err;
	u32 n;

	if (!f)
		return &error_no_memory;
	alloc_functions_add(f, c->name, ALLOC_ANY, sym->start);
	err = alloc_functions_read(at->img, f);
	n = f->nreturns < MAKINGS ? f->nreturns : MAKINGS;
	for (u32 i = 0; i < n; i++) {
		offsets[i] = f->returns[i].offset;
		cookies[i] = cookie | (c->out ? POOL_OUT : 0);
	}
	if (!err && c->out)
		err = place_always(at, skel->progs.on_pool_out, &f->of[0].offset, &entry, 1);
	return err ? err : place_always(at, skel->progs.on_pool, offsets, cookies, n);
}

static struct error *place_makers(const struct place *at)
{
	const struct sample *skel = object_skeleton(at->p->host->object);
	struct error *err = NULL;
	u64 cookie = POOL_MAKES, addr, offset;
	struct symbol sym;

	for (u32 i = 0; !err && i < at->spec->n; i++) {
		const struct pool_call *c = &at->spec->call[i];

		if (c->kind != POOL_CREATE || !find(at, c, &sym))
			continue;
		if (!c->out && pools_birth(at->img, sym.start, sym.end, &addr) &&
		        hit_offset(at->img, addr, true, &offset))
			err = place_always(at, skel->progs.on_pool, &offset, &cookie, 1);
		else
			err = place_returns(at, c, &sym);
	}
	return err;
}

static bool has_pools(const struct place *at)
{
	struct symbol sym;

	for (u32 i = 0; i < at->spec->n; i++)
		if (at->spec->call[i].kind == POOL_ALLOC && find(at, &at->spec->call[i], &sym))
			return true;
	return false;
}

static struct error *place_spec(const struct place *at)
{
	struct pool_places *p = at->p;
	const char *base = strrchr(at->img->path, '/');
	size_t n = strlen(p->text);
	struct error *err;

	if (!has_pools(at))
		return NULL;
	err = place_ends(at, POOL_DESTROY);
	if (!err)
		err = place_ends(at, POOL_RESET);
	if (!err)
		err = place_ends(at, POOL_FREE);
	if (!err)
		err = place_makers(at);
	if (!err)
		err = place_takers(at);
	if (!p->found++ || !strstr(p->text, base ? base + 1 : at->img->path))
		snprintf(p->text + n, sizeof(p->text) - n, "%s%s", n ? ", " : "", base ? base + 1 : at->img->path);
	return err;
}

static struct error *look_at_file(struct pool_places *p, const struct process *process, const struct mapping *m)
{
	pid_t tid = living_thread(process->pid) ?: process->pid;
	struct place at = {.p = p, .process = process, .img = m->image};
	char path[PROC_MAP_PATH], root[64];
	struct error *err;

	if (seen_files_has(&p->seen, process->pid, m->image))
		return NULL;
	err = seen_files_add(&p->seen, process->pid, m->image);
	if (err)
		return err;
	snprintf(root, sizeof(root), "/proc/%d/root", tid);
	proc_map_path(path, tid, m->start, m->end);
	at.path = path;
	err = symbols_load(m->image, root);
	for (u32 i = 0; !err && i < p->nspecs; i++) {
		at.spec = &p->spec[i];
		err = place_spec(&at);
	}
	return err;
}

static struct looked *looked_at(struct pool_places *p, u32 process)
{
	for (u32 i = 0; i < p->nlooked; i++)
		if (p->looked[i].process == process)
			return &p->looked[i];
	return NULL;
}

struct error *pool_places_look(struct pool_places *p)
{
	const struct targets *t = p->host->targets;
	struct error *err = NULL;

	seen_files_forget_ended(&p->seen);
	for (u32 i = 0; !err && i < t->nprocesses; i++) {
		const struct process *process = t->processes[i];
		struct looked *l = looked_at(p, process->number);

		if (process->dead || (l && l->maps_hash == process->maps_hash))
			continue;
		if (!l && (err = grow(&p->looked, p->nlooked, sizeof(*p->looked))))
			break;
		l = l ? l : &p->looked[p->nlooked++];
		*l = (struct looked){.process = process->number, .maps_hash = process->maps_hash};
		for (u32 k = 0; !err && k < process->maps.nlines; k++) {
			const struct mapping *m = &process->mappings[k];

			if (m->image && m->prot & PROT_EXEC && m->image->fd >= 0)
				err = look_at_file(p, process, m);
		}
	}
	return err ? err : alloc_windows_place(p->windows);
}

struct error *pool_places_check(const struct pool_places *p)
{
	const struct targets *t = p->host->targets;

	if (p->found || !t->nprocesses)
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED, "process %d (%s) has no memory pools that are known",
	                          t->processes[0]->pid, t->processes[0]->comm),
	        "nginx's and APR's are; describe others by --pool (`yrt pools --help`)");
}

const char *pool_places_text(const struct pool_places *p)
{
	return p->text;
}
