/* SPDX-License-Identifier: Apache-2.0 */
/* Roots of a Go program: variables, and the stacks of goroutines. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "go_refs_internal.h"

#define NAME_BYTES   256
#define VARIABLE_MAX (1u << 26)

struct variables {
	struct go_refs *r;
	u32 runtime; /* root of the runtime's own */
};

/* The runtime's variables lead to all goroutines, caches and so on: last, so that others are named first. */
static bool is_runtime(const char *name)
{
	return !strncmp(name, "runtime.", 8) || !strncmp(name, "internal/", 9);
}

static void add_variable(void *ctx, const char *name)
{
	struct variables *v = ctx;
	struct go_refs *r = v->r;
	const struct go_type *t;
	struct type_variable var;
	u64 addr;

	if (!types_variable(r->dwarf, name, &var) || !var.defined || var.thread)
		return;
	addr = var.addr + r->v->bias;
	if (var.type->size < 8 || var.type->size > VARIABLE_MAX || addr & 7)
		return;
	t = go_refs_type(r, go_refs_dwarf(r, var.type));
	r->named = true;
	r->root = is_runtime(name) ? heap_root(r->h, v->runtime, HEAP_RUNTIME, name)
	                           : heap_root(r->h, 0, HEAP_LASTING, name);
	if (t && t->size <= var.type->size && !t->map)
		go_refs_give_typed(r, t, addr, HEAP_ANY);
	else
		go_refs_give_words(r, addr, var.type->size, HEAP_ANY);
	r->root = 0;
}

static void give_variables(struct go_refs *r)
{
	struct variables v = {.r = r, .runtime = heap_root(r->h, 0, HEAP_RUNTIME, "(runtime)")};

	error_free(types_open(r->v->table->file.img, &r->dwarf));
	if (r->dwarf)
		types_names(r->dwarf, TYPES_VARIABLE, add_variable, &v);
	/* what no variable has covered, and what is known of none if there is no DWARF */
	r->root = heap_root(r->h, 0, r->named ? HEAP_RUNTIME : HEAP_LASTING, "(globals)");
	if (r->module.data[1] - r->module.data[0] <= VARIABLE_MAX)
		go_refs_give_words(r, r->module.data[0], r->module.data[1] - r->module.data[0], HEAP_ANY);
	if (r->module.bss[1] - r->module.bss[0] <= VARIABLE_MAX)
		go_refs_give_words(r, r->module.bss[0], r->module.bss[1] - r->module.bss[0], HEAP_ANY);
	r->root = 0;
	if (!r->named)
		heap_note(r->h, "without DWARF global variables have no names and types: link without -w");
}

/* --- goroutines --- */

/* From where it began to where it stands: the functions of its stack, each below its caller. */
static u32 root_of_chain(struct go_refs *r, const struct go_goroutine_snapshot *s, u32 chain, u32 root)
{
	const struct go_chain *c = &s->stacks.chains[chain];

	for (u32 i = c->n; i-- > 0;) {
		u32 n = 0;
		const struct go_place *at = go_places_at(&s->places, s->stacks.pcs[c->first + i], &n);

		for (u32 k = at ? n : 0; k-- > 0;) {
			const char *name = go_place_name(&s->places, &at[k]);

			if (!at[k].wrapper && !go_is_runtime(name))
				root = heap_root(r->h, root, HEAP_STACKS, name);
		}
	}
	return root;
}

/* Where the runtime keeps what a goroutine that waits to send sends; by DWARF. */
struct sending {
	u64 waiting, value, channel, type; /* in g, sudog (twice), hchan */
	bool known;
};

/* A pointer, or from 1.26 on maybeTraceablePtr and its like (runtime2.go), whose second word it is. */
static bool find_word(struct types *t, const char *of, const char *name, u64 *at)
{
	const struct type *type = types_find(t, TYPES_STRUCT, of);
	struct type_member m;

	if (!type || !type_member(type, name, &m))
		return false;
	*at = m.offset + (m.type->kind == TYPE_STRUCT && m.type->size == 16 ? 8 : 0);
	return true;
}

static void find_sending(struct types *t, struct sending *s)
{
	s->known = t && find_word(t, "runtime.g", "waiting", &s->waiting) &&
	           find_word(t, "runtime.sudog", "elem", &s->value) &&
	           find_word(t, "runtime.sudog", "c", &s->channel) &&
	           find_word(t, "runtime.hchan", "elemtype", &s->type);
}

/* The value lies on the stack, where its words would be of unknown type. */
static void give_sent(struct go_refs *r, const struct sending *s, const struct go_goroutine *g)
{
	u64 sudog = go_refs_word(r, g->at + s->waiting), value = go_refs_word(r, sudog + s->value),
	    channel = go_refs_word(r, sudog + s->channel);
	const struct go_type *t = channel ? go_refs_type(r, go_refs_word(r, channel + s->type)) : NULL;

	if (t && value >= g->stack[0] && value < g->stack[1] && t->size <= g->stack[1] - value)
		go_refs_give_typed(r, t, value, HEAP_ANY);
}

static void give_goroutine(struct go_refs *r, const struct go_goroutine_snapshot *s, const struct go_goroutine *g,
        u32 all, const struct sending *sending)
{
	char state[NAME_BYTES];
	u32 root = all, n;

	if (g->stack[0] >= g->stack[1] || g->stack[1] - g->stack[0] > VARIABLE_MAX)
		return;
	if (g->seen == GO_STANDS) {
		n = s->first[g->chain + 1] - s->first[g->chain];
		root = root_of_chain(r, s, g->chain, all);
		snprintf(state, sizeof(state), "%u goroutine%s: %s", n, n == 1 ? "" : "s", go_goroutine_state(s, g));
	} else {
		snprintf(state, sizeof(state), "(%s)", go_goroutine_state(s, g));
	}
	r->root = heap_root(r->h, root, HEAP_STACKS, state);
	if (sending->known && !strcmp(go_goroutine_state(s, g), "chan send"))
		give_sent(r, sending, g);
	go_refs_give_words(r, g->stack[0], g->stack[1] - g->stack[0], HEAP_ANY);
	r->root = 0;
}

struct error *go_refs_roots(void *reader)
{
	struct go_refs *r = reader;
	void *taken;
	const struct go_goroutine_snapshot *s;
	struct sending sending;
	struct error *err;
	u32 all;

	give_variables(r);
	find_sending(r->dwarf, &sending);
	err = go_goroutines_take(r->v, GO_SYSTEM, &taken);
	if (err)
		return err;
	s = taken;
	all = heap_root(r->h, 0, HEAP_STACKS, "(goroutines)");
	for (u32 i = 0; i < s->goroutines.n; i++)
		give_goroutine(r, s, &s->goroutines.all[i], all, &sending);
	go_goroutines_drop(taken);
	return NULL;
}
