/* SPDX-License-Identifier: Apache-2.0 */
#include "go_stacks.h"

#include <arch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "cfi/cfi.h"
#include "grow.h"
#include "binary/image.h"
#include "binary/memory.h"

#define PCS_MAX (1u << 28)
#define WINDOW  4096

enum step {
	STEP_NONE,  /* not code in Go */
	STEP_FRAME, /* so many bytes up to the caller's frame */
	STEP_EXACT, /* the same, and the caller was interrupted there */
	STEP_ROOT,
};

/* A stack that is walked: what was copied of it, or a window that is read. */
struct reading {
	struct go_stacks *s;
	struct go_standing *at;
	u64 start;
	u32 size;
	u8 bytes[WINDOW];
};

void go_stacks_init(struct go_stacks *s, const struct runtime_process *p)
{
	*s = (struct go_stacks){.p = p};
}

void go_stacks_free(struct go_stacks *s)
{
	table_free(&s->steps);
	table_free(&s->known);
	free(s->chains);
	free(s->pcs);
}

static u64 packed(enum step step, s32 size)
{
	return (u64)step << 32 | (u32)size;
}

static u64 step_of(const struct go_stacks *s, u64 addr)
{
	const struct mapping *m = mapping_find(s->p->mappings, s->p->nmappings, addr);
	struct cfi_rule rule;

	if (!m || !(m->prot & PROT_EXEC) || !m->image || !m->image->cfi ||
	        !cfi_find(m->image->cfi, addr - m->bias, &rule))
		return packed(STEP_NONE, 0);
	if (rule.kind == CFI_ROOT)
		return packed(STEP_ROOT, 0);
	if (rule.kind != CFI_REG || rule.cfa_reg != REG_SP || rule.slot[ARCH_SLOT_RA] != cfi_slot(-8, 0) ||
	        rule.cfa_off < 8)
		return packed(STEP_NONE, 0);
	return packed(rule.flags & CFI_SIGNAL_FRAME ? STEP_EXACT : STEP_FRAME, rule.cfa_off);
}

static u64 step_key(u64 pc)
{
	return pc * 0x9e3779b97f4a7c15ULL;
}

bool go_stacks_exact(const struct go_stacks *s, const struct go_chain *c, u32 i)
{
	const u64 *step = i && i < c->n ? table_get(&s->steps, step_key(s->pcs[c->first + i - 1])) : NULL;

	return step && *step >> 32 == STEP_EXACT;
}

/* pc: as a return address. */
static struct error *find_step(struct go_stacks *s, u64 pc, u64 *ret)
{
	u64 key = step_key(pc), *known = key ? table_get(&s->steps, key) : NULL;

	*ret = known ? *known : step_of(s, pc - 1);
	return known || !key ? NULL : table_put(&s->steps, key, *ret);
}

static bool word_at(struct reading *r, u64 addr, u64 *ret)
{
	u64 off = addr - r->at->sp;

	if (off + 8 <= r->at->size && off + 8 >= 8) {
		memcpy(ret, r->at->copy + off, 8);
		return true;
	}
	if (addr + 8 > r->at->end || addr < r->at->sp)
		return false;
	if (!r->size || addr < r->start || addr + 8 > r->start + r->size) {
		r->at->late = true;
		r->start = addr;
		r->size = r->at->end - addr < WINDOW ? (u32)(r->at->end - addr) : WINDOW;
		if (!memory_read(r->s->p->memory, r->bytes, r->size, addr)) {
			r->size = 0;
			return false;
		}
	}
	memcpy(ret, r->bytes + (addr - r->start), 8);
	return true;
}

static bool same_chain(const struct go_stacks *s, const struct go_chain *c, const u64 *pcs, u32 n)
{
	return c->n == n && (!n || !memcmp(s->pcs + c->first, pcs, n * sizeof(*pcs)));
}

static struct error *add_pcs(struct go_stacks *s, const u64 *pcs, u32 n)
{
	u32 room = s->npcs ? 64 - (u32)__builtin_clzll(s->npcs) : 0, want = 64 - (u32)__builtin_clzll((u64)s->npcs + n);
	u64 *grown;

	if (s->npcs + (u64)n > PCS_MAX)
		return error_new(ERROR_LOST, "stacks of too many kinds: more than %u places", PCS_MAX);
	if (want > room) { /* capacity: the power of two above what is there */
		grown = reallocarray(s->pcs, 1ULL << want, sizeof(*grown));
		if (!grown)
			return &error_no_memory;
		s->pcs = grown;
	}
	memcpy(s->pcs + s->npcs, pcs, n * sizeof(*pcs));
	s->npcs += n;
	return NULL;
}

struct error *go_stacks_chain(struct go_stacks *s, const u64 *pcs, u32 n, bool cut, u32 *ret)
{
	u64 hash = XXH3_64bits(pcs, n * sizeof(*pcs)), *known;
	struct error *err;

	for (; (known = table_get(&s->known, hash)); hash++)
		if (same_chain(s, &s->chains[*known - 1], pcs, n)) {
			*ret = (u32)*known - 1;
			return NULL;
		}
	err = grow(&s->chains, s->nchains, sizeof(*s->chains));
	if (!err)
		err = table_put(&s->known, hash, s->nchains + 1);
	if (err)
		return err;
	s->chains[s->nchains] = (struct go_chain){.n = n, .first = s->npcs, .cut = cut};
	err = n ? add_pcs(s, pcs, n) : NULL;
	if (!err)
		*ret = s->nchains++;
	return err;
}

struct error *go_stacks_walk(struct go_stacks *s, struct go_standing *at, bool *found, u32 *ret)
{
	struct reading r = {.s = s, .at = at};
	u64 pcs[GO_DEPTH_MAX], pc = at->pc + at->exact, sp = at->sp, step;
	struct error *err;
	u32 n = 0;

	*found = false;
	while (n < GO_DEPTH_MAX) {
		pc += pc && pc == s->suspended;
		err = find_step(s, pc, &step);
		if (err)
			return err;
		if (step >> 32 == STEP_NONE)
			return NULL;
		pcs[n++] = pc;
		if (step >> 32 == STEP_ROOT)
			break;
		sp += (u32)step;
		if (!word_at(&r, sp - 8, &pc))
			return NULL;
		pc += step >> 32 == STEP_EXACT;
	}
	*found = true;
	return go_stacks_chain(s, pcs, n, step >> 32 != STEP_ROOT, ret);
}
