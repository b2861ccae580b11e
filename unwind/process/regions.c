/* SPDX-License-Identifier: Apache-2.0 */
/* From mappings and runtimes to the sorted array of regions that the driver searches. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cfi/jit_cfi.h"
#include "cfi/jit_code.h"
#include "cleanup.h"
#include "process.h"
#include "regions_fit.h"
#include "search.h"

#define USER_END (1ULL << 47) /* [vsyscall] lies above */

struct list {
	struct region *items;
	u32 n, capacity;
};

/* The tables of rows that a runtime made itself, kept as long as the rows are the same. */
struct own_table {
	struct own_table *next;
	const struct cfi_entry *entries;
	u32 nentries;
	u64 base;
	struct cfi *cfi;
	u32 *tables;
};

static struct error *push(struct list *list, const struct region *region)
{
	if (region->start >= region->end || region->end > USER_END)
		return NULL;
	if (list->n == list->capacity) {
		u32 capacity = list->capacity ? list->capacity * 2 : 64;
		struct region *grown = realloc(list->items, capacity * sizeof(*grown));

		if (!grown)
			return &error_no_memory;
		list->items = grown;
		list->capacity = capacity;
	}
	list->items[list->n++] = *region;
	return NULL;
}

/* [start, end) by the pieces of a table; what lies between pieces has no table. */
static struct error *push_pieces(struct list *list, struct region r, const struct cfi *cfi, const u32 *tables, u64 bias)
{
	struct error *err = NULL;
	u64 at = r.start, end = r.end;

	for (u32 i = 0; !err && cfi && i < cfi->npieces && at < end; i++) {
		u64 start = cfi->pieces[i].start + bias, stop = cfi->pieces[i].end + bias;

		if (stop <= at || start >= end)
			continue;
		r.table = 0;
		r.start = at;
		r.end = start;
		err = push(list, &r);
		r.table = tables[i];
		r.origin = start;
		r.start = start > at ? start : at;
		r.end = stop < end ? stop : end;
		if (!err)
			err = push(list, &r);
		at = r.end;
	}
	r.table = 0;
	r.start = at;
	r.end = end;
	return err ? err : push(list, &r);
}

/* The runtime of a file whose memory nobody has looked at; 0: none. */
static u8 unattached(const struct process *p, const struct module *module)
{
	for (const struct runtime_ops *const *r = runtimes; p->dead && !p->ninstances && *r; r++)
		if (module->loaded->runtime[(*r)->id])
			return (u8)(*r)->id;
	return 0;
}

/* Return addresses are looked up by the byte before them; the one that the kernel writes is the first of the page. */
static struct error *push_probed(struct list *list, struct region r)
{
	r.probed = r.unmapped = 1;
	if (!list->n || list->items[list->n - 1].end < r.start)
		r.start--;
	return push(list, &r);
}

static struct error *push_mapping(struct list *list, const struct process *p, const struct mapping *m)
{
	struct region r = {.start = m->start, .end = m->end, .module = m->module};
	const struct module *module = module_at(p->modules, m->module);

	if (!(m->prot & PROT_EXEC) || m->unfinished)
		return NULL;
	if (!strcmp(m->name, "[uprobes]"))
		return push_probed(list, r);
	if (!module)
		return push_pieces(list, r, m->anonymous ? p->jit.cfi : NULL, p->jit.tables, 0);
	r.runtime = unattached(p, module);
	return push_pieces(list, r, module->loaded->image->cfi, module->loaded->tables, module->bias);
}

static struct error *own_table(struct process *p, const struct runtime_region *r, u64 base, struct own_table **ret)
{
	struct own_table *t;
	struct error *err;

	for (t = p->own_tables; t; t = t->next)
		if (t->entries == r->entries && t->nentries == r->nentries && t->base == base)
			break;
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return &error_no_memory;
		t->entries = r->entries;
		t->nentries = r->nentries;
		t->base = base;
		err = cfi_from_entries(r->entries, r->nentries, r->start - base, r->end - base, &t->cfi);
		if (!err)
			err = modules_place(p->modules->arena, t->cfi, &t->tables);
		if (err) {
			cfi_destroy(t->cfi);
			free(t);
			return err;
		}
		t->next = p->own_tables;
		p->own_tables = t;
	}
	*ret = t;
	return NULL;
}

static struct error *push_claimed(
        struct list *list, struct process *p, struct region r, const struct runtime_region *claim)
{
	const struct module *module = module_at(p->modules, r.module);
	u64 base = module ? module->bias : 0;
	struct own_table *own;
	struct error *err;

	if (!claim->entries)
		return push(list, &r);
	err = own_table(p, claim, base, &own);
	return err ? err : push_pieces(list, r, own->cfi, own->tables, base);
}

struct overlay {
	struct process *p;
	const struct runtime_ops *ops;
	struct list *list;
};

/* Puts what is claimed where the list has nothing. */
static struct error *claim_holes(struct overlay *o, const struct runtime_region *claim)
{
	struct region hole = {.runtime = o->ops->id, .part = claim->part, .vm = claim->vm, .unmapped = 1};
	struct list old = *o->list, fresh = {0};
	struct error *err = NULL;
	u64 at = claim->start;

	for (u32 i = 0; !err && i < old.n; i++) {
		hole.start = at;
		hole.end = old.items[i].start < claim->end ? old.items[i].start : claim->end;
		err = push(&fresh, &hole);
		if (!err)
			err = push(&fresh, &old.items[i]);
		if (at < old.items[i].end)
			at = old.items[i].end;
	}
	hole.start = at;
	hole.end = claim->end;
	if (!err)
		err = push(&fresh, &hole);
	free(old.items);
	*o->list = fresh;
	return err;
}

/* Replaces [claim->start, claim->end) of the list by what a runtime claims. */
static struct error *claim_region(void *ctx, const struct runtime_region *claim)
{
	struct overlay *o = ctx;
	struct list old = *o->list, fresh = {0};
	struct error *err = NULL;

	if (claim->start >= claim->end)
		return NULL;
	if (claim->unmapped)
		return claim_holes(o, claim);
	for (u32 i = 0; !err && i < old.n; i++) {
		struct region r = old.items[i], left = r, right = r;

		if (claim->end <= r.start || claim->start >= r.end) {
			err = push(&fresh, &r);
			continue;
		}
		left.end = claim->start;
		right.start = claim->end;
		r.start = claim->start > r.start ? claim->start : r.start;
		r.end = claim->end < r.end ? claim->end : r.end;
		r.runtime = o->ops->id;
		r.part = claim->part;
		r.vm = claim->vm;
		err = push(&fresh, &left);
		if (!err)
			err = push_claimed(&fresh, o->p, r, claim);
		if (!err)
			err = push(&fresh, &right);
	}
	free(old.items);
	*o->list = fresh;
	return err;
}

static void add_resume(struct process *p, const struct instance *instance)
{
	bool exact = false;
	u32 vm = instance->ops->resume(instance->data, &exact), i = 0;

	while (i < PROCESS_RESUMES && p->entry.resume[i].runtime)
		i++;
	if (vm && i < PROCESS_RESUMES)
		p->entry.resume[i] = (struct region_resume){(u16)instance->ops->id, exact, vm};
}

static struct error *claim_regions(struct process *p, struct list *list)
{
	struct runtime_process view = process_view(p);
	struct error *err = NULL;

	memset(p->entry.resume, 0, sizeof(p->entry.resume));
	for (u32 i = 0; !err && i < p->ninstances; i++) {
		struct instance *instance = &p->instances[i];
		struct overlay o = {.p = p, .ops = instance->ops, .list = list};

		if (instance->data)
			err = instance->ops->regions(instance->data, &view, claim_region, &o);
		if (!err && instance->data && instance->ops->resume)
			add_resume(p, instance);
		if (err && err != &error_no_memory) {
			p->modules->complain(p->modules->complain_ctx, err);
			err = NULL;
		}
	}
	return err;
}

static void free_tables(struct process *p, struct cfi *cfi, u32 *tables)
{
	for (u32 i = 0; tables && i < cfi->npieces; i++)
		arena_free(p->modules->arena, tables[i], cfi->pieces[i].size);
	cfi_destroy(cfi);
	free(tables);
}

/* The rows before are freed a generation later, as the regions are. */
static struct error *replace(struct process *p, struct jit_tables fresh, struct jit_tables *now, struct jit_tables *old)
{
	struct error *err = fresh.cfi ? modules_place(p->modules->arena, fresh.cfi, &fresh.tables) : NULL;

	if (err) {
		cfi_destroy(fresh.cfi);
		return err;
	}
	free_tables(p, old->cfi, old->tables);
	*old = *now;
	*now = fresh;
	return NULL;
}

/* Unwind rows of code that the process compiled itself. */
static struct error *find_jit(struct process *p)
{
	struct jit_tables fresh = {.hash = p->jit.hash};
	struct error *err = jit_cfi_find(p->memory, p->mappings, p->maps.nlines, &fresh.hash, &fresh.cfi);

	return err || fresh.hash == p->jit.hash ? err : replace(p, fresh, &p->jit, &p->old_jit);
}

/* Code that neither a file, nor a runtime, nor the process itself describes. */
static bool is_undescribed(const struct region *r)
{
	return !r->module && !r->table && !r->runtime && !r->unmapped;
}

static u32 undescribed(const struct list *list, struct jit_range *ret)
{
	u32 n = 0;

	for (u32 i = 0; i < list->n; i++) {
		const struct region *r = &list->items[i];

		if (!is_undescribed(r))
			continue;
		if (n && ret[n - 1].end == r->start)
			ret[n - 1].end = r->end;
		else
			ret[n++] = (struct jit_range){r->start, r->end};
	}
	return n;
}

static struct error *find_code(struct process *p, const struct list *list)
{
	cleanup(free) struct jit_range *ranges = calloc(list->n + 1, sizeof(*ranges));
	u32 n = ranges ? undescribed(list, ranges) : 0;
	struct jit_tables fresh = {0};
	struct error *err;
	bool changed;

	if (ranges && n && !p->code)
		p->code = jit_code_create();
	if (!ranges || (n && !p->code))
		return &error_no_memory;
	if (!p->code)
		return NULL;
	err = jit_code_find(p->code, p->pid, p->memory, ranges, n, &changed, &fresh.cfi);
	return err || !changed ? err : replace(p, fresh, &p->made, &p->old_made);
}

/* Makes rows of code that nothing describes. */
static struct error *describe_rest(struct process *p, struct list *list)
{
	struct error *err = p->memory && !p->dead ? find_code(p, list) : NULL;
	struct list old = *list, fresh = {0};

	if (err || !p->made.cfi)
		return err;
	for (u32 i = 0; !err && i < old.n; i++)
		err = is_undescribed(&old.items[i]) ? push_pieces(&fresh, old.items[i], p->made.cfi, p->made.tables, 0)
		                                    : push(&fresh, &old.items[i]);
	free(old.items);
	*list = fresh;
	return err;
}

void regions_saw(struct process *p, u64 addr)
{
	if (p->code)
		jit_code_saw(p->code, addr);
}

/* Once a process. */
static void complain(struct process *p, u32 n, const struct regions_lost *lost)
{
	if (p->crowded || !p->modules->complain || (!lost->rows && !lost->regions))
		return;
	p->crowded = true;
	p->modules->complain(p->modules->complain_ctx,
	        error_hint(error_new(ERROR_UNSUPPORTED,
	                           "the code of process %d is in %u pieces, more than the %u that yrt looks up", p->pid,
	                           n, REGIONS_MAX),
	                lost->regions ? "stacks end at %u of them that belong to no file"
	                              : "of %u of them that the process made, yrt follows only frame pointers",
	                lost->regions ? lost->regions : lost->rows));
}

static struct error *place(struct process *p, const struct list *list)
{
	struct regions_lost lost;
	u32 n = regions_fit(list->items, list->n, REGIONS_MAX, &lost), size = n * sizeof(*list->items), offset;
	struct error *err;

	complain(p, list->n, &lost);

	if (!n)
		return NULL;
	err = arena_alloc(p->modules->arena, size, &offset);
	if (err)
		return err;
	memcpy(arena_at(p->modules->arena, offset, size), list->items, size);
	arena_free(p->modules->arena, p->old_regions, p->old_size);
	p->old_regions = p->entry.regions;
	p->old_size = p->regions_size;
	p->regions_size = size;
	p->entry.regions = offset;
	p->entry.nregions = n;
	return NULL;
}

struct error *regions_build(struct process *p)
{
	struct list list = {0};
	struct error *err = p->memory && !p->dead ? find_jit(p) : NULL;

	for (u32 i = 0; !err && i < p->maps.nlines; i++)
		err = push_mapping(&list, p, &p->mappings[i]);
	if (!err)
		err = claim_regions(p, &list);
	if (!err)
		err = describe_rest(p, &list);
	if (!err)
		err = place(p, &list);
	free(list.items);
	return err;
}

static bool has_region(const struct region *regions, u32 n, const struct mapping *m)
{
	u32 at = SEARCH(n, k, regions[k].end <= m->start);

	return at < n && regions[at].start < m->end;
}

/* The array is sorted, as mappings are. */
struct error *regions_add_files(struct process *p)
{
	u32 n = p->entry.nregions, at = 0;
	const struct region *old = n ? arena_at(p->modules->arena, p->entry.regions, n * sizeof(*old)) : NULL;
	struct list list = {0};
	struct error *err = NULL;

	for (u32 i = 0; !err && i < p->maps.nlines; i++) {
		const struct mapping *m = &p->mappings[i];

		while (!err && at < n && old[at].start < m->start)
			err = push(&list, &old[at++]);
		if (!err && m->module && !has_region(old, n, m))
			err = push_mapping(&list, p, m);
	}
	while (!err && at < n)
		err = push(&list, &old[at++]);
	if (!err)
		err = place(p, &list);
	free(list.items);
	return err;
}

void regions_free(struct process *p)
{
	struct own_table *t = p->own_tables, *next;

	arena_free(p->modules->arena, p->entry.regions, p->regions_size);
	arena_free(p->modules->arena, p->old_regions, p->old_size);
	for (; t; t = next) {
		next = t->next;
		free_tables(p, t->cfi, t->tables);
		free(t);
	}
	free_tables(p, p->jit.cfi, p->jit.tables);
	free_tables(p, p->old_jit.cfi, p->old_jit.tables);
	free_tables(p, p->made.cfi, p->made.tables);
	free_tables(p, p->old_made.cfi, p->old_made.tables);
	jit_code_destroy(p->code);
	p->own_tables = NULL;
}
