/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc.h"

#include <arch.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <xxhash.h>

#include "alloc_budget.h"
#include "alloc_census.h"
#include "alloc_classes.h"
#include "alloc_sites.h"
#include "grow.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/runtime_alloc.h"
#include "unwind/table.h"
#include "watchpoints.h"

#define MEASURE_NS    20000000L	 /* the rate of allocation is looked at so long before the first sample */
#define LOOK_NS	      15000000ULL  /* sites were placed for so long: enough to tell the rate */
#define STEER_NS      100000000ULL
#define SWEEP_NS      1000000000ULL
#define PROGRAM_NS    1000	 /* a hit's program without a sample */
#define BURST	      4		 /* times the wanted rate */
#define BURST_LEAST   8
#define WINDOWS_A_S   100	 /* of alloc.bpf.h */
#define WAIT_NS	      2000000000ULL /* for what belongs to a stack or a class; longer than classes are looked for */
#define NICE	      -10
#define THREADS_MAX   16384
#define FRAMES_MAX    (33 * CHUNK_FRAMES)
#define REFUSED_LEAST 8		 /* watchpoints, and more than were set: there are no debug registers */
#define STRANGE_LEAST 8		 /* events that make no sense, and one in STRANGE_EACH: the sites are not what they seemed */
#define STRANGE_EACH  50
#define OWN_SCALE     20 /* samples from which on a thread is scaled by itself */

struct allocator { /* a thread that allocates */
	u32 process;
	u64 thread;
	u64 first, last; /* exact bytes when first and last seen */
	u64 before;	 /* of threads that had this structure before it */
	double estimated;
	u64 samples;
	double scale;
	bool known; /* by the runtime */
};

struct cell { /* what samples of a thread in a node stand for */
	u32 allocator;
	u32 node;
	double bytes, objects;
	double sizeless; /* bytes of objects whose size is not known */
	bool unseen;	 /* without a stack */
};

struct waiting { /* a stack, for the class of its object */
	u64 since_ns;
	struct stack_record *head; /* without frames */
	struct frame *frames;
	u32 n;
};

#define LEAF_FRAMES 4
struct leaf {
	struct frame frame[LEAF_FRAMES];
};

struct alloc {
	struct alloc_options options;
	struct watchpoints *watchpoints; /* NULL: not to be had */
	struct alloc_classes *classes;
	struct census *census;
	struct alloc_budget budget;
	struct alloc_spent before; /* the start */
	struct alloc_sites *sites;
	u32 nprobes;
	struct allocator *allocators;
	u32 nallocators;
	struct table by_thread; /* hash of (process, thread): index */
	struct cell *cells;
	u32 ncells;
	struct table by_cell;
	struct table by_leaf; /* hash of the innermost frames: index in leaves */
	struct leaf *leaves;  /* those frames, placed exactly */
	u32 nleaves;
	struct waiting *waiting;
	u32 nwaiting;
	struct told { /* the class of an object, for its stack */
		struct alloc_class class;
		u64 since_ns;
	} *told;
	u32 ntold;
	struct table by_id; /* of records: index in told */
	struct alloc_thread *scratch; /* THREADS_MAX */
	struct frame *frames;	      /* FRAMES_MAX */
	u64 unknown_classes; /* that a checked site told */
	u64 steered_ns, swept_ns, bytes_then, placed_then;
	double interval, duty;
	double estimated, variance; /* of what samples stand for */
	bool started, watching;
	struct alloc_summary summary;
};

struct error *alloc_create(const struct alloc_options *options, struct alloc **ret)
{
	struct alloc *a = calloc(1, sizeof(*a));
	struct error *err;

	if (!a)
		return &error_no_memory;
	a->options = *options;
	a->interval = (double)options->interval;
	a->scratch = malloc(THREADS_MAX * sizeof(*a->scratch));
	a->frames = malloc(FRAMES_MAX * sizeof(*a->frames));
	if (!a->scratch || !a->frames) {
		alloc_destroy(a);
		return &error_no_memory;
	}
	err = census_create(&a->census);
	if (!err)
		err = alloc_classes_create(options->object, &a->classes);
	if (!err)
		err = alloc_sites_create(options->object, &a->sites);
	if (err) {
		alloc_destroy(a);
		return err;
	}
	a->budget.share = options->share;
	a->budget.site_ns = PROGRAM_NS + alloc_sites_measure(options->object);
	a->duty = 1;
	err = watchpoints_try(&a->budget.trap_ns);
	if (!err)
		err = watchpoints_create(options->object, alloc_classes_hurry, a->classes, &a->watchpoints);
	if (err == &error_no_memory) {
		alloc_destroy(a);
		return err;
	}
	if (err)
		options->warn(options->ctx, err);
	a->watching = a->watchpoints;
	object_set_watching(options->object, a->watching);
	*ret = a;
	return NULL;
}

static void forget(struct waiting *w)
{
	free(w->head);
	free(w->frames);
}

static void take_away(struct alloc *a)
{
	object_set_interval(a->options.object, 0, 0);
	if (a->sites)
		alloc_sites_clear(a->sites);
}

void alloc_destroy(struct alloc *a)
{
	if (!a)
		return;
	take_away(a);
	census_destroy(a->census);
	watchpoints_destroy(a->watchpoints);
	alloc_classes_destroy(a->classes);
	free(a->told);
	table_free(&a->by_id);
	table_free(&a->by_thread);
	table_free(&a->by_cell);
	table_free(&a->by_leaf);
	free(a->leaves);
	alloc_sites_destroy(a->sites);
	free(a->allocators);
	free(a->cells);
	for (u32 i = 0; i < a->nwaiting; i++)
		forget(&a->waiting[i]);
	free(a->waiting);
	free(a->scratch);
	free(a->frames);
	free(a);
}

/* The runtime of a process that tells of its allocation; NULL: none. */
static const struct instance *teller(const struct process *p)
{
	for (u32 i = 0; p && i < p->ninstances; i++)
		if (p->instances[i].ops->alloc && p->instances[i].data)
			return &p->instances[i];
	return NULL;
}

static u64 key_of(u64 a, u64 b)
{
	u64 words[] = { a, b };

	return XXH3_64bits(words, sizeof(words)) | 1;
}

static struct error *allocator_of(struct alloc *a, u32 process, u64 thread, u32 *ret)
{
	u64 key = key_of(process, thread), *known = table_get(&a->by_thread, key);
	struct error *err;

	if (known) {
		*ret = (u32)*known;
		return NULL;
	}
	err = grow((void **)&a->allocators, a->nallocators, sizeof(*a->allocators));
	if (!err)
		err = table_put(&a->by_thread, key, a->nallocators);
	if (err)
		return err;
	a->allocators[a->nallocators] = (struct allocator){ .process = process, .thread = thread, .scale = 1 };
	*ret = a->nallocators++;
	return NULL;
}

/* What each thread allocated so far. Threads that come later began at 0. */
static struct error *count_exactly(struct alloc *a, bool first)
{
	for (u32 i = 0; i < a->options.targets->nprocesses; i++) {
		const struct process *p = a->options.targets->processes[i];
		const struct instance *in = teller(p);
		struct runtime_process view;
		u32 n = 0, index;

		if (in && !p->dead) {
			view = process_view(p);
			n = in->ops->alloc->threads(in->data, &view, a->scratch, THREADS_MAX);
		}
		for (u32 k = 0; k < n; k++) {
			const struct alloc_thread *t = &a->scratch[k];
			struct error *err = allocator_of(a, p->number, t->thread, &index);
			struct allocator *al = &a->allocators[index];

			if (err)
				return err;
			if (!al->known)
				al->first = first ? t->allocated : 0;
			else if (t->allocated < al->last) {
				al->before += al->last - al->first;
				al->first = 0;
			}
			al->known = true;
			al->last = t->allocated;
		}
	}
	return NULL;
}

/* Where pt_regs has a register, by its DWARF number. */
static u16 offset_in_regs(u8 reg)
{
	static const u16 offsets[] = { 80, 96, 88, 40, 104, 112, 32, 152, 72, 64, 56, 48, 24, 16, 8, 0 };

	return reg < sizeof(offsets) / sizeof(*offsets) ? offsets[reg] : ALLOC_NO_OFFSET;
}

/* The file of a runtime as the kernel finds it, whatever became of its name. */
static bool path_of(const struct process *p, const struct instance *in, char *ret, size_t size)
{
	for (u32 i = 0; i < p->maps.nlines; i++) {
		const struct mapping *m = &p->mappings[i];

		if (m->image && m->image == in->loaded->image && m->bias == in->bias) {
			snprintf(ret, size, "/proc/%d/map_files/%lx-%lx", p->pid, m->start, m->end);
			return true;
		}
	}
	return false;
}

static bool tells_collections(const struct runtime_alloc *r)
{
	for (u32 i = 0; i < r->nsites; i++)
		if (r->site[i].kind == ALLOC_COLLECTION)
			return true;
	return false;
}

static struct error *place_site(struct alloc *a, const struct process *p, const struct runtime_alloc *r,
	const struct alloc_site *site, const char *path)
{
	struct watchpoints_stats keepers = { 0 };
	struct alloc_probe probe = { .kind = site->kind, .start = r->buffer_start, .top = r->buffer_top, .end = r->buffer_end,
		.thread = offset_in_regs(site->reg[ALLOC_THREAD]), .klass = offset_in_regs(site->reg[ALLOC_CLASS]),
		.object = offset_in_regs(site->reg[ALLOC_OBJECT]), .size = offset_in_regs(site->reg[ALLOC_OBJECT_SIZE]),
		.buffer_size = offset_in_regs(site->reg[ALLOC_BUFFER_SIZE]), .early = r->early, .checked = r->checked,
		.collections = r->collections_at, };
	struct error *err;

	if (a->watchpoints)
		watchpoints_stats(a->watchpoints, &keepers);
	probe.prompt = !keepers.realtime || !tells_collections(r);
	err = object_set_probe(a->options.object, a->nprobes, &probe);
	if (!err)
		err = alloc_sites_add(a->sites, p->number, p->pid, path, site->offset, a->nprobes, site->kind == ALLOC_COLLECTION);
	a->nprobes += !err;
	return err;
}

static struct error *place_sites(struct alloc *a, const struct process *p, const struct instance *in)
{
	struct runtime_process view = process_view(p);
	struct runtime_alloc r = { 0 };
	struct error *err = in->ops->alloc->sites(in->data, &view, &r);
	char path[128];
	void *reader;

	if (err)
		return err;
	if (!path_of(p, in, path, sizeof(path)))
		return error_new(ERROR_NO_PROCESS, "process %d has let go of its %s", p->pid, in->ops->name);
	err = in->ops->alloc->open(in->data, &view, &reader);
	if (!err)
		err = alloc_classes_add(a->classes, p->number, in->ops->alloc, reader);
	for (u32 i = 0; i < r.nsites && !err; i++)
		err = place_site(a, p, &r, &r.site[i], path);
	a->summary.sites = r.origin;
	if (!err && r.checked)
		a->options.warn(a->options.ctx, error_hint(error_new(ERROR_UNSUPPORTED, "process %d: where it allocates was found by code: %s has no symbols",
			p->pid, in->loaded->path), "each event is checked; installing its debug symbols makes it certain"));
	if (!err && r.missed)
		a->options.warn(a->options.ctx, error_hint(error_new(ERROR_UNSUPPORTED, "process %d: %s", p->pid, r.missed), "%s", r.remedy));
	return err;
}

static struct error *refuse(pid_t pid)
{
	return error_hint(error_new(ERROR_UNSUPPORTED, "process %d runs nothing whose allocation can be seen", pid),
		"`yrt inspect -p %d` tells what was recognised in it", pid);
}

struct error *alloc_attach(struct alloc *a, pid_t pid, bool required)
{
	struct error *err = NULL;

	for (u32 i = 0; i < a->options.targets->nprocesses && !err; i++) {
		const struct process *p = a->options.targets->processes[i];
		const struct instance *in = teller(p);

		if (p->dead || alloc_sites_has(a->sites, p->number) || (pid && p->pid != pid))
			continue;
		if (in)
			err = place_sites(a, p, in);
		else if (required)
			err = refuse(pid);
	}
	return err;
}

static u64 cpu_of(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* What samples cost up to now, but for what was before the start. */
static struct error *count_spent(struct alloc *a, const struct alloc_stats *st, u64 now, struct alloc_spent *ret)
{
	struct watchpoints_stats keepers = { 0 };
	struct probe_stats probe;
	struct error *err = object_stats(a->options.object, &probe);

	if (err)
		return err;
	if (a->watchpoints)
		watchpoints_stats(a->watchpoints, &keepers);
	*ret = (struct alloc_spent){ .at_ns = now, .samples = probe.samples, .walk_ns = probe.timed_ns,
		.keeper_ns = keepers.keeper_ns, .traps = st->traps, .requests = keepers.requests, .sites = st->refills + st->slow,
		.placed_ns = alloc_sites_placed_ns(a->sites) };
	for (u32 i = 0; i < a->options.targets->nprocesses; i++)
		ret->target_cpu_ns += cpu_of(a->options.targets->processes[i]->pid);
	return NULL;
}

static void set_interval(struct alloc *a, double interval, double frequency)
{
	u32 burst = (u32)(frequency / a->duty * BURST / WINDOWS_A_S);

	a->interval = fmax(interval, (double)a->options.interval);
	object_set_interval(a->options.object, (u64)a->interval, burst < BURST_LEAST ? BURST_LEAST : burst);
}

/* The distance between samples gets as much smaller. */
static void set_duty(struct alloc *a, double duty)
{
	if (duty == a->duty)
		return;
	a->interval *= duty / a->duty;
	a->duty = duty;
	alloc_sites_set_duty(a->sites, duty);
	object_set_duty(a->options.object, (u32)(duty * ALLOC_ALWAYS));
}

/* Another profiler or a debugger may have all debug registers of the target's threads, where those of ours are free. */
static void see_refused(struct alloc *a)
{
	struct watchpoints_stats st;

	if (!a->watching)
		return;
	watchpoints_stats(a->watchpoints, &st);
	if (st.refused < REFUSED_LEAST || st.refused < st.set)
		return;
	a->watching = false;
	object_set_watching(a->options.object, false);
	a->options.warn(a->options.ctx, watchpoints_refused());
}

/* Sites that were found by the looks of their code may be others, in a JVM that nobody has seen. */
static struct error *see_strange(const struct alloc *a, const struct alloc_stats *st)
{
	u64 strange = st->strange + a->unknown_classes;

	if (strange < STRANGE_LEAST || strange * STRANGE_EACH < st->refills + st->slow)
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED, "what seemed to tell of allocation, by its code, is something else"),
		"install the package with the runtime's debug symbols, of the same build (Debian: openjdk-N-dbg)");
}

/* At once where more is allocated, slowly where it is less; in shifts, what one of them saw says little. */
static double next_interval(const struct alloc *a, double wanted)
{
	if (!a->started)
		return wanted;
	if (a->duty < 1)
		return (7 * a->interval + wanted) / 8;
	return wanted > a->interval ? wanted : (31 * a->interval + wanted) / 32;
}

/* So few bytes between samples as the wanted rate allows. */
static struct error *steer(struct alloc *a, u64 now)
{
	struct alloc_stats st;
	struct alloc_spent spent;
	struct error *err = object_alloc_stats(a->options.object, &st);
	double wanted, frequency;
	u64 placed;

	if (!err)
		err = see_strange(a, &st);
	if (!err)
		err = count_spent(a, &st, now, &spent);
	if (err)
		return err;
	see_refused(a);
	a->steered_ns = now;
	frequency = fmin(a->options.frequency, alloc_budget_rate(&a->budget, &spent));
	placed = spent.placed_ns - a->placed_then;
	if (placed < LOOK_NS)
		return NULL;
	set_duty(a, a->watching ? alloc_budget_duty(&a->budget, a->duty) : 1);
	wanted = (double)(st.bytes - a->bytes_then) * 1e9 / (double)placed * a->duty / frequency;
	set_interval(a, next_interval(a, wanted), frequency);
	a->placed_then = spent.placed_ns;
	a->bytes_then = st.bytes;
	return NULL;
}

struct error *alloc_start(struct alloc *a)
{
	struct timespec pause = { .tv_nsec = MEASURE_NS };
	struct alloc_stats st;
	struct error *err = object_alloc_stats(a->options.object, &st);

	if (!err)
		err = count_spent(a, &st, now_ns(), &a->before);
	if (err)
		return err;
	alloc_budget_rate(&a->budget, &a->before);
	setpriority(PRIO_PROCESS, 0, NICE); /* names of classes cannot wait; may be refused */
	a->bytes_then = st.bytes;
	a->placed_then = alloc_sites_placed_ns(a->sites);
	a->steered_ns = now_ns();
	nanosleep(&pause, NULL);
	err = steer(a, now_ns());
	a->started = true;
	return err ? err : count_exactly(a, true);
}

struct error *alloc_stop(struct alloc *a)
{
	struct error *err = count_exactly(a, false); /* before it takes its time to take probes away */
	struct alloc_spent spent;
	struct alloc_stats st;

	if (!err)
		err = object_alloc_stats(a->options.object, &st);
	if (!err)
		err = count_spent(a, &st, now_ns(), &spent);
	if (!err && !spent.target_cpu_ns) /* gone, and its clock too */
		spent = a->budget.last;
	if (!err) {
		a->summary.slowed = alloc_budget_share(&a->budget, &a->before, &spent);
		a->summary.placed = (double)(spent.placed_ns - a->before.placed_ns) / (double)(spent.at_ns - a->before.at_ns);
	}
	take_away(a);
	return err;
}

static struct error *cell_of(struct alloc *a, u32 allocator, u32 node, struct cell **ret)
{
	u64 key = key_of(allocator, node), *known = table_get(&a->by_cell, key);
	struct error *err;

	if (known) {
		*ret = &a->cells[*known];
		return NULL;
	}
	err = grow((void **)&a->cells, a->ncells, sizeof(*a->cells));
	if (!err)
		err = table_put(&a->by_cell, key, a->ncells);
	if (err)
		return err;
	a->cells[a->ncells] = (struct cell){ .allocator = allocator, .node = node };
	*ret = &a->cells[a->ncells++];
	return NULL;
}

/* A node for what is not known, below another one. */
static struct error *child_unknown(struct alloc *a, u32 node, const char *text, u32 *ret)
{
	struct profile *p = collector_profile(a->options.collector);
	struct profile_function fn = { .name = text, .module = "", .file = "", .kind = KIND_UNKNOWN };
	struct error *err = profile_function(p, 0, &fn, false, ret);

	return err ? err : profile_child(p, node, *ret, ret);
}

static struct error *add_cell(struct alloc *a, u32 allocator, u32 node, double bytes, double objects, struct cell **ret)
{
	struct error *err = cell_of(a, allocator, node, ret);

	if (err)
		return err;
	(*ret)->bytes += bytes;
	(*ret)->objects += objects;
	a->allocators[allocator].estimated += bytes;
	return NULL;
}

/* Threads that are shown by themselves have stacks of their own. */
static u64 apart(const struct alloc *a, u32 allocator)
{
	return a->options.threads ? allocator + 1ull : 0;
}

/* A stack for what is counted without one; a refill stands for its whole buffer. */
static struct error *tell_census(struct alloc *a, const struct alloc_class *p, u32 allocator, u32 node, double bytes, double objects)
{
	u32 kind = 0;
	struct error *err =
		census_kind(a->census, p->record.instance, &p->frame, p->record.size, apart(a, allocator), &kind);

	return err ? err : census_stack(a->census, kind, p->record.how == ALLOC_BY_SLOW, allocator, node, bytes, objects);
}

/* The probability that what a site told as one became a sample. */
static double chance_of(const struct alloc_record *r)
{
	return -expm1(-(double)r->stands / (double)r->interval);
}

static struct error *count(struct alloc *a, const struct alloc_class *p, u32 node)
{
	const struct alloc_record *r = &p->record;
	double seen = (double)r->duty / ALLOC_ALWAYS, chance = r->how == ALLOC_BY_WATCH ? 0 : chance_of(r), bytes, objects = 0;
	struct cell *cell = NULL;
	u32 allocator = 0;
	struct error *err = allocator_of(a, r->instance, r->thread, &allocator);
	bool whole;

	if (err || !r->duty)
		return err;
	bytes = (chance > 0 ? (double)r->stands / chance : (double)r->interval) / seen;
	a->estimated += bytes;
	a->variance += bytes * bytes * (1 - chance * seen);
	if (r->how != ALLOC_BY_WATCH)
		objects = r->size ? bytes / (double)r->size : 0;
	else if (p->size)
		objects = bytes / (double)p->size;
	whole = r->how == ALLOC_BY_REFILL && r->stands != r->size;
	if (!whole)
		err = add_cell(a, allocator, node, bytes, objects, &cell);
	if (!err && (whole || (r->how == ALLOC_BY_SLOW && !a->watching)))
		err = tell_census(a, p, allocator, node, bytes, objects);
	if (err)
		return err;
	if (cell && r->how == ALLOC_BY_WATCH && !p->size)
		cell->sizeless += bytes;
	a->allocators[allocator].samples++;
	a->summary.samples++;
	a->summary.unclassed += !p->known;
	a->unknown_classes += !p->known && r->klass;
	return NULL;
}

/* The node of a kind without a stack: "[no stack seen]" and the class. */
static struct error *unseen_node(struct alloc *a, const struct alloc_class *p, u32 *ret)
{
	struct stack_record record = { .instance = p->record.instance, .tgid = p->record.tgid, .tid = p->record.tid, .stop = STOP_ROOT };
	struct profile *profile = collector_profile(a->options.collector);
	struct error *err = collector_place(a->options.collector, &record, NULL, 0, &p->frame, ret);
	u32 function, parent;

	if (err || *ret == COLLECTOR_FILTERED)
		return err;
	function = profile->nodes[*ret].function;
	parent = profile->nodes[*ret].parent;
	err = child_unknown(a, parent, "[no stack seen]", &parent);
	return err ? err : profile_child(profile, parent, function, ret);
}

/* Objects of a kind in a buffer that was given up. */
static struct error *count_census(struct alloc *a, const struct alloc_class *p)
{
	double by = 1 / chance_of(&p->record);
	u32 allocator = 0, kind = 0, node = 0;
	struct error *err = allocator_of(a, p->record.instance, p->record.thread, &allocator);

	if (!err)
		err = census_kind(a->census, p->record.instance, &p->frame, p->size, apart(a, allocator), &kind);
	if (!err && p->known)
		err = unseen_node(a, p, &node);
	else if (!err)
		err = child_unknown(a, 0, "[no stack seen]", &node);
	if (err || node == COLLECTOR_FILTERED)
		return err;
	return census_count(a->census, kind, allocator, node, (double)p->bytes * by, (double)p->objects * by);
}

/* The innermost of a->frames as the runtime knows them exactly; it is asked once for each. */
static struct error *place_exactly(struct alloc *a, u32 number, u32 n)
{
	const struct process *p = targets_find(a->options.targets, number);
	const struct instance *in = teller(p);
	u64 size = (n < LEAF_FRAMES ? n : LEAF_FRAMES) * sizeof(*a->frames), key = XXH3_64bits_withSeed(a->frames, size, number) | 1;
	u64 *known = table_get(&a->by_leaf, key);
	struct runtime_process view;
	struct error *err;

	if (!in || !in->ops->alloc->place)
		return NULL;
	if (known) {
		memcpy(a->frames, a->leaves[*known].frame, size);
		return NULL;
	}
	view = process_view(p);
	in->ops->alloc->place(in->data, &view, a->frames, (u32)(size / sizeof(*a->frames)));
	err = grow((void **)&a->leaves, a->nleaves, sizeof(*a->leaves));
	if (!err)
		err = table_put(&a->by_leaf, key, a->nleaves);
	if (!err)
		memcpy(a->leaves[a->nleaves++].frame, a->frames, size);
	return err;
}

static bool is_in_file(const struct process *p, const struct instance *in, u64 addr)
{
	for (u32 i = 0; i < p->maps.nlines; i++)
		if (addr >= p->mappings[i].start && addr < p->mappings[i].end)
			return p->mappings[i].image && p->mappings[i].image == in->loaded->image;
	return false;
}

/* How many of the innermost frames are a library's function (memset) by which the runtime fills the object. */
static u32 filling(const struct alloc *a, u32 number, u32 n)
{
	const struct process *p = targets_find(a->options.targets, number);
	const struct instance *in = teller(p);

	for (u32 i = 0; in && i < n && i < LEAF_FRAMES && frame_kind(&a->frames[i]) == FRAME_NATIVE; i++)
		if (is_in_file(p, in, frame_addr(&a->frames[i])))
			return i;
	return 0;
}

/* A stack whose frames are a->frames. */
static struct error *take_stack(struct alloc *a, const struct alloc_class *p, const struct stack_record *record, u32 n)
{
	struct error *err = p->record.how == ALLOC_BY_WATCH ? place_exactly(a, record->instance, n) : NULL;
	u32 node = COLLECTOR_FILTERED, skip = filling(a, record->instance, n);

	if (!err)
		err = collector_place(a->options.collector, record, a->frames + skip, n - skip, p->known ? &p->frame : NULL, &node);
	if (!err && node != COLLECTOR_FILTERED && !p->known)
		err = child_unknown(a, node, "[class not seen]", &node);
	return err || node == COLLECTOR_FILTERED ? err : count(a, p, node);
}

/* Its class comes another way, and most often before it. */
struct error *alloc_stack(void *alloc, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct alloc *a = alloc;
	struct waiting w = { .since_ns = now_ns(), .n = n };
	struct error *err = n <= FRAMES_MAX ? grow((void **)&a->waiting, a->nwaiting, sizeof(*a->waiting)) : NULL;

	if (err || n > FRAMES_MAX)
		return err;
	w.head = malloc(offsetof(struct stack_record, frame));
	w.frames = malloc((n + 1) * sizeof(*w.frames));
	if (!w.head || !w.frames) {
		forget(&w);
		return &error_no_memory;
	}
	memcpy(w.head, record, offsetof(struct stack_record, frame));
	memcpy(w.frames, frames, n * sizeof(*w.frames));
	a->waiting[a->nwaiting++] = w;
	return NULL;
}

/* What was found out since, beside what still waits for its stack. */
static struct error *gather(struct alloc *a, u64 now)
{
	cleanup(free) struct alloc_class *found = NULL;
	u32 n = alloc_classes_take(a->classes, &found), left = 0;
	struct error *err = NULL;

	table_clear(&a->by_id);
	for (u32 i = 0; i < a->ntold; i++)
		if (a->told[i].class.record.id && now - a->told[i].since_ns < WAIT_NS)
			a->told[left++] = a->told[i];
	a->ntold = left;
	for (u32 i = 0; i < n && !err; i++) {
		if (found[i].record.how == ALLOC_BY_CENSUS) {
			err = count_census(a, &found[i]);
			continue;
		}
		err = grow((void **)&a->told, a->ntold, sizeof(*a->told));
		if (!err)
			a->told[a->ntold++] = (struct told){ .class = found[i], .since_ns = now };
	}
	for (u32 i = 0; i < a->ntold && !err; i++)
		err = table_put(&a->by_id, key_of(a->told[i].class.record.id, 0), i);
	return err;
}

/* Counts those that have both, and forgets those that wait since before until_ns: their records were lost. */
static struct error *join(struct alloc *a, u64 until_ns)
{
	struct error *err = gather(a, now_ns());
	u32 left = 0;

	for (u32 i = 0; i < a->nwaiting; i++) {
		struct waiting *w = &a->waiting[i];
		u64 *at = err ? NULL : table_get(&a->by_id, key_of(w->head->hash, 0));

		if (!err && !at && w->since_ns > until_ns) {
			a->waiting[left++] = *w;
			continue;
		}
		if (at) {
			memcpy(a->frames, w->frames, w->n * sizeof(*w->frames));
			err = take_stack(a, &a->told[*at].class, w->head, w->n);
			a->told[*at].class.record.id = 0;
		}
		forget(w);
	}
	a->nwaiting = left;
	return err;
}

struct error *alloc_poll(struct alloc *a, u64 now)
{
	struct error *err = join(a, now - WAIT_NS);

	if (err || now - a->steered_ns < STEER_NS)
		return err;
	err = steer(a, now);
	if (err || now - a->swept_ns < SWEEP_NS)
		return err;
	a->swept_ns = now;
	if (a->watchpoints)
		watchpoints_sweep(a->watchpoints);
	err = alloc_attach(a, 0, false);
	if (err && err != &error_no_memory) {
		a->options.warn(a->options.ctx, err);
		err = NULL;
	}
	return err ? err : count_exactly(a, false);
}

static double exact(const struct allocator *al)
{
	return al->known ? (double)(al->before + al->last - al->first) : 0;
}

static bool is_pooled(const struct alloc *a, const struct allocator *al)
{
	return al->known && (al->samples < OWN_SCALE || al->estimated <= 0) && (al->estimated > 0 || !a->options.threads);
}

/* Threads with many samples are scaled by themselves, the others together. */
static void scale(struct alloc *a)
{
	double pool = 0, estimated = 0, all = 1;

	for (u32 i = 0; i < a->nallocators; i++) {
		struct allocator *al = &a->allocators[i];

		if (is_pooled(a, al)) {
			pool += exact(al);
			estimated += al->estimated;
		} else if (al->known && al->estimated > 0) {
			al->scale = exact(al) / al->estimated;
		}
	}
	if (estimated > 0)
		all = pool / estimated;
	for (u32 i = 0; i < a->nallocators; i++) {
		struct allocator *al = &a->allocators[i];

		a->summary.bytes += exact(al);
		a->summary.threads += exact(al) > 0;
		if (is_pooled(a, al))
			al->scale = all;
		if (al->known && al->estimated <= 0 && (a->options.threads || estimated <= 0))
			a->summary.unseen += exact(al);
	}
}

static struct error *add_unseen(struct alloc *a)
{
	struct profile *p = collector_profile(a->options.collector);
	struct error *err;
	u32 node = 0;

	if (a->summary.unseen < 1)
		return NULL;
	err = child_unknown(a, 0, "[no stack seen]", &node);
	if (!err)
		profile_add(p, node, (u64)llround(a->summary.unseen));
	return err;
}

static struct error *add_spread(void *ctx, const struct census_result *r)
{
	struct cell *cell;
	struct error *err = add_cell(ctx, r->allocator, r->node, r->bytes, r->objects, &cell);

	if (!err)
		cell->unseen = r->unseen;
	return err;
}

struct error *alloc_finish(struct alloc *a)
{
	struct profile *p = collector_profile(a->options.collector);
	double bytes = 0, objects = 0;
	struct error *err;

	alloc_classes_stop(a->classes);
	err = join(a, UINT64_MAX);
	if (!err)
		err = census_spread(a->census, add_spread, a);
	if (err)
		return err;
	a->summary.census = census_usable(a->census);
	scale(a);
	for (u32 i = 0; i < a->ncells; i++) {
		bytes += a->cells[i].bytes - a->cells[i].sizeless;
		objects += a->cells[i].objects;
	}
	for (u32 i = 0; i < a->ncells; i++) {
		const struct cell *c = &a->cells[i];
		double by = a->allocators[c->allocator].scale, more = bytes > 0 ? c->sizeless * objects / bytes : 0;

		profile_add(p, c->node, (u64)llround(c->bytes * by));
		profile_add_more(p, c->node, (u64)llround((c->objects + more) * by));
	}
	err = add_unseen(a);
	for (u32 i = 0; i < a->ncells; i++)
		if (a->cells[i].unseen)
			a->summary.unseen += a->cells[i].bytes * a->allocators[a->cells[i].allocator].scale;
	return err;
}

void alloc_summary(struct alloc *a, struct alloc_summary *ret)
{
	struct watchpoints_stats w = { 0 };

	*ret = a->summary;
	if (a->watchpoints)
		watchpoints_stats(a->watchpoints, &w);
	ret->effective = a->variance > 0 ? fmin(a->estimated * a->estimated / a->variance, (double)ret->samples) : (double)ret->samples;
	ret->watching = a->watching;
	ret->set = w.set;
	ret->late = w.late;
	ret->refused = w.refused;
	ret->realtime = w.realtime;
	ret->interval = (u64)a->interval;
	error_free(object_alloc_stats(a->options.object, &ret->probe));
}
