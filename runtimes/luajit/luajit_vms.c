/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_vms.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "grow.h"
#include "binary/resident.h"

#define TABLE_MIN    90 /* pointers: fewer than any build has */
#define TABLE_MAX    512
#define STRIDE       512 /* bytes: meets every table of TABLE_MIN pointers */
#define PIECE        (1u << 20)
#define EXAMINE_COST (64u << 10)  /* of the budget: looking at a pointer takes as long as reading so many bytes */
#define LOW_END      (1ull << 32) /* without GC64 references have 32 bits */
#define NOWHERE      (~0ull)
#define THREAD       6            /* ~LJ_TTHREAD */
#define AREA_MAX     (1ull << 31) /* code that calls the VM is within reach of it */
#define IN_USE_MIN   1024         /* bytes that a VM holds at least beyond GG_State: its string table */

struct search {
	const struct luajit_image *image;
	u64 bias;
	struct memory *memory;
	struct luajit_vms *ret;
	u64 done;   /* of the mapping: what lies below is known */
	u64 budget; /* bytes */
	u8 *bytes;  /* PIECE of them */
	u8 block[512];
	u64 block_at;
};

u64 luajit_vms_read(struct memory *memory, u64 address, struct layout_member member)
{
	u64 value = 0;

	if (member.size > sizeof(value) || !memory_read(memory, &value, member.size, address + member.at))
		return 0;
	return value;
}

static bool is_code(const struct search *s, u64 value)
{
	const struct luajit_blob *blob = &s->image->blob;

	return value - s->bias - blob->start < blob->end - blob->start;
}

/* A word at an address that is a multiple of 8, by blocks. */
static bool read_word(struct search *s, u64 address, u64 *ret)
{
	u64 start = address & ~(u64)(sizeof(s->block) - 1);

	if (start != s->block_at) {
		s->block_at = memory_read(s->memory, s->block, sizeof(s->block), start) ? start : NOWHERE;
		if (s->block_at == NOWHERE)
			return false;
	}
	memcpy(ret, s->block + (address - start), sizeof(*ret));
	return true;
}

/* Pointers into the VM's code from address on, in steps of 8 or -8 bytes. */
static u32 count_pointers(struct search *s, u64 address, s64 step)
{
	u32 n = 0;
	u64 value;

	while (n < TABLE_MAX && read_word(s, address + n * step, &value) && is_code(s, value))
		n++;
	return n;
}

static bool is_vm(struct search *s, u64 g, u32 npointers)
{
	const struct luajit_layout *l = s->image->layout;
	u64 gg = g - l->gg_g.at;
	u64 own = l->gg_dispatch.at + npointers * sizeof(u64);

	return luajit_vms_read(s->memory, gg, l->l_gct) == THREAD && luajit_vms_read(s->memory, gg, l->l_glref) == g &&
	       luajit_vms_read(s->memory, g, l->g_mainthref) == gg &&
	       luajit_vms_read(s->memory, g, l->g_gc_total) >= own + IN_USE_MIN;
}

bool luajit_vms_is_vm(const struct luajit_image *image, u64 bias, struct memory *memory, u64 g)
{
	struct search s = {.image = image, .bias = bias, .memory = memory, .block_at = NOWHERE};
	u64 table = g - image->layout->gg_g.at + image->layout->gg_dispatch.at;
	u32 n = table % sizeof(u64) ? 0 : count_pointers(&s, table, sizeof(u64));

	return n >= TABLE_MIN && is_vm(&s, g, n);
}

u32 luajit_vms_areas(const struct luajit_image *image, struct memory *memory, u64 g, struct luajit_area *ret, u32 max)
{
	const struct luajit_layout *l = image->layout;
	u64 link[2]; /* struct MCLink */
	u64 area = luajit_vms_read(memory, g - l->gg_g.at + l->gg_j.at, l->j_mcarea);
	u32 n;

	for (n = 0; area && n < max; n++, area = link[0]) {
		if (!memory_read(memory, link, sizeof(link), area) || !link[1] || link[1] > AREA_MAX)
			break;
		ret[n] = (struct luajit_area){area, area + link[1]};
	}
	return n;
}

static struct error *add(struct luajit_vms *vms, u64 g)
{
	struct error *err = grow(&vms->g, vms->n, sizeof(*vms->g));

	if (!err)
		vms->g[vms->n++] = g;
	return err;
}

static void spend(struct search *s, u64 bytes)
{
	s->budget -= bytes < s->budget ? bytes : s->budget;
}

/* address holds a pointer into the VM's code: is it one of a table? */
static struct error *examine(struct search *s, u64 address)
{
	const struct luajit_layout *l = s->image->layout;
	u32 before, behind;
	u64 table, g;

	s->block_at = NOWHERE; /* read anew: the process goes on */
	spend(s, EXAMINE_COST);
	before = count_pointers(s, address - sizeof(u64), -(s64)sizeof(u64));
	behind = count_pointers(s, address, sizeof(u64));
	s->done = address + behind * sizeof(u64);
	table = address - before * sizeof(u64);
	g = table - l->gg_dispatch.at + l->gg_g.at;
	if (before + behind < TABLE_MIN || !is_vm(s, g, before + behind))
		return NULL;
	return add(s->ret, g);
}

static struct error *search_bytes(struct search *s, u64 start, u64 size)
{
	struct error *err = NULL;
	u64 value;

	for (u64 at = 0; !err && at + sizeof(value) <= size; at += STRIDE) {
		memcpy(&value, s->bytes + at, sizeof(value));
		if (is_code(s, value) && start + at >= s->done)
			err = examine(s, start + at);
	}
	return err;
}

/* A page may go away between being listed and being read: the others are then read one by one. */
static struct error *search_piece(struct search *s, u64 start, u64 end, u64 page)
{
	struct error *err = NULL;

	spend(s, end - start);
	s->ret->searched += end - start;
	if (memory_read(s->memory, s->bytes, end - start, start))
		return search_bytes(s, start, end - start);
	for (; !err && start < end; start += page)
		if (memory_read(s->memory, s->bytes, page, start))
			err = search_bytes(s, start, page);
	return err;
}

static struct error *search_mapping(struct search *s, struct resident *pages, const struct mapping *m)
{
	u64 at = m->start, start, end;
	struct error *err = NULL;

	s->done = 0;
	while (!err && resident_next(pages, at, m->end, PIECE, &start, &end)) {
		if (end - start > s->budget) {
			s->budget = 0;
			s->ret->left += m->end - start;
			break;
		}
		err = search_piece(s, start, end, pages->page);
		at = end;
	}
	return err;
}

static bool may_hold(const struct search *s, const struct mapping *m)
{
	u32 prot = PROT_READ | PROT_WRITE;

	if ((m->prot & prot) != prot || (!m->anonymous && !m->image))
		return false;
	return luajit_gc64(s->image->layout) || m->start < LOW_END;
}

static int by_size(const void *a, const void *b)
{
	const struct mapping *x = *(const struct mapping *const *)a, *y = *(const struct mapping *const *)b;
	u64 i = x->end - x->start, j = y->end - y->start;

	return i < j ? -1 : i > j;
}

static int by_address(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* The smallest mappings first: what the limits cut off are the largest. */
static struct error *search_all(struct search *s, const struct runtime_process *p, struct resident *pages)
{
	cleanup(free) const struct mapping **order = calloc(p->nmappings + 1, sizeof(*order));
	struct error *err = NULL;
	u64 span = 0;
	u32 n = 0;

	if (!order)
		return &error_no_memory;
	for (u32 i = 0; i < p->nmappings; i++)
		if (may_hold(s, &p->mappings[i]))
			order[n++] = &p->mappings[i];
	qsort(order, n, sizeof(*order), by_size);
	for (u32 i = 0; !err && i < n; i++) {
		span += order[i]->end - order[i]->start;
		if (!s->budget || span > LUAJIT_VMS_SPAN)
			s->ret->left += order[i]->end - order[i]->start;
		else
			err = search_mapping(s, pages, order[i]);
	}
	return err;
}

struct error *luajit_vms_find(
        const struct luajit_image *image, u64 bias, const struct runtime_process *p, u64 memory, struct luajit_vms *ret)
{
	cleanup(free) u8 *bytes = malloc(PIECE);
	cleanup(free) struct resident *pages = malloc(sizeof(*pages));
	struct search s = {.image = image,
	        .bias = bias,
	        .memory = p->memory,
	        .ret = ret,
	        .budget = memory,
	        .bytes = bytes,
	        .block_at = NOWHERE};
	struct error *err;

	*ret = (struct luajit_vms){0};
	if (!bytes || !pages)
		return &error_no_memory;
	resident_open(pages, p->pid);
	err = search_all(&s, p, pages);
	resident_close(pages);
	if (err) {
		free(ret->g);
		return err;
	}
	if (ret->n)
		qsort(ret->g, ret->n, sizeof(*ret->g), by_address);
	return NULL;
}
