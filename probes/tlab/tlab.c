/* SPDX-License-Identifier: Apache-2.0 */

#include "tlab.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <types.h>
#include <xxhash.h>

#include "grow.h"
#include "probes/uprobe_cost.h"
#include "probes/uprobe_shifts.h"
#include "tlab_budget.h"
#include "tlab_classes.h"
#include "tlab_counts.h"
#include "tlab_threads.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/error.h"
#include "unwind/now.h"
#include "unwind/runtime_alloc.h"
#include "unwind/shared/record.h"
#include "unwind/table.h"
#include "watchpoints.h"

/*
 * A sample's stack and its object's class come on two ways (collect.h, tlab_classes.h); the class usually comes later.
 * Each waits here for the other, for some seconds at most.
 */

struct tlab_join_options {
	struct tlab_classes *classes;
	/* Both are here. frames may be changed; record is without any. */
	struct error *(*both)(void *ctx, const struct tlab_class *class, const struct stack_record *record,
	        struct frame *frames, u32 n);
	/* Objects of a kind, of a survey: they have no stack. */
	struct error *(*counted)(void *ctx, const struct tlab_class *class);
	void *ctx;
};

#define WAIT_NS    2000000000ULL /* longer than classes are looked for: then the other was lost */
#define FRAMES_MAX (33 * CHUNK_FRAMES)

struct waiting { /* a stack */
	u64 since_ns;
	struct stack_record *record; /* without frames: they are in frames[] */
	struct frame *frames;
	u32 n;
};

struct found_class {
	u64 since_ns;
	struct tlab_class class;
};

struct tlab_join {
	struct tlab_join_options options;
	struct waiting *waiting;
	u32 nwaiting;
	struct found_class *classes;
	u32 nclasses;
	struct table by_id; /* of records: index in classes */
};

static struct error *tlab_join_create(const struct tlab_join_options *options, struct tlab_join **ret)
{
	struct tlab_join *j = calloc(1, sizeof(*j));

	if (!j)
		return &error_no_memory;
	j->options = *options;
	*ret = j;
	return NULL;
}

static void forget(struct waiting *w)
{
	free(w->record);
	free(w->frames);
}

static void tlab_join_destroy(struct tlab_join *j)
{
	if (!j)
		return;
	for (u32 i = 0; i < j->nwaiting; i++)
		forget(&j->waiting[i]);
	free(j->waiting);
	free(j->classes);
	table_free(&j->by_id);
	free(j);
}

/* A stack, whose hash is the id of its struct alloc_record. One that is too deep is left out. */
static struct error *tlab_join_stack(
        struct tlab_join *j, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct waiting w = {.since_ns = now_ns(), .n = n};
	struct error *err = n <= FRAMES_MAX ? grow((void **)&j->waiting, j->nwaiting, sizeof(*j->waiting)) : NULL;

	if (err || n > FRAMES_MAX)
		return err;
	w.record = malloc(offsetof(struct stack_record, frame));
	w.frames = malloc((n + 1) * sizeof(*w.frames));
	if (!w.record || !w.frames) {
		forget(&w);
		return &error_no_memory;
	}
	memcpy(w.record, record, offsetof(struct stack_record, frame));
	memcpy(w.frames, frames, n * sizeof(*w.frames));
	j->waiting[j->nwaiting++] = w;
	return NULL;
}

static u64 key_of(u64 id)
{
	return XXH3_64bits(&id, sizeof(id)) | 1;
}

/* Those whose stack has come, or never will. */
static void drop_classes(struct tlab_join *j, u64 now)
{
	u32 left = 0;

	for (u32 i = 0; i < j->nclasses; i++)
		if (j->classes[i].class.record.id && now - j->classes[i].since_ns < WAIT_NS)
			j->classes[left++] = j->classes[i];
	j->nclasses = left;
}

static struct error *take_class(struct tlab_join *j, const struct tlab_class *class, u64 now)
{
	struct error *err;

	if (class->record.how == ALLOC_BY_SURVEY)
		return j->options.counted(j->options.ctx, class);
	err = grow((void **)&j->classes, j->nclasses, sizeof(*j->classes));
	if (!err)
		j->classes[j->nclasses++] = (struct found_class){.class = *class, .since_ns = now};
	return err;
}

/* What was found out since, beside what still waits for its stack. */
static struct error *take_classes(struct tlab_join *j, u64 now)
{
	cleanup(free) struct tlab_class *found = NULL;
	u32 n = tlab_classes_take(j->options.classes, &found);
	struct error *err = NULL;

	drop_classes(j, now);
	for (u32 i = 0; i < n && !err; i++)
		err = take_class(j, &found[i], now);
	table_clear(&j->by_id);
	for (u32 i = 0; i < j->nclasses && !err; i++)
		err = table_put(&j->by_id, key_of(j->classes[i].class.record.id), i);
	return err;
}

/* Hands over those that have both. last: no class comes any more. */
static struct error *tlab_join_poll(struct tlab_join *j, bool last)
{
	u64 now = now_ns();
	struct error *err = take_classes(j, now);
	u32 left = 0;

	for (u32 i = 0; i < j->nwaiting; i++) {
		struct waiting *w = &j->waiting[i];
		u64 *at = err ? NULL : table_get(&j->by_id, key_of(w->record->hash));

		if (!err && !at && !last && now - w->since_ns < WAIT_NS) {
			j->waiting[left++] = *w;
			continue;
		}
		if (at) {
			struct found_class *found = &j->classes[*at];

			err = j->options.both(j->options.ctx, &found->class, w->record, w->frames, w->n);
			found->class.record.id = 0;
		}
		forget(w);
	}
	j->nwaiting = left;
	return err;
}

#define MEASURE_NS       20000000L   /* the rate of allocation is looked at so long before the first sample */
#define SHIFT_MS         200         /* sites are placed for so long at once */
#define LOOK_NS          15000000ULL /* sites were placed for so long: enough to know the rate */
#define STEER_NS         100000000ULL
#define SWEEP_NS         1000000000ULL
#define PROGRAM_NS       1000 /* a hit's program without a sample */
#define BURST            4    /* times the wanted rate */
#define BURST_LEAST      8
#define WINDOWS_A_S      100 /* of tlab_sample.bpf.h */
#define SURVEY_EACH      8   /* stacks to a buffer that is looked into, without watchpoints */
#define SURVEY_A_S       60  /* with watchpoints: so many buffers, and so many bytes of them, a second */
#define SURVEY_BYTES_A_S 8e6
#define NICE             -10
#define REFUSED_LEAST    8 /* watchpoints, and more than were set: there are no debug registers */
#define STRANGE_LEAST    8 /* events that make no sense, and one in STRANGE_EACH: the sites are not what they seemed */
#define STRANGE_EACH     50

struct tlab {
	struct tlab_options options;
	struct watchpoints *watchpoints; /* NULL: not to be had */
	struct tlab_classes *classes;
	struct tlab_budget budget;
	struct tlab_spent before; /* the start */
	struct uprobe_shifts *sites;
	u32 nprobes;
	struct tlab_threads *threads;
	struct tlab_join *join;
	struct tlab_counts *counts;
	u64 steered_ns, swept_ns, bytes_then, placed_then;
	double interval, duty;
	bool started, watching;
	struct tlab_summary summary;
};

/* The uprobes of a shift begin and end together. */
static void open_sites(void *ctx, u32 each, u64 until)
{
	struct tlab *a = ctx;

	tlab_object_set_open(a->options.object, each > 0);
}

static struct error *create_parts(struct tlab *a)
{
	const struct tlab_options *o = &a->options;
	struct uprobe_shifts_options sites = {.shift_ms = SHIFT_MS, .open = open_sites, .ctx = a};
	struct tlab_counts_options counts = {
	        .threads_apart = o->threads, .object = o->object, .targets = o->targets, .collector = o->collector};
	struct tlab_join_options join = {.both = tlab_counts_stack, .counted = tlab_counts_survey};
	struct error *err = tlab_threads_create(o->targets, o->threads, &a->threads);

	counts.threads = a->threads;
	if (!err)
		err = tlab_counts_create(&counts, &a->counts);
	if (!err)
		err = tlab_classes_create(o->object, &a->classes);
	join.classes = a->classes;
	join.ctx = a->counts;
	if (!err)
		err = tlab_join_create(&join, &a->join);
	return err ? err : uprobe_shifts_create(&sites, &a->sites);
}

static void set_watching(struct tlab *a, bool watching)
{
	a->watching = watching;
	tlab_object_set_watching(a->options.object, watching);
	tlab_counts_set_watching(a->counts, watching);
}

/* Without them it goes on. */
static struct error *create_watchpoints(struct tlab *a)
{
	struct error *err = watchpoints_try(&a->budget.trap_ns);

	if (!err)
		err = watchpoints_create(a->options.object, tlab_classes_read_now, a->classes, &a->watchpoints);
	if (err == &error_no_memory)
		return err;
	if (err)
		a->options.warn(a->options.ctx, err);
	set_watching(a, a->watchpoints);
	return NULL;
}

struct error *tlab_create(const struct tlab_options *options, struct tlab **ret)
{
	struct tlab *a = calloc(1, sizeof(*a));
	struct error *err;

	if (!a)
		return &error_no_memory;
	a->options = *options;
	a->interval = (double)options->interval;
	a->duty = 1;
	err = create_parts(a);
	if (!err)
		err = create_watchpoints(a);
	if (err) {
		tlab_destroy(a);
		return err;
	}
	a->budget.share = options->share;
	a->budget.site_ns = PROGRAM_NS + uprobe_cost(tlab_object_site_program(options->object), true, false, a->sites);
	*ret = a;
	return NULL;
}

static void take_away(struct tlab *a)
{
	tlab_object_set_interval(a->options.object, 0, 0);
	tlab_object_set_survey(a->options.object, 0);
	if (a->sites)
		uprobe_shifts_clear(a->sites);
}

void tlab_destroy(struct tlab *a)
{
	if (!a)
		return;
	take_away(a);
	watchpoints_destroy(a->watchpoints);
	tlab_classes_destroy(a->classes);
	tlab_join_destroy(a->join);
	tlab_counts_destroy(a->counts);
	tlab_threads_destroy(a->threads);
	uprobe_shifts_destroy(a->sites);
	free(a);
}

/* Where pt_regs has a register, by its DWARF number. */
static u16 offset_in_regs(u8 reg)
{
	static const u16 offsets[] = {80, 96, 88, 40, 104, 112, 32, 152, 72, 64, 56, 48, 24, 16, 8, 0};

	return reg < sizeof(offsets) / sizeof(*offsets) ? offsets[reg] : ALLOC_NO_OFFSET;
}

/* The file of a runtime as the kernel finds it, whatever became of its name. */
static bool path_of(const struct process *p, const struct instance *in, char ret[PROC_MAP_PATH])
{
	for (u32 i = 0; i < p->maps.nlines; i++) {
		const struct mapping *m = &p->mappings[i];

		if (m->image && m->image == in->loaded->image && m->bias == in->bias) {
			proc_map_path(ret, living_thread(p->pid), m->start, m->end);
			return true;
		}
	}
	return false;
}

static bool has_collection_site(const struct runtime_alloc *r)
{
	for (u32 i = 0; i < r->nsites; i++)
		if (r->site[i].kind == ALLOC_COLLECTION)
			return true;
	return false;
}

static struct error *place_site(struct tlab *a, const struct process *p, const struct runtime_alloc *r,
        const struct alloc_site *site, const char *path)
{
	struct watchpoints_stats threads = {0};
	struct alloc_probe probe = {
	        .kind = site->kind,
	        .start = r->buffer_start,
	        .top = r->buffer_top,
	        .end = r->buffer_end,
	        .thread = offset_in_regs(site->reg[ALLOC_THREAD]),
	        .klass = offset_in_regs(site->reg[ALLOC_CLASS]),
	        .object = offset_in_regs(site->reg[ALLOC_OBJECT]),
	        .size = offset_in_regs(site->reg[ALLOC_OBJECT_SIZE]),
	        .buffer_size = offset_in_regs(site->reg[ALLOC_BUFFER_SIZE]),
	        .early = r->early,
	        .checked = r->checked,
	        .collections = r->collections_at,
	};
	struct error *err;

	if (a->watchpoints)
		watchpoints_stats(a->watchpoints, &threads);
	probe.prompt = !threads.realtime || !has_collection_site(r);
	err = tlab_object_set_probe(a->options.object, a->nprobes, &probe);
	if (!err)
		err = uprobe_shifts_add(a->sites,
		        &(struct uprobe_site){.program = tlab_object_site_program(a->options.object),
		                .process = p->number,
		                .pid = p->pid,
		                .offset = site->offset,
		                .cookie = a->nprobes,
		                .always = site->kind == ALLOC_COLLECTION},
		        path);
	a->nprobes += !err;
	return err;
}

static struct error *place_sites(struct tlab *a, const struct process *p, const struct instance *in)
{
	struct runtime_process view = process_view(p);
	struct runtime_alloc r = {0};
	struct error *err = in->ops->alloc->sites(in->data, &view, &r);
	char path[PROC_MAP_PATH];
	void *reader;

	if (err)
		return err;
	if (!path_of(p, in, path))
		return error_new(ERROR_NO_PROCESS, "process %d has unloaded its %s", p->pid, in->ops->name);
	err = in->ops->alloc->open(in->data, &view, &reader);
	if (!err)
		err = tlab_classes_add(a->classes, p->number, in->ops->alloc, reader);
	for (u32 i = 0; i < r.nsites && !err; i++)
		err = place_site(a, p, &r, &r.site[i], path);
	a->summary.sites = r.origin;
	if (!err && r.checked)
		a->options.warn(a->options.ctx,
		        error_hint(error_new(ERROR_UNSUPPORTED,
		                           "process %d: its allocation functions were found by code: %s has no symbols",
		                           p->pid, in->loaded->path),
		                "each event is checked; installing its debug symbols makes it certain"));
	if (!err && r.missed)
		a->options.warn(a->options.ctx,
		        error_hint(error_new(ERROR_UNSUPPORTED, "process %d: %s", p->pid, r.missed), "%s", r.remedy));
	return err;
}

static struct error *refuse(pid_t pid)
{
	return error_hint(
	        error_new(ERROR_UNSUPPORTED, "process %d runs no language whose allocation yrt can sample", pid),
	        "`yrt inspect -p %d` shows what was recognised in it", pid);
}

struct error *tlab_attach(struct tlab *a, pid_t pid, bool required)
{
	struct error *err = NULL;

	for (u32 i = 0; i < a->options.targets->nprocesses && !err; i++) {
		const struct process *p = a->options.targets->processes[i];
		const struct instance *in = tlab_runtime(p);

		if (p->dead || uprobe_shifts_has(a->sites, p->number) || (pid && p->pid != pid))
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
static struct error *count_spent(struct tlab *a, const struct alloc_stats *st, u64 now, struct tlab_spent *ret)
{
	struct watchpoints_stats threads = {0};
	struct probe_stats probe;
	struct error *err = object_stats(a->options.object, &probe);

	if (err)
		return err;
	if (a->watchpoints)
		watchpoints_stats(a->watchpoints, &threads);
	*ret = (struct tlab_spent){.at_ns = now,
	        .samples = probe.samples,
	        .walk_ns = probe.timed_ns,
	        .thread_ns = threads.thread_ns,
	        .traps = st->traps,
	        .requests = threads.requests,
	        .sites = st->refills + st->slow,
	        .placed_ns = uprobe_shifts_open_ns(a->sites)};
	for (u32 i = 0; i < a->options.targets->nprocesses; i++)
		ret->target_cpu_ns += cpu_of(a->options.targets->processes[i]->pid);
	return NULL;
}

static void set_interval(struct tlab *a, double interval, double frequency)
{
	u32 burst = (u32)(frequency / a->duty * BURST / WINDOWS_A_S);

	a->interval = fmax(interval, (double)a->options.interval);
	tlab_object_set_interval(a->options.object, (u64)a->interval, burst < BURST_LEAST ? BURST_LEAST : burst);
}

/*
 * How often buffers are looked into. With watchpoints most is known from samples, and the few buffers are read while
 * the program runs; without, one for some stacks.
 */
static void set_survey(struct tlab *a, double bytes_a_s, double buffer)
{
	double a_second = fmin(SURVEY_A_S, SURVEY_BYTES_A_S / fmax(buffer, 1));

	tlab_object_set_survey(
	        a->options.object, (u64)(a->watching ? bytes_a_s / a_second : a->interval * SURVEY_EACH));
}

/* The distance between samples gets as much smaller. */
static void set_duty(struct tlab *a, double duty)
{
	if (duty == a->duty)
		return;
	a->interval *= duty / a->duty;
	a->duty = duty;
	uprobe_shifts_set_duty(a->sites, duty);
	tlab_object_set_duty(a->options.object, (u32)(duty * ALLOC_ALWAYS));
}

/* Another profiler or a debugger may have all debug registers of the target's threads, where those of ours are free. */
static void see_refused(struct tlab *a)
{
	struct watchpoints_stats st;

	if (!a->watching)
		return;
	watchpoints_stats(a->watchpoints, &st);
	if (st.refused < REFUSED_LEAST || st.refused < st.set)
		return;
	set_watching(a, false);
	a->options.warn(a->options.ctx, watchpoints_refused());
}

/* Sites that were found by the looks of their code may be others, in a JVM that nobody has seen. */
static struct error *see_strange(const struct tlab *a, const struct alloc_stats *st)
{
	u64 strange = st->strange + tlab_counts_unknown(a->counts);

	if (strange < STRANGE_LEAST || strange * STRANGE_EACH < st->refills + st->slow)
		return NULL;
	return error_hint(
	        error_new(ERROR_UNSUPPORTED, "the functions that looked like allocation, by their code, are others"),
	        "install the package with the runtime's debug symbols, of the same build (Debian: openjdk-N-dbg)");
}

/* At once where more is allocated, slowly where it is less; in shifts, what one of them saw says little. */
static double next_interval(const struct tlab *a, double wanted)
{
	if (!a->started)
		return wanted;
	if (a->duty < 1)
		return (7 * a->interval + wanted) / 8;
	return wanted > a->interval ? wanted : (31 * a->interval + wanted) / 32;
}

/* So few bytes between samples as the wanted rate allows. */
static struct error *steer(struct tlab *a, u64 now)
{
	struct alloc_stats st;
	struct tlab_spent spent;
	struct error *err = tlab_object_stats(a->options.object, &st);
	double rate, frequency;
	u64 placed;

	if (!err)
		err = see_strange(a, &st);
	if (!err)
		err = count_spent(a, &st, now, &spent);
	if (err)
		return err;
	see_refused(a);
	a->steered_ns = now;
	frequency = fmin(a->options.frequency, tlab_budget_rate(&a->budget, &spent));
	placed = spent.placed_ns - a->placed_then;
	if (placed < LOOK_NS)
		return NULL;
	set_duty(a, a->watching ? tlab_budget_duty(&a->budget, a->duty) : 1);
	rate = (double)(st.bytes - a->bytes_then) * 1e9 / (double)placed * a->duty;
	set_interval(a, next_interval(a, rate / frequency), frequency);
	set_survey(a, a->interval * frequency, (double)st.bytes / (double)(st.refills + 1));
	a->placed_then = spent.placed_ns;
	a->bytes_then = st.bytes;
	return NULL;
}

struct error *tlab_start(struct tlab *a)
{
	struct timespec pause = {.tv_nsec = MEASURE_NS};
	struct alloc_stats st;
	struct error *err = tlab_object_stats(a->options.object, &st);

	if (!err)
		err = count_spent(a, &st, now_ns(), &a->before);
	if (err)
		return err;
	tlab_budget_rate(&a->budget, &a->before);
	setpriority(PRIO_PROCESS, 0, NICE); /* names of classes cannot wait; may be refused */
	a->bytes_then = st.bytes;
	a->placed_then = uprobe_shifts_open_ns(a->sites);
	a->steered_ns = now_ns();
	nanosleep(&pause, NULL);
	err = steer(a, now_ns());
	a->started = true;
	return err ? err : tlab_threads_count(a->threads, true);
}

struct error *tlab_stop(struct tlab *a)
{
	struct error *err = tlab_threads_count(a->threads, false); /* before it takes its time to take probes away */
	struct tlab_spent spent;
	struct alloc_stats st;

	if (!err)
		err = tlab_object_stats(a->options.object, &st);
	if (!err)
		err = count_spent(a, &st, now_ns(), &spent);
	if (!err && !spent.target_cpu_ns) /* gone, and its clock too */
		spent = a->budget.last;
	if (!err) {
		a->summary.slowed = tlab_budget_share(&a->budget, &a->before, &spent);
		a->summary.placed =
		        (double)(spent.placed_ns - a->before.placed_ns) / (double)(spent.at_ns - a->before.at_ns);
	}
	take_away(a);
	return err;
}

struct error *tlab_stack(void *alloc, const struct stack_record *record, const struct frame *frames, u32 n)
{
	return tlab_join_stack(((struct tlab *)alloc)->join, record, frames, n);
}

struct error *tlab_poll(struct tlab *a, u64 now)
{
	struct error *err = tlab_join_poll(a->join, false);

	if (err || now - a->steered_ns < STEER_NS)
		return err;
	err = steer(a, now);
	if (err || now - a->swept_ns < SWEEP_NS)
		return err;
	a->swept_ns = now;
	if (a->watchpoints)
		watchpoints_sweep(a->watchpoints);
	err = tlab_attach(a, 0, false);
	if (err && err != &error_no_memory) {
		a->options.warn(a->options.ctx, err);
		err = NULL;
	}
	return err ? err : tlab_threads_count(a->threads, false);
}

struct error *tlab_finish(struct tlab *a)
{
	struct error *err;

	tlab_classes_stop(a->classes);
	err = tlab_join_poll(a->join, true);
	return err ? err : tlab_counts_finish(a->counts);
}

void tlab_summary(struct tlab *a, struct tlab_summary *ret)
{
	struct watchpoints_stats w = {0};

	*ret = a->summary;
	if (a->watchpoints)
		watchpoints_stats(a->watchpoints, &w);
	tlab_counts_summarize(a->counts, ret);
	ret->watching = a->watching;
	ret->set = w.set;
	ret->late = w.late;
	ret->refused = w.refused;
	ret->realtime = w.realtime;
	ret->interval = (u64)a->interval;
	error_free(tlab_object_stats(a->options.object, &ret->probe));
}
