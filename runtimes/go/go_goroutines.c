/* SPDX-License-Identifier: Apache-2.0 */
#include "go_goroutines.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "now.h"

#define BATCH          MEMORY_PIECES_MAX
#define COPY           512 /* bytes of a stack that are read at first: most need less */
#define GAP            256 /* between g's that are read as one piece */
#define RUN            (64 << 10)
#define LABELS_SLOTS   256
#define GOROUTINES_MAX (1u << 28)

struct labels_slot {
	u64 addr;
	u32 set;
};

struct batch {
	const struct go_view *v;
	struct go_stacks *stacks;
	u32 size; /* of a g */
	u32 n;
	u64 addr[BATCH];
	bool there[BATCH]; /* g was read */
	bool stands[BATCH];
	struct go_standing standing[BATCH];
	u8 *before, *after; /* their g's, with gaps */
	u32 at[BATCH];      /* where each is in there */
	u8 *copies;         /* BATCH * COPY */
	u8 *again;          /* the same, read once more where nothing counts moves */
	struct memory_piece pieces[BATCH];
	struct labels_slot labels[LABELS_SLOTS]; /* that were read, of this batch: another one may find others there */
	u32 whose[BATCH];                        /* of a g the piece, or of a piece the g */
};

/* Of the first n pieces those that can be read; a piece has no size then. */
static void read_all(struct batch *b, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		i += (u32)memory_read_pieces(b->v->p->memory, b->pieces + i, n - i);
		if (i < n)
			b->pieces[i].size = 0;
	}
}

static int ascending(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

/* g's lie side by side, mostly: those are one piece. */
static void read_structures(struct batch *b)
{
	u32 n = 0, used = 0;

	for (u32 i = 0; i < b->n; i++) {
		struct memory_piece *last = &b->pieces[n - (n > 0)];
		u64 into = b->addr[i] - last->addr;

		if (n && into >= last->size && into <= last->size + GAP && into + b->size <= RUN) {
			used += (u32)(into - last->size) + b->size;
			last->size = into + b->size;
		} else {
			b->pieces[n++] = (struct memory_piece){b->before + used, b->addr[i], b->size};
			used += b->size;
		}
		b->at[i] = used - b->size;
		b->whose[i] = n - 1;
	}
	read_all(b, n);
	for (u32 i = 0; i < b->n; i++)
		b->there[i] = b->pieces[b->whose[i]].size;
}

static u64 status_of(const struct go_view *v, const u8 *g)
{
	return go_member(g, v->at->g_status) & ~(u64)GO_STATUS_SCAN;
}

/* Its g waits for another goroutine. */
static bool is_dead(u64 status)
{
	return status == GO_DEAD || status == GO_IDLE || status == GO_DEAD_EXTRA;
}

/* Where it stands. False: it has no stack that stands. */
static bool find_standing(const struct go_view *v, const u8 *g, struct go_standing *ret)
{
	const struct go_layout *l = v->at;
	u64 status = status_of(v, g), lo = go_member(g, l->g_stack_lo);

	*ret = (struct go_standing){
	        .pc = go_member(g, l->g_pc), .sp = go_member(g, l->g_sp), .end = go_member(g, l->g_stack_hi)};
	if (go_member(g, l->g_syscallsp)) {
		ret->pc = go_member(g, l->g_syscallpc);
		ret->sp = go_member(g, l->g_syscallsp);
	}
	if (status == GO_RUNNING || status == GO_COPYSTACK || is_dead(status) ||
	        (status == GO_SYSCALL && !go_member(g, l->g_syscallsp)))
		return false;
	return ret->pc && ret->sp >= lo && ret->sp < ret->end && !(ret->sp & 7);
}

/*
 * A goroutine that moved on and came to stand at the same place may be the same by its g: up to 1.16, and later after
 * 256 moves. Its stack is read once more, and right behind it its g, in one system call: it cannot have come back in
 * between.
 */
static void read_together(struct batch *b, u32 first, u32 end)
{
	u32 n = 0;

	for (u32 i = first; i < end; i++) {
		const struct go_standing *s = &b->standing[i];

		if (b->stands[i])
			b->pieces[n++] = (struct memory_piece){b->again + (size_t)i * COPY, s->sp, s->size};
		b->pieces[n++] = (struct memory_piece){b->after + b->at[i], b->addr[i], b->size};
	}
	read_all(b, n);
	n = 0;
	for (u32 i = first; i < end; i++) {
		size_t at = (size_t)i * COPY, size = b->stands[i] ? b->pieces[n++].size : 0;

		bool moved = size && memcmp(b->copies + at, b->again + at, size);

		b->stands[i] = size && !moved;
		b->there[i] = b->pieces[n++].size && b->there[i] && !moved;
	}
}

static void read_again(struct batch *b)
{
	const u32 most = BATCH / 2;

	for (u32 i = 0; i < b->n; i += most)
		read_together(b, i, i + most < b->n ? i + most : b->n);
}

static void read_stacks(struct batch *b)
{
	u32 n = 0;

	for (u32 i = 0; i < b->n; i++) {
		struct go_standing *s = &b->standing[i];

		b->stands[i] = b->there[i] && find_standing(b->v, b->before + b->at[i], s);
		if (!b->stands[i])
			continue;
		s->copy = b->copies + (size_t)i * COPY;
		s->size = s->end - s->sp < COPY ? (u32)(s->end - s->sp) : COPY;
		b->pieces[n] = (struct memory_piece){b->copies + (size_t)i * COPY, s->sp, s->size};
		b->whose[n++] = i;
	}
	read_all(b, n);
	for (u32 i = 0; i < n; i++)
		b->stands[b->whose[i]] = b->pieces[i].size;
}

static bool same(const struct go_view *v, const u8 *a, const u8 *b)
{
	const struct go_layout *l = v->at;
	const struct layout_member members[] = {
	        l->g_goid, l->g_stack_lo, l->g_stack_hi, l->g_sp, l->g_pc, l->g_syscallsp, l->g_syscallpc, l->g_moves};

	for (u32 i = 0; i < sizeof(members) / sizeof(*members); i++)
		if (go_member(a, members[i]) != go_member(b, members[i]))
			return false;
	return status_of(v, a) == status_of(v, b);
}

static void fill(const struct go_view *v, u64 at, const u8 *g, struct go_goroutine *ret)
{
	const struct go_layout *l = v->at;

	*ret = (struct go_goroutine){.at = at,
	        .id = go_member(g, l->g_goid),
	        .parent = go_member(g, l->g_parent),
	        .since = go_member(g, l->g_waitsince),
	        .creator = go_member(g, l->g_gopc),
	        .start = go_member(g, l->g_startpc),
	        .stack = {go_member(g, l->g_stack_lo), go_member(g, l->g_stack_hi)},
	        .status = (u8)status_of(v, g),
	        .reason = (u8)go_member(g, l->g_waitreason),
	        .locked = go_member(g, l->g_locked)};
}

/* Is it the same after more of its stack was read than is in the copy? */
static bool still(const struct batch *b, u32 i)
{
	u8 now[GO_GOROUTINE_MAX];

	return memory_read(b->v->p->memory, now, b->size, b->addr[i]) && same(b->v, b->before + b->at[i], now);
}

/* One of a batch. *again: it moved, or was not there. False: there is nothing to report of it. */
static struct error *take(struct batch *b, u32 i, struct go_goroutine *ret, bool *dead, bool *again)
{
	const u8 *before = b->before + b->at[i], *after = b->after + b->at[i];
	bool found = true;
	struct error *err = NULL;

	*again = !b->there[i] || !same(b->v, before, after);
	fill(b->v, b->addr[i], after, ret);
	*dead = b->there[i] && is_dead(ret->status);
	ret->seen = *again ? GO_TORN : GO_STANDS;
	if (*dead || *again)
		return NULL;
	if (ret->status == GO_RUNNING) {
		ret->seen = GO_ON_CPU;
		return NULL;
	}
	if (b->stands[i]) {
		ret->stack[0] = b->standing[i].sp;
		b->standing[i].exact = b->standing[i].pc == ret->start; /* it has not run yet */
		err = go_stacks_walk(b->stacks, &b->standing[i], &found, &ret->chain);
	}
	if (!b->stands[i] || !found) {
		ret->seen = GO_UNWALKED;
		*again = true;
	} else if (b->standing[i].late && !still(b, i)) {
		ret->seen = GO_TORN;
		*again = true;
	}
	return err;
}

/* Believed if it still has them when they were read. */
static struct error *find_labels(struct batch *b, u32 i, struct go_label_sets *sets, u32 *ret)
{
	const struct layout_member at = b->v->at->g_labels;
	u64 addr = go_member(b->after + b->at[i], at);
	struct labels_slot *slot = &b->labels[(addr >> 4) % LABELS_SLOTS];
	u32 minor = (u32)go_release_minor(b->v->release), n, size = 0;
	struct error *err = NULL;
	char packed[GO_LABELS_PACKED];

	if (!addr || !b->there[i])
		return NULL;
	if (slot->addr != addr) {
		n = go_labels_read(
		        b->v->p, addr, minor && minor < GO_LABELS_BY_LIST, GO_LABELS_READ, packed, &size, NULL);
		n = go_word(b->v, b->addr[i] + at.at) == addr ? n : 0;
		err = go_label_sets_add(sets, n, packed, n ? size : 0, &slot->set);
		slot->addr = err || !n ? 0 : addr; /* n 0: others may still have it */
	}
	*ret = slot->set;
	return err;
}

/* Believed if it is still in it, as its labels. */
static u64 find_bubble(const struct batch *b, u32 i)
{
	const struct go_layout *l = b->v->at;
	u64 addr = b->there[i] && l->bubble_id.size ? go_member(b->after + b->at[i], l->g_bubble) : 0,
	    number = addr ? go_word(b->v, addr + l->bubble_id.at) : 0;

	return addr && go_word(b->v, b->addr[i] + l->g_bubble.at) == addr ? number : 0;
}

/* Reads those of addr; those to be read again are added to `left`. */
static struct error *read_batch(struct batch *b, bool last, struct go_goroutines *out, u64 *left, u32 *nleft)
{
	struct error *err = NULL;

	qsort(b->addr, b->n, sizeof(*b->addr), ascending);
	read_structures(b);
	read_stacks(b);
	read_again(b);
	memset(b->labels, 0, sizeof(b->labels));
	for (u32 i = 0; !err && i < b->n; i++) {
		struct go_goroutine *g = &out->all[out->n];
		bool again, dead;

		err = take(b, i, g, &dead, &again);
		if (!err && !dead && (last || !again)) {
			g->bubble = find_bubble(b, i);
			err = find_labels(b, i, &out->labels, &g->labels);
		}
		if (again && !last)
			left[(*nleft)++] = b->addr[i];
		else
			out->n += !dead;
	}
	return err;
}

/* Fewer at a time are read in a shorter time: what moves is seen to stand at last. */
static struct error *read_goroutines(struct batch *b, const u64 *addr, u32 n, struct go_goroutines *out)
{
	static const u32 at_once[] = {BATCH, BATCH / 16, 8, 1, 1, 1};
	const u32 rounds = sizeof(at_once) / sizeof(*at_once);
	struct error *err = NULL;
	u64 todo[BATCH], left[BATCH];

	for (u32 at = 0; !err && at < n;) {
		u32 ntodo = n - at < BATCH ? n - at : BATCH;

		memcpy(todo, addr + at, ntodo * sizeof(*addr));
		at += ntodo;
		for (u32 round = 0; !err && ntodo && round < rounds; round++) {
			u32 nleft = 0;

			for (u32 i = 0; !err && i < ntodo; i += b->n) {
				b->n = ntodo - i < at_once[round] ? ntodo - i : at_once[round];
				memcpy(b->addr, todo + i, b->n * sizeof(*todo));
				err = read_batch(b, round + 1 == rounds, out, left, &nleft);
			}
			memcpy(todo, left, nleft * sizeof(*left));
			ntodo = nleft;
		}
	}
	return err;
}

static struct error *read_slice(const struct go_view *v, u64 **ret, u32 *n)
{
	u64 slice[3];

	if (!memory_read(v->p->memory, slice, sizeof(slice), v->allgs) || !slice[1] || slice[1] > GOROUTINES_MAX)
		return error_new(ERROR_NO_PROCESS, "process %d ended", v->p->pid);
	*n = (u32)slice[1];
	*ret = reallocarray(NULL, *n, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	return memory_read(v->p->memory, *ret, *n * sizeof(**ret), slice[0])
	               ? NULL
	               : error_new(ERROR_NO_PROCESS, "process %d ended", v->p->pid);
}

struct error *go_goroutines_read(const struct go_view *v, struct go_stacks *stacks, struct go_goroutines *ret)
{
	cleanup(free) struct batch *b = calloc(1, sizeof(*b));
	cleanup(free) u8 *bytes = NULL;
	cleanup(free) u64 *addr = NULL;
	struct error *err;
	u32 n = 0;

	*ret = (struct go_goroutines){0};
	if (v->p->pid)
		ret->now = now_ns() + (u64)now_ahead_of(v->p->pid, CLOCK_MONOTONIC);
	err = b ? read_slice(v, &addr, &n) : &error_no_memory;
	if (err)
		return err;
	b->v = v;
	b->stacks = stacks;
	b->size = go_goroutine_size(v);
	bytes = malloc(BATCH * (2 * ((size_t)b->size + GAP) + 2 * COPY));
	ret->all = reallocarray(NULL, n + 1, sizeof(*ret->all));
	if (!bytes || !ret->all) {
		go_goroutines_free(ret);
		return &error_no_memory;
	}
	b->before = bytes;
	b->after = bytes + BATCH * ((size_t)b->size + GAP);
	b->copies = b->after + BATCH * ((size_t)b->size + GAP);
	b->again = b->copies + (size_t)BATCH * COPY;
	err = read_goroutines(b, addr, n, ret);
	if (err)
		go_goroutines_free(ret);
	return err;
}

void go_goroutines_free(struct go_goroutines *g)
{
	free(g->all);
	go_label_sets_free(&g->labels);
	*g = (struct go_goroutines){0};
}
