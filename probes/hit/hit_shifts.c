/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_shifts.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "latency.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/uprobe_cost.h"
#include "probes/uprobe_shifts.h"
#include "sample.skel.h"
#include "unwind/now.h"

#define SHIFT_MS   20
#define PERIOD_MS  1000 /* calls that take as long are still seen as a whole */
#define STEER_NS   100000000ull
#define SHARE      0.25        /* of --max-cpu */
#define LOOK_NS    10000000ull /* hits counted for so long: enough to know their rate */
#define DUTY_LEAST 0.01
#define DEAR_NS    30000.0 /* what no hit costs: below that, there is nothing to measure */
#define MEMORY     4       /* looks that a mean goes back, about */
#define CREDIT_NS  2e9     /* the budget of so long is there from the start: a burst is counted in full */

enum kind {
	ENTRY,
	EXIT,
	KINDS,
};

struct spent {
	u64 at, open_ns;
	struct hit_counts counts;
};

struct hit_shifts {
	const struct event_host *host;
	struct uprobe_shifts *shifts;
	const struct bpf_program *program; /* any */
	bool stepped[KINDS];               /* the kernel does not emulate the instruction, at one of the places */
	double cost_ns[KINDS];             /* of a hit; 0: it was not measured */
	struct spent last;
	double spent; /* of a CPU, while uprobes are placed: a mean of late */
	double debt;  /* ns that hits took, beyond the budget of the time since */
	double duty;
	s64 begun;   /* calls that were under way before the shift, which nothing waits for */
	bool warned; /* there were shifts */
	u64 began;   /* when the first was placed */
	double part; /* of the time until the end, that hits counted; 0: it has not ended */
};

static void read_counts(const struct hit_shifts *h, struct hit_counts *ret)
{
	struct object *o = h->host->object;

	error_free(object_sum(o, object_skeleton(o)->maps.hit_counters, (u64 *)ret, sizeof(*ret)));
}

static void open_shift(void *ctx, u32 each, u64 until)
{
	struct hit_shifts *h = ctx;
	struct sample *skel = object_skeleton(h->host->object);
	struct hit_counts counts;

	if (each) {
		read_counts(h, &counts);
		h->begun = counts.under_way;
		skel->data->hit_each = each;
	}
	skel->data->hit_until = until;
}

static bool is_under_way(void *ctx)
{
	struct hit_shifts *h = ctx;
	struct hit_counts counts;

	read_counts(h, &counts);
	return counts.under_way > h->begun;
}

static void close_shift(void *ctx)
{
	struct hit_shifts *h = ctx;
	struct sample *skel = object_skeleton(h->host->object);

	skel->bss->hit_shift++;
}

struct error *hit_shifts_create(const struct event_host *host, struct hit_shifts **ret)
{
	struct hit_shifts *h = calloc(1, sizeof(*h));
	struct uprobe_shifts_options options = {.shift_ms = SHIFT_MS,
	        .period_ms = PERIOD_MS,
	        .exact = true,
	        .open = open_shift,
	        .under_way = is_under_way,
	        .over = close_shift,
	        .ctx = h};
	struct error *err;

	if (!h)
		return &error_no_memory;
	h->host = host;
	object_skeleton(host->object)->bss->stack_budget_unlimited = !host->options->cpu_percent;
	h->duty = 1;
	err = uprobe_shifts_create(&options, &h->shifts);
	if (err)
		free(h);
	else
		*ret = h;
	return err;
}

void hit_shifts_destroy(struct hit_shifts *h)
{
	if (!h)
		return;
	uprobe_shifts_destroy(h->shifts);
	free(h);
}

struct error *hit_shifts_place(struct hit_shifts *h, const struct process *p, const struct image *img, const char *path,
        const struct hit_uprobe *u)
{
	const struct uprobe_site site = {.program = u->program,
	        .process = p->number,
	        .pid = p->pid,
	        .offset = u->at.offset,
	        .counter = u->at.counter,
	        .cookie = u->cookie,
	        .last = u->exit};
	u8 code[UPROBE_CODE] = {0};

	h->stepped[u->exit] |=
	        pread(img->fd, code, sizeof(code), (off_t)u->at.offset) <= 0 || !uprobe_is_emulated(code);
	h->program = u->program;
	h->began = h->began ? h->began : now_ns();
	return uprobe_shifts_add(h->shifts, &site, path);
}

static double cost(const struct hit_shifts *h, const struct spent *now, double entry_ns, double exit_ns)
{
	return (double)(now->counts.entries - h->last.counts.entries) * entry_ns +
	       (double)(now->counts.exits - h->last.counts.exits) * exit_ns;
}

/* Are hits still to be counted all the time? */
static bool is_cheap(struct hit_shifts *h, const struct spent *now, double ns, double budget)
{
	h->debt = fmax(0, h->debt + ns - budget * (double)(now->at - h->last.at));
	return h->duty == 1 && h->debt < budget * CREDIT_NS;
}

/* False: it cannot be measured. */
static bool measure(struct hit_shifts *h)
{
	for (u32 i = 0; i < KINDS; i++)
		if (!h->cost_ns[i])
			h->cost_ns[i] = (double)uprobe_cost(h->program, !h->stepped[i], true, h->shifts);
	return h->cost_ns[ENTRY] && h->cost_ns[EXIT];
}

static void warn(struct hit_shifts *h)
{
	if (h->warned)
		return;
	h->warned = true;
	h->host->options->warn(h->host->options->ctx,
	        error_hint(error_new(ERROR_INTERNAL,
	                           "hits cost the target %.0f %% of a CPU, %.1f us each: they are counted in shifts, "
	                           "%.0f %% of the time, and stand for the others. A target that they slow has fewer",
	                           100 * h->spent, h->cost_ns[h->stepped[EXIT] ? EXIT : ENTRY] / 1000, 100 * h->duty),
	                "--max-cpu 0 counts all hits"));
}

static void set_duty(struct hit_shifts *h, double duty)
{
	duty = uprobe_shifts_duty(duty, h->duty, DUTY_LEAST);
	if (duty == h->duty)
		return;
	h->duty = duty;
	if (duty < 1)
		warn(h);
	uprobe_shifts_set_duty(h->shifts, duty);
}

void hit_shifts_steer(struct hit_shifts *h, u64 now_ns)
{
	double budget = h->host->options->cpu_percent / 100 * SHARE, spent, ns;
	struct spent now = {.at = now_ns};
	u64 open;

	if (!budget || !h->program || now_ns - h->last.at < STEER_NS)
		return;
	now.open_ns = uprobe_shifts_open_ns(h->shifts);
	open = now.open_ns - h->last.open_ns;
	if (open < LOOK_NS)
		return;
	read_counts(h, &now.counts);
	if (h->duty == 1 && cost(h, &now, DEAR_NS, DEAR_NS) < budget * (double)open) {
		h->last = now;
		return;
	}
	if (!measure(h))
		return;
	ns = cost(h, &now, h->cost_ns[ENTRY], h->cost_ns[EXIT]);
	if (is_cheap(h, &now, ns, budget)) {
		h->last = now;
		return;
	}
	spent = ns / (double)open;
	h->spent = spent > h->spent ? spent : h->spent + (spent - h->spent) / MEMORY;
	h->last = now;
	set_duty(h, h->spent ? budget / h->spent : 1);
}

static double part(const struct hit_shifts *h)
{
	return (double)uprobe_shifts_open_ns(h->shifts) / (double)(now_ns() - h->began);
}

void hit_shifts_end(struct hit_shifts *h)
{
	h->part = h->warned ? part(h) : 0;
}

double hit_shifts_part(const struct hit_shifts *h)
{
	return h->part || !h->warned ? h->part : part(h);
}

double hit_shifts_taken(const struct hit_shifts *h)
{
	u64 open = uprobe_shifts_open_ns(h->shifts);
	struct hit_counts counts;

	read_counts(h, &counts);
	return open ? ((double)counts.entries * h->cost_ns[ENTRY] + (double)counts.exits * h->cost_ns[EXIT]) /
	                       (double)open
	            : 0;
}

double hit_shifts_hits(const struct hit_shifts *h)
{
	struct hit_counts counts;

	read_counts(h, &counts);
	return (double)counts.stand_for;
}
