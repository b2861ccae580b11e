/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_calls.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hit_latency.h"
#include "hit_tails.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cfi/cfi.h"
#include "unwind/grow.h"
#include "unwind/symbols/symbols.h"

#define ASKED_MAX 1024

struct calls { /* of a function in a process */
	u32 process, number;
	u32 placed; /* of ways */
	bool warned;
	char path[96]; /* of its file, for the kernel */
	struct hit_ways ways;
};

struct hit_calls {
	const struct event_host *host;
	struct hit_shifts *shifts;
	struct hit_jumps jumps;
	struct calls **of;
	u32 n;
	struct latency_target asked[ASKED_MAX];
	u32 nasked;
};

struct error *hit_calls_create(const struct event_host *host, struct hit_shifts *shifts, struct hit_calls **ret)
{
	struct hit_calls *c = calloc(1, sizeof(*c));

	if (!c)
		return &error_no_memory;
	c->host = host;
	c->shifts = shifts;
	*ret = c;
	return NULL;
}

void hit_calls_destroy(struct hit_calls *c)
{
	if (!c)
		return;
	for (u32 i = 0; i < c->n; i++) {
		hit_tails_free(&c->of[i]->ways);
		free(c->of[i]);
	}
	free(c->of);
	free(c->jumps.of);
	free(c);
}

static const struct mapping *code_of(const struct process *p, const struct image *img)
{
	for (u32 i = 0; p->mappings && i < p->maps.nlines; i++)
		if (p->mappings[i].image == img && p->mappings[i].prot & PROT_EXEC)
			return &p->mappings[i];
	return NULL;
}

/* Once for each function. */
static void warn(struct hit_calls *c, struct calls *calls)
{
	if (calls->warned || !*calls->ways.lost)
		return;
	calls->warned = true;
	c->host->options->warn(c->host->options->ctx,
	        error_hint(error_new(ERROR_UNSUPPORTED, "calls that end in a tail call have no time: %s",
	                           calls->ways.lost),
	                "the last line counts them; measure a function that calls it to see all of them"));
}

static void tell(struct hit_calls *c, const struct calls *calls, const struct process *p, u64 to, u32 state)
{
	struct {
		u64 to;
		u32 tgid, function;
	} key = {.to = to, .tgid = (u32)p->pid, .function = calls->number};

	bpf_map_update_elem(bpf_map__fd(object_skeleton(c->host->object)->maps.latency_targets), &key, &state, BPF_ANY);
}

/* Before the first call of another file's function, its place in the linker's table leads back to the stub. */
static bool is_linker_stub(struct image *img, u64 addr)
{
	struct symbol sym;

	return symbols_find(img, addr, &sym) ? strstr(sym.name, "@plt") != NULL : !cfi_fde_at(img->cfi, addr);
}

/* It jumps to this address of the process. Returns what to tell BPF once new ways are placed; 0: nothing. */
static u32 learn(struct calls *calls, const struct process *p, u64 to)
{
	const struct mapping *m = process_mapping(p, to);
	char root[64];

	if (!m || !m->image) {
		if (!*calls->ways.lost)
			snprintf(calls->ways.lost, sizeof(calls->ways.lost),
			        "-e %s: it jumps to 0x%lx, which is in no file", calls->ways.what, to);
		return 0;
	}
	snprintf(root, sizeof(root), "/proc/%d/root", p->pid);
	error_free(symbols_load(m->image, root));
	if (hit_tails_is_root(&calls->ways, m->image, to - m->bias))
		return LATENCY_AGAIN;
	return !is_linker_stub(m->image, to - m->bias) && hit_tails_add(&calls->ways, m->image, to - m->bias)
	               ? LATENCY_FOLLOWED
	               : 0;
}

/* What the linker has filled in already; 0: nothing. */
static u64 read_slot(const struct process *p, const struct hit_way *way)
{
	const struct mapping *m = way->exit.jump.slot ? code_of(p, way->img) : NULL;
	u64 to;

	return m && p->memory && memory_read(p->memory, &to, sizeof(to), m->bias + way->exit.jump.slot) ? to : 0;
}

static const struct bpf_program *program_of(const struct hit_calls *c, enum hit_way_kind kind)
{
	const struct sample *skel = object_skeleton(c->host->object);

	if (kind == WAY_RETURN)
		return skel->progs.on_return;
	return kind == WAY_AGAIN ? skel->progs.on_again : skel->progs.on_tail;
}

static struct error *place(struct hit_calls *c, struct calls *calls, const struct process *p, const struct hit_way *way)
{
	const struct mapping *m = way->img == calls->ways.visited[0].img ? NULL : code_of(p, way->img);
	struct hit_uprobe u = {.program = program_of(c, way->kind), .exit = true};
	struct error *err = NULL;
	char path[PROC_MAP_PATH];
	u64 jump = 0;

	if (way->exit.asks || way->exit.jump.slot)
		err = hit_latency_jump(c->host->object, &c->jumps, &way->exit.jump, &jump);
	if (err || !hit_offset(way->img, way->exit.jump.at, true, &u.at.offset))
		return err;
	u.cookie = jump | (u64)calls->number << LATENCY_FUNCTION | (way->borrowed ? LATENCY_BORROWED : 0) |
	           (way->kind == WAY_ASK ? LATENCY_ASK : 0) | (way->kind == WAY_LOST ? LATENCY_LOST : 0);
	snprintf(path, sizeof(path), "%s", calls->path);
	if (m)
		proc_map_path(path, living_thread(p->pid) ?: p->pid, m->start, m->end);
	return hit_shifts_place(c->shifts, p, way->img, path, &u);
}

static struct error *place_new(struct hit_calls *c, struct calls *calls, const struct process *p);

/* It jumps to there. BPF is told when all ends of such calls are placed. */
static struct error *follow(struct hit_calls *c, struct calls *calls, const struct process *p, u64 to)
{
	u32 state = learn(calls, p, to);
	struct error *err = place_new(c, calls, p);

	if (!err && state)
		tell(c, calls, p, to, state);
	return err;
}

/* The function that it leaves to comes before the jump in the list: calls that are marked have all their ends. */
static struct error *place_new(struct hit_calls *c, struct calls *calls, const struct process *p)
{
	u32 first = calls->placed, last = calls->ways.n;
	struct error *err = NULL;

	for (; !err && calls->placed < last; calls->placed++)
		err = place(c, calls, p, &calls->ways.of[calls->placed]);
	for (u32 i = first; !err && i < last; i++) {
		u64 to = calls->ways.of[i].kind == WAY_ASK ? read_slot(p, &calls->ways.of[i]) : 0;

		if (to)
			err = follow(c, calls, p, to);
	}
	warn(c, calls);
	return err;
}

struct error *hit_calls_place(struct hit_calls *c, const char *what, const struct process *p, struct image *img,
        const char *path, u64 addr, u32 number)
{
	struct error *err = grow(&c->of, c->n, sizeof(*c->of));
	struct calls *calls = err ? NULL : calloc(1, sizeof(*calls));

	if (!calls)
		return err ? err : &error_no_memory;
	calls->process = p->number;
	calls->number = number;
	snprintf(calls->path, sizeof(calls->path), "%s", path);
	err = hit_tails_find(what, img, addr, &calls->ways);
	if (err) {
		free(calls);
		return err;
	}
	c->of[c->n++] = calls;
	return place_new(c, calls, p);
}

struct error *hit_calls_ask(struct hit_calls *c, const struct latency_target *target)
{
	if (c->nasked < ASKED_MAX)
		c->asked[c->nasked++] = *target;
	return NULL;
}

static struct error *follow_seen(struct hit_calls *c, const struct latency_target *target)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < c->n; i++) {
		const struct process *p = targets_find(c->host->targets, c->of[i]->process);

		if (!p || p->dead || (u32)p->pid != target->tgid || c->of[i]->number != target->function)
			continue;
		err = follow(c, c->of[i], p, target->to);
	}
	return err;
}

struct error *hit_calls_poll(struct hit_calls *c)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < c->nasked; i++)
		err = follow_seen(c, &c->asked[i]);
	c->nasked = 0;
	return err;
}
