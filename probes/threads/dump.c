/* SPDX-License-Identifier: Apache-2.0 */
#include "dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "logical.h"
#include "probes/sampler.h"
#include "threads.h"
#include "unwind/binary/core_file.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/open_files.h"
#include "unwind/process/mutex.h"
#include "unwind/process/process.h"
#include "unwind/process/syscall.h"
#include "unwind/profile/collect.h"
#include "unwind/profile/locks.h"
#include "unwind/profile/thread_names.h"
#include "unwind/symbols/symbols.h"
#include "unwind/unwind.h"

/* Some samples of the clock, for the stacks of threads that are on a CPU: only the CPU itself has their registers. */

struct burst_options {
	struct collect_options collect;
	u32 depth;
	bool no_user, no_kernel;
	const char *cache_dir;
	void (*warn)(void *ctx, struct error *err);
	void *ctx;
};

struct burst_thread {
	pid_t pid;
	u32 tid;
	bool seen; /* set by burst_take() */
};

#define SECONDS   0.1
#define FREQUENCY 499

struct burst {
	struct sampler *sampler;
};

static u32 thread_node(const struct profile *p, u32 wanted)
{
	size_t len;
	u32 tid;

	for (u32 i = p->nodes[0].child; i; i = p->nodes[i].sibling)
		if (thread_of_function(&p->functions[p->nodes[i].function], &tid, &len) && tid == wanted)
			return i;
	return 0;
}

static struct error *attach(struct burst *b, const struct burst_options *o, const struct burst_thread *threads, u32 n)
{
	u32 attached = 0;

	for (u32 i = 0; i < n; i++) {
		struct error *err = NULL;
		u32 k = 0;

		while (k < i && threads[k].pid != threads[i].pid)
			k++;
		if (k == i)
			err = sampler_attach(b->sampler, threads[i].pid, n == 1);
		if (err == &error_no_memory)
			return err;
		attached += !err;
		if (err)
			o->warn(o->ctx, err);
	}
	return attached ? NULL : error_new(ERROR_NO_PROCESS, "the processes have exited");
}

static void burst_destroy(struct burst *b)
{
	if (!b)
		return;
	sampler_destroy(b->sampler);
	free(b);
}

/* Samples their processes for a moment. Reasons why some could not be sampled are reported through warn. */
static struct error *burst_take(const struct burst_options *o, struct burst_thread *threads, u32 n, struct burst **ret)
{
	struct sampler_options options = {.event = &clock_event,
	        .frequency = FREQUENCY,
	        .duration_s = SECONDS,
	        .depth = o->depth,
	        .no_user = o->no_user,
	        .no_kernel = o->no_kernel,
	        .cache_dir = o->cache_dir,
	        .collect = o->collect,
	        .warn = o->warn,
	        .ctx = o->ctx};
	struct burst *b = calloc(1, sizeof(*b));
	volatile sig_atomic_t stop = 0;
	struct error *err = b ? sampler_create(&options, &b->sampler) : &error_no_memory;

	if (!err)
		err = attach(b, o, threads, n);
	if (!err)
		err = sampler_run(b->sampler, &stop);
	if (err) {
		burst_destroy(b);
		return err;
	}
	profile_finish(sampler_profile(b->sampler));
	for (u32 i = 0; i < n; i++)
		threads[i].seen = thread_node(sampler_profile(b->sampler), threads[i].tid);
	*ret = b;
	return NULL;
}

static u32 heaviest_child(const struct profile *p, u32 node)
{
	u32 best = 0;

	for (u32 i = p->nodes[node].child; i; i = p->nodes[i].sibling)
		if (!best || p->nodes[i].total > p->nodes[best].total)
			best = i;
	return best && p->nodes[best].total > p->nodes[node].self ? best : 0;
}

static struct error *graft_function(const struct profile *from, u32 node, struct profile *to, u32 *at)
{
	struct profile_function f = from->functions[from->nodes[node].function];
	struct error *err = NULL;
	u32 function, image = f.image;

	f.image = 0;
	if (image)
		err = profile_image(to, from->images[image].path, from->images[image].build_id, &f.image);
	if (!err)
		err = profile_function(to, 0, &f, false, &function);
	return err ? err : profile_child(to, *at, function, at);
}

/* Adds each thread's most frequent stack to a finished profile, below a node of the thread. */
static struct error *burst_graft(const struct burst *b, const struct burst_thread *threads, u32 n, struct profile *to)
{
	const struct profile *from = sampler_profile(b->sampler);
	struct error *err = NULL;

	for (u32 i = 0; !err && i < n; i++) {
		u32 at = 0, node = threads[i].seen ? thread_node(from, threads[i].tid) : 0;

		if (!node)
			continue;
		for (; !err && node; node = heaviest_child(from, node))
			err = graft_function(from, node, to, &at);
		if (!err)
			profile_add(to, at, 1);
	}
	return err;
}

/* The threads of a core file, as if the kernel had just handed them over: none of them will run. */

static int by_tid(const void *a, const void *b)
{
	const struct thread_record *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static struct error *core_threads(const struct core_file *core, struct thread_list *ret)
{
	*ret = (struct thread_list){.items = calloc(core->nthreads, sizeof(*ret->items)), .n = core->nthreads};
	for (u32 i = 0; ret->items && i < core->nthreads; i++) {
		const struct core_thread *t = &core->threads[i];
		struct thread_record *r = &ret->items[i];

		*r = (struct thread_record){.tgid = core->pid,
		        .tid = t->tid,
		        .own_tid = t->tid,
		        .flags = THREAD_IN_CORE | (core->signal && t->tid == core->killed ? THREAD_KILLED : 0),
		        .syscall = t->at.syscall,
		        .thread_pointer = t->at.thread_pointer};
		memcpy(r->arguments, t->at.arguments, sizeof(r->arguments));
		memcpy(r->reg, t->at.reg, sizeof(r->reg));
		memcpy(r->comm, core->comm, sizeof(r->comm));
	}
	if (!ret->items)
		return &error_no_memory;
	qsort(ret->items, ret->n, sizeof(*ret->items), by_tid);
	return NULL;
}

#define ROUNDS     3  /* over all threads; then those that still move are looked at one by one */
#define TRIES      16 /* of one thread alone */
#define FRAMES_MAX (8192 + THREAD_KERNEL_FRAMES)
#define DEEPEST    (1u << 20) /* frames of a thread of a core: what began a recursion is its other end */
#define PERIOD_MAX 16
#define FILES      64 /* open at a time */

struct dump {
	struct dump_options options;
	struct arena *arena;
	struct modules *modules;
	struct collector *collector;
	struct threads *threads; /* NULL: */
	struct core_file *core;
	struct process **processes;
	u32 nprocesses;
	struct frame *frames; /* of the walk in progress: FRAMES_MAX, or more of a core */
	char target[128];
};

static void warn(void *ctx, struct error *err)
{
	struct dump *d = ctx;

	d->options.warn(d->options.ctx, err);
}

static struct process *find_process(void *ctx, u32 number)
{
	struct dump *d = ctx;

	return number && number <= d->nprocesses ? d->processes[number - 1] : NULL;
}

static bool name_kernel(void *ctx, u64 addr, char *text, size_t size)
{
	struct dump *d = ctx;

	return d->threads && threads_name_kernel(d->threads, addr, text, size);
}

static struct error *open_core(struct dump *d)
{
	struct error *err = core_open(d->options.core, d->options.root, &d->core);

	if (!err)
		err = grow(&d->processes, d->nprocesses, sizeof(*d->processes));
	if (!err)
		err = process_create_core(d->modules, d->core, 1, &d->processes[0]);
	d->nprocesses = !err;
	return err;
}

struct error *dump_create(const struct dump_options *options, struct dump **ret)
{
	struct error *err = options->core ? NULL : open_files_need(FILES, 0);
	struct dump *d = err ? NULL : calloc(1, sizeof(*d));

	if (!d)
		return err ? err : &error_no_memory;
	d->options = *options;
	d->options.collect.threads = true;
	d->options.collect.names.kernel = name_kernel;
	d->options.collect.names.kernel_ctx = d;
	d->frames = malloc((FRAMES_MAX + (options->core ? DEEPEST : 0)) * sizeof(*d->frames));
	err = d->frames ? arena_create(NULL, &d->arena) : &error_no_memory;
	if (!err)
		err = modules_create(d->arena, options->cache_dir, &d->modules);
	if (!err) {
		d->modules->complain = warn;
		d->modules->complain_ctx = d;
		err = collector_create(d->modules, &d->options.collect, find_process, d, &d->collector);
	}
	if (!err)
		err = options->core ? open_core(d) : threads_create(options->no_kernel, &d->threads);
	if (err) {
		dump_destroy(d);
		return err;
	}
	*ret = d;
	return NULL;
}

void dump_destroy(struct dump *d)
{
	if (!d)
		return;
	threads_destroy(d->threads);
	collector_destroy(d->collector);
	for (u32 i = 0; i < d->nprocesses; i++)
		process_destroy(d->processes[i]);
	free(d->processes);
	modules_destroy(d->modules);
	core_close(d->core);
	if (d->arena)
		arena_destroy(d->arena);
	free(d->frames);
	free(d);
}

struct error *dump_add(struct dump *d, pid_t pid)
{
	struct process *p;
	struct error *err = grow(&d->processes, d->nprocesses, sizeof(*d->processes));

	if (!err)
		err = process_create(d->modules, pid, d->nprocesses + 1, &p);
	if (err)
		return err;
	d->processes[d->nprocesses++] = p;
	return threads_want(d->threads, pid);
}

static void forget(struct dump_thread *t)
{
	free(t->frames);
	free(t->syscall);
	free(t->lock);
}

void dump_list_free(struct dump_list *list)
{
	for (u32 i = 0; i < list->n; i++)
		forget(&list->items[i]);
	free(list->items);
	logical_free(list);
	*list = (struct dump_list){0};
}

static struct process *process_of(struct dump *d, u32 tgid)
{
	for (u32 i = 0; i < d->nprocesses; i++)
		if (d->core || (u32)d->processes[i]->pid == tgid)
			return d->processes[i];
	return NULL;
}

static u32 put_kernel(struct dump *d, const struct thread_record *r)
{
	for (u32 i = 0; i < r->nkernel; i++)
		d->frames[i] =
		        (struct frame){.where = frame_where(FRAME_KERNEL, RUNTIME_NATIVE, FRAME_RETADDR, r->kernel[i])};
	return r->nkernel;
}

static bool runtimes_know(struct dump_thread *t, u64 futex)
{
	struct runtime_process p = process_view(t->process);
	struct runtime_thread thread = {
	        .tid = (pid_t)t->at.own_tid, .pointer = t->at.thread_pointer, .sp = t->at.reg[REG_SP], .futex = futex};

	for (u32 i = 0; i < t->process->ninstances; i++) {
		const struct runtime_ops *ops = t->process->instances[i].ops;
		void *data = t->process->instances[i].data;

		t->wait = (struct runtime_wait){0};
		if (ops->waits_for && data && ops->waits_for(data, &p, &thread, &t->wait))
			return true;
	}
	return false;
}

/* Here, and not when it is shown: only what is read before it is known that a thread stood still belongs together. */
static void find_wait(struct dump_thread *t)
{
	struct syscall call = {.number = t->at.syscall, .tid = (pid_t)t->at.tid, .memory = t->process->memory};
	u64 addr;
	u32 value, holder;

	memcpy(call.arguments, t->at.arguments, sizeof(call.arguments));
	t->waits = mutex_owner(&call, &addr, &holder);
	if (t->waits)
		t->wait = (struct runtime_wait){.kind = LOCK_MUTEX, .at = addr, .holder = (pid_t)holder};
	else
		t->waits = syscall_waits_for_futex(&call, &addr, &value) && runtimes_know(t, addr);
}

/* After how many frames do they repeat, from the first on to the last? 0: they do not. */
static u32 period_of(const struct frame *frames, u32 n)
{
	for (u32 period = 1; period <= PERIOD_MAX && period < n; period++) {
		u32 i = period;

		while (i < n && frames[i].where == frames[i - period].where)
			i++;
		if (i == n)
			return period;
	}
	return 0;
}

/* Of n frames behind the kernel's, which are too many, both ends stay. */
static u32 cut_middle(struct dump *d, struct dump_thread *t, u32 kernel, u32 n)
{
	struct frame *frames = d->frames + kernel;
	u32 first = d->options.depth / 2, last = d->options.depth - first, out = n - first - last;

	t->period = period_of(frames + first, out);
	if (t->period) {
		out -= out % t->period; /* so that what follows goes on where the frames before stopped */
		last = n - first - out;
	}
	t->left_out = out;
	memmove(frames + first, frames + n - last, last * sizeof(*frames));
	return first + last;
}

/* Do the bytes before an address end in a call? e8 and four bytes, or ff /2 with up to five behind its ModRM. */
static bool follows_call(const struct process *p, u64 addr)
{
	u8 code[7];

	if (!process_mapping(p, addr - 1) || !memory_read(p->memory, code, sizeof(code), addr - sizeof(code)))
		return false;
	if (code[2] == 0xe8)
		return true;
	for (u32 i = 0; i + 1 < sizeof(code); i++)
		if (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

/* A thread that died where no code is has called that: the walk begins at the return address, which is all it left. */
static void leave_no_code(const struct process *p, struct unwind_registers *r)
{
	u64 caller;

	if (memory_read(p->memory, &caller, sizeof(caller), r->reg[REG_SP]) && follows_call(p, caller)) {
		r->reg[REG_PC] = caller;
		r->reg[REG_SP] += sizeof(caller);
		r->called = true;
	}
}

static enum stop_reason walk_user(
        struct dump *d, const struct dump_thread *t, struct unwind_registers *r, struct frame *frames, u32 *n)
{
	u32 most = d->core ? DEEPEST : d->options.depth;
	enum stop_reason stop = unwind_stack(t->process, r, frames, most, n);

	if (!d->core || stop != STOP_NO_REGION || *n)
		return stop;
	leave_no_code(t->process, r);
	return r->called ? unwind_stack(t->process, r, frames, most, n) : stop;
}

/* Walks a thread as the kernel reported it, in place of what was walked before. */
static struct error *walk(struct dump *d, struct dump_thread *t, const struct thread_record *r)
{
	struct unwind_registers regs = {.thread_pointer = r->thread_pointer, .probes = &r->probes};
	u32 n = 0, kernel;

	memcpy(regs.reg, r->reg, sizeof(regs.reg));
	t->at = *r;
	t->process = process_of(d, r->tgid);
	t->open = true;
	t->stop = STOP_NO_USER;
	t->waits = false;
	t->attempts++;
	kernel = put_kernel(d, r);
	if (r->flags & THREAD_EXITING || !t->process) {
		t->how = DUMP_EXITING;
		t->open = false;
	} else if (r->flags & THREAD_ON_CPU) {
		t->how = DUMP_UNSEEN;
	} else {
		t->how = DUMP_TORN;
		find_wait(t);
		if (d->options.no_user)
			t->stop = STOP_ROOT;
		else
			t->stop = walk_user(d, t, &regs, d->frames + kernel, &n);
		if (n > d->options.depth)
			n = cut_middle(d, t, kernel, n);
	}
	free(t->frames);
	t->frames = malloc((kernel + n + 1) * sizeof(*t->frames));
	if (!t->frames)
		return &error_no_memory;
	memcpy(t->frames, d->frames, (kernel + n) * sizeof(*t->frames));
	t->nframes = kernel + n;
	return NULL;
}

/* Did a thread stand still from one look at it until the next? */
static bool stood_still(const struct thread_record *then, const struct thread_record *now)
{
	return !((then->flags | now->flags) & (THREAD_ON_CPU | THREAD_EXITING)) && then->switches == now->switches &&
	       then->reg[REG_SP] == now->reg[REG_SP];
}

/* Its code may have been mapped since its process was looked at. */
static struct error *look_again(struct dump *d, struct dump_thread *t, bool *changed)
{
	*changed = false;
	return stop_is_unknown_code(t->stop) && t->attempts < ROUNDS && !t->process->dead
	               ? process_rescan(t->process, changed)
	               : NULL;
}

/* Here, and not when it is shown: descriptors are soon of other files. Of a torn thread only numbers are known. */
static struct error *take_call(struct dump_thread *t)
{
	struct syscall call = {.number = t->at.syscall, .past = t->process->core};

	if (t->at.syscall < 0 || (t->how != DUMP_WALKED && t->how != DUMP_TORN))
		return NULL;
	if (t->how == DUMP_WALKED)
		call.memory = t->process->memory;
	if (t->how == DUMP_WALKED && !t->process->core) {
		call.tgid = (pid_t)t->at.tgid;
		call.tid = (pid_t)t->at.tid;
		call.switches = t->at.switches;
	}
	memcpy(call.arguments, t->at.arguments, sizeof(call.arguments));
	t->syscall = syscall_text(&call);
	return t->syscall ? NULL : &error_no_memory;
}

/* What the kernel reports now of a thread that is open: settled, or walked again. */
static struct error *check(struct dump *d, struct dump_thread *t, const struct thread_record *now)
{
	bool changed;
	struct error *err;

	if (!stood_still(&t->at, now))
		return walk(d, t, now);
	err = look_again(d, t, &changed);
	if (err || changed)
		return err ? err : walk(d, t, now);
	t->how = DUMP_WALKED;
	t->open = false;
	return take_call(t);
}

static struct error *add_thread(struct dump *d, struct dump_list *list, const struct thread_record *r)
{
	struct error *err = grow(&list->items, list->n, sizeof(*list->items));

	if (err)
		return err;
	list->items[list->n] = (struct dump_thread){0};
	return walk(d, &list->items[list->n++], r);
}

/* One look at all of them: both lists are by tid. Those that are gone are left out; new ones come in. */
static struct error *look(struct dump *d, struct dump_list *list)
{
	struct dump_list old = *list;
	struct thread_list now;
	struct error *err = d->core ? core_threads(d->core, &now) : threads_take(d->threads, &now);
	u32 i = 0;

	if (err)
		return err;
	*list = (struct dump_list){0};
	for (u32 k = 0; !err && k < now.n; k++) {
		if (!collect_wants_thread(&d->options.collect, now.items[k].tid))
			continue;
		while (i < old.n && old.items[i].at.tid < now.items[k].tid)
			forget(&old.items[i++]);
		if (i == old.n || old.items[i].at.tid != now.items[k].tid) {
			err = add_thread(d, list, &now.items[k]);
			continue;
		}
		err = grow(&list->items, list->n, sizeof(*list->items));
		if (err)
			break;
		list->items[list->n++] = old.items[i++];
		if (list->items[list->n - 1].open)
			err = check(d, &list->items[list->n - 1], &now.items[k]);
	}
	while (i < old.n)
		forget(&old.items[i++]);
	free(old.items);
	free(now.items);
	return err;
}

/* A thread that moved in all rounds: the time between its two looks is as short as it can be. */
static struct error *chase(struct dump *d, struct dump_thread *t)
{
	struct error *err = NULL;
	bool found = true;

	for (u32 i = 0; !err && t->open && found && i < TRIES; i++) {
		struct thread_record now;

		err = threads_take_one(d->threads, (pid_t)t->at.tid, &now, &found);
		if (!err && found)
			err = check(d, t, &now);
	}
	return err;
}

static bool is_same_wait(const struct runtime_wait *a, const struct runtime_wait *b)
{
	return a->kind == b->kind && a->holder == b->holder && a->holder_pointer == b->holder_pointer;
}

/* Finds them asleep, then who holds what they wait for, then that none of them ran meanwhile: who sleeps keeps what it
 * holds. */
static struct error *wait_together(
        struct dump *d, const struct dump_thread *const *threads, u32 n, struct thread_record *before, bool *still)
{
	struct thread_record now;
	struct error *err = NULL;

	*still = true;
	for (u32 i = 0; !err && *still && i < n; i++) {
		err = threads_take_one(d->threads, (pid_t)threads[i]->at.tid, &before[i], still);
		*still = *still && !(before[i].flags & (THREAD_ON_CPU | THREAD_EXITING));
	}
	for (u32 i = 0; !err && *still && i < n; i++) {
		struct dump_thread t = {.at = before[i], .process = threads[i]->process};

		find_wait(&t);
		*still = t.waits && is_same_wait(&t.wait, &threads[i]->wait);
	}
	for (u32 i = 0; !err && *still && i < n; i++) {
		err = threads_take_one(d->threads, (pid_t)threads[i]->at.tid, &now, still);
		*still = *still && stood_still(&before[i], &now);
	}
	return err;
}

/* A JVM's threads wake up now and then to look whether they are still to wait. */
struct error *dump_waits_still(struct dump *d, const struct dump_thread *const *threads, u32 n, bool *still)
{
	cleanup(free) struct thread_record *before = d->core ? NULL : calloc(n, sizeof(*before));
	struct error *err = NULL;

	*still = d->core;
	if (!d->core && !before)
		return &error_no_memory;
	for (u32 i = 0; !err && !*still && i < ROUNDS; i++)
		err = wait_together(d, threads, n, before, still);
	return err;
}

static bool is_any_open(const struct dump_list *list)
{
	for (u32 i = 0; i < list->n; i++)
		if (list->items[i].open)
			return true;
	return false;
}

struct error *dump_take(struct dump *d, struct dump_list *ret)
{
	struct error *err;

	*ret = (struct dump_list){0};
	err = look(d, ret);
	for (u32 i = 0; !err && i < ROUNDS && is_any_open(ret); i++)
		err = look(d, ret);
	for (u32 i = 0; !err && i < ret->n; i++) {
		err = chase(d, &ret->items[i]);
		if (!err && ret->items[i].open)
			err = take_call(&ret->items[i]);
	}
	for (u32 i = 0; !err && d->options.logical && i < d->nprocesses; i++)
		err = logical_take(d->processes[i], warn, d, ret);
	if (!err && !ret->n)
		err = error_hint(error_new(ERROR_NO_PROCESS, "%s has exited", dump_target(d)),
		        "give the pid of a running process");
	if (err)
		dump_list_free(ret);
	return err;
}

static struct error *name_lock(struct dump_thread *t)
{
	char text[LOCK_TEXT], root[64];
	const struct mapping *m;

	if (!t->waits || t->wait.kind != LOCK_MUTEX || t->lock)
		return NULL;
	m = process_mapping(t->process, t->wait.at);
	snprintf(root, sizeof(root), "/proc/%d/root", t->process->pid);
	if (m && m->image)
		error_free(symbols_load(m->image, t->process->pid ? root : ""));
	locks_name_address(t->process, t->wait.at, text);
	t->lock = strdup(text);
	return t->lock ? NULL : &error_no_memory;
}

static struct error *place(struct dump *d, const struct dump_thread *t)
{
	struct stack_record record = {.instance = t->process->number,
	        .tgid = t->at.tgid,
	        .tid = t->at.tid,
	        .stop = (u16)t->stop,
	        .weight = 1};
	struct error *err;
	u32 node;

	memcpy(record.comm, t->at.comm, sizeof(record.comm));
	err = collector_place(d->collector, &record, t->frames, t->nframes, NULL, &node);
	if (!err && node != COLLECTOR_FILTERED)
		profile_add(collector_profile(d->collector), node, 1);
	return err;
}

static bool is_running(const struct dump_thread *t)
{
	return t->how == DUMP_UNSEEN || t->how == DUMP_TORN;
}

static struct error *find_running(const struct dump_list *list, struct burst_thread **ret, u32 *n)
{
	*n = 0;
	*ret = calloc(list->n + 1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	for (u32 i = 0; i < list->n; i++)
		if (is_running(&list->items[i]))
			(*ret)[(*n)++] = (struct burst_thread){
			        .pid = (pid_t)list->items[i].at.tgid, .tid = list->items[i].at.tid};
	return NULL;
}

/* Those on a CPU, and those that were never seen standing still: what samples show of them is better. */
static struct error *sample_running(struct dump *d, struct burst_thread *running, u32 n, struct burst **ret)
{
	struct burst_options options = {.collect = d->options.collect,
	        .depth = d->options.depth,
	        .no_user = d->options.no_user,
	        .no_kernel = d->options.no_kernel,
	        .cache_dir = d->options.cache_dir,
	        .warn = d->options.warn,
	        .ctx = d->options.ctx};
	struct error *err;

	*ret = NULL;
	if (!n)
		return NULL;
	err = burst_take(&options, running, n, ret);
	if (!err || err == &error_no_memory)
		return err;
	d->options.warn(d->options.ctx, err); /* what is known of the others is kept */
	return NULL;
}

struct error *dump_name(struct dump *d, struct dump_list *list)
{
	cleanup(free) struct burst_thread *running = NULL;
	struct burst *burst = NULL;
	u32 n, k = 0;
	struct error *err = find_running(list, &running, &n);

	if (!err)
		err = sample_running(d, running, n, &burst);
	for (u32 i = 0; !err && i < list->n; i++) {
		struct dump_thread *t = &list->items[i];

		if (is_running(t) && running[k++].seen) {
			t->how = DUMP_SAMPLED;
			continue;
		}
		if (is_running(t)) { /* it does not run any more */
			t->open = true;
			err = chase(d, t);
		}
		if (!err && (t->how == DUMP_TORN || t->how == DUMP_WALKED))
			err = place(d, t);
		if (!err)
			err = name_lock(t);
	}
	if (!err)
		err = logical_name(d->collector, list);
	if (!err)
		err = collector_finish(d->collector, d->options.stop);
	if (!err && burst)
		err = burst_graft(burst, running, n, dump_profile(d));
	burst_destroy(burst);
	if (!err)
		profile_finish(dump_profile(d));
	return err;
}

struct profile *dump_profile(struct dump *d)
{
	return collector_profile(d->collector);
}

bool dump_crash(const struct dump *d, const struct dump_list *list, const struct dump_thread *t, struct crash *ret)
{
	if (!d->core || !(t->at.flags & THREAD_KILLED) || !t->process)
		return false;
	crash_describe(d->core, list, t, ret);
	return true;
}

const struct core_file *dump_core(const struct dump *d)
{
	return d->core;
}

const char *dump_target(struct dump *d)
{
	const struct process *p = d->nprocesses ? d->processes[0] : NULL;

	if (d->core) {
		snprintf(d->target, sizeof(d->target), "%s (pid %u, core)", p->comm, d->core->pid);
		return d->target;
	}
	snprintf(d->target, sizeof(d->target), d->nprocesses > 1 ? "%s (pid %d) and %u more" : "%s (pid %d)",
	        p ? p->comm : "", p ? p->pid : 0, d->nprocesses - 1);
	return d->target;
}
