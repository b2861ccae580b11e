/* SPDX-License-Identifier: Apache-2.0 */
#include "tlab_classes.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "unwind/now.h"
#include "unwind/thread_start.h"
#include "unwind/process/switches.h"

#define OPEN_MAX    4096
#define SOONEST_NS  20000ULL /* between two looks: half of what has passed, within these */
#define LATEST_NS   500000ULL
#define SLEEPING_NS 2000000ULL /* a thread that has not allocated since may sleep: see whether it has gone on */
#define GIVE_UP_NS  500000000ULL
#define IDLE_NS     20000000ULL /* most records do not wake the thread */
#define STACK_BYTES (256 << 10)
#define NICE        -20

struct reader { /* of a process */
	u32 process;
	const struct runtime_alloc_ops *ops;
	void *data;
};

struct open { /* a record whose class is not known yet */
	struct tlab_class result;
	u32 gc, looks;
	u64 since_ns, next_ns;
};

struct tlab_classes {
	struct ring_buffer *ring;
	pthread_t thread;
	bool started;
	int stop;             /* eventfd */
	pthread_mutex_t lock; /* of all below, and of reading the ring; who holds it inherits the thread's priority */
	struct reader *readers;
	u32 nreaders;
	struct tlab_class *done;
	u32 ndone, capacity;
	struct open *open; /* OPEN_MAX */
	u32 nopen;
};

static const struct reader *reader_of(const struct tlab_classes *c, u32 process)
{
	for (u32 i = c->nreaders; i-- > 0;)
		if (c->readers[i].process == process)
			return &c->readers[i];
	return NULL;
}

/* Hands out what is found, or will not be. Out of memory: the sample has no class, nor is it counted. */
static void finish(struct tlab_classes *c, const struct tlab_class *result)
{
	u32 capacity = c->capacity ? 2 * c->capacity : 256;
	struct tlab_class *grown = c->done;

	if (c->ndone == c->capacity) {
		grown = realloc(c->done, capacity * sizeof(*grown));
		if (!grown)
			return;
		c->done = grown;
		c->capacity = capacity;
	}
	c->done[c->ndone++] = *result;
}

/* Has the thread blocked since the sample? Only its own code after the allocation can have led there. */
static bool has_blocked(const struct alloc_record *r)
{
	struct switches now;

	return switches_read(r->tgid, r->tid, &now) && (u32)now.voluntary != r->switches;
}

/* False: it is to be looked at again. */
static bool look(const struct reader *reader, struct open *o, u64 now)
{
	struct tlab_class *ret = &o->result;
	const struct alloc_record *r = &ret->record;
	struct alloc_object object = {
	        .thread = r->thread, .start = r->start, .addr = r->addr, .end = r->end, .gc = o->gc};
	enum alloc_answer answer;
	u64 size = 0;

	o->looks++;
	object.passed = now - o->since_ns > SLEEPING_NS && !(o->looks & (o->looks - 1)) && has_blocked(r);
	answer = reader->ops->object(reader->data, &object, &ret->frame, &size);
	ret->known = answer == ALLOC_KNOWN;
	if (ret->known)
		ret->size = size;
	return answer != ALLOC_NOT_YET;
}

static void schedule(struct open *o, u64 now)
{
	u64 passed = (now - o->since_ns) / 2;

	o->next_ns = now + (passed < SOONEST_NS ? SOONEST_NS : passed > LATEST_NS ? LATEST_NS : passed);
}

struct counting {
	struct tlab_classes *c;
	const struct alloc_record *record;
};

static void on_counted(void *ctx, const struct frame *class, u64 bytes, u64 objects)
{
	const struct counting *counting = ctx;
	struct tlab_class result = {.record = *counting->record, .bytes = bytes, .objects = objects, .known = class};

	if (class)
		result.frame = *class;
	result.size = objects ? bytes / objects : 0;
	finish(counting->c, &result);
}

static void take_survey(struct tlab_classes *c, const struct reader *reader, const struct alloc_record *record)
{
	struct alloc_object buffer = {
	        .thread = record->thread, .start = record->start, .end = record->end, .gc = record->gc};
	struct counting counting = {c, record};
	u32 first = c->ndone;
	u64 whole = 0;

	if (reader && reader->ops->survey)
		reader->ops->survey(reader->data, &buffer, on_counted, &counting);
	for (u32 i = first; i < c->ndone; i++)
		whole += c->done[i].bytes;
	for (u32 i = first; i < c->ndone; i++)
		c->done[i].whole = whole;
}

/* A new record: most are finished at once. Under the lock, like what follows. */
static void take(struct tlab_classes *c, const struct alloc_record *record)
{
	struct open o = {.result = {.record = *record, .size = record->size}, .gc = record->gc, .since_ns = now_ns()};
	const struct reader *reader = reader_of(c, record->instance);

	if (record->how == ALLOC_BY_SURVEY) {
		take_survey(c, reader, record);
		return;
	}
	if (!reader) {
		finish(c, &o.result);
		return;
	}
	if (record->klass) {
		o.result.known = reader->ops->class_frame(reader->data, record->klass, &o.result.frame);
		finish(c, &o.result);
		return;
	}
	if (!o.gc)
		o.gc = reader->ops->collections(reader->data);
	if (look(reader, &o, o.since_ns) || c->nopen == OPEN_MAX) {
		finish(c, &o.result);
		return;
	}
	schedule(&o, now_ns());
	c->open[c->nopen++] = o;
}

enum when { WHEN_DUE, AT_ONCE, FOR_THE_LAST_TIME };

/* Looks again at what is due, or at all. Returns when to come again. */
static u64 look_again(struct tlab_classes *c, enum when when)
{
	u64 now = now_ns(), next = now + IDLE_NS;
	u32 left = 0;

	for (u32 i = 0; i < c->nopen; i++) {
		struct open *o = &c->open[i];
		const struct reader *reader = reader_of(c, o->result.record.instance);

		if (when != WHEN_DUE || now >= o->next_ns) {
			if (look(reader, o, now) || when == FOR_THE_LAST_TIME || now - o->since_ns > GIVE_UP_NS) {
				finish(c, &o->result);
				continue;
			}
			schedule(o, now);
		}
		next = o->next_ns < next ? o->next_ns : next;
		c->open[left++] = *o;
	}
	c->nopen = left;
	return next;
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct alloc_record record;

	if (size < sizeof(record))
		return 0;
	memcpy(&record, data, sizeof(record));
	take(ctx, &record);
	return 0;
}

static void take_priority(void)
{
	struct sched_param param = {.sched_priority = 1};

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
}

static void *run(void *arg)
{
	struct tlab_classes *c = arg;
	struct pollfd fds[] = {
	        {.fd = ring_buffer__epoll_fd(c->ring), .events = POLLIN}, {.fd = c->stop, .events = POLLIN}};
	u64 next = 0;

	take_priority();
	while (!(fds[1].revents & POLLIN)) {
		u64 now = now_ns(), wait = next > now ? next - now : 0;
		struct timespec timeout = {
		        .tv_sec = (time_t)(wait / 1000000000ULL), .tv_nsec = (long)(wait % 1000000000ULL)};

		if (ppoll(fds, 2, &timeout, NULL) < 0)
			fds[1].revents = 0; /* interrupted */
		pthread_mutex_lock(&c->lock);
		ring_buffer__consume(c->ring);
		next = look_again(c, WHEN_DUE);
		pthread_mutex_unlock(&c->lock);
	}
	return NULL;
}

static struct error *start(struct tlab_classes *c)
{
	pthread_attr_t attr;
	int code;

	c->stop = eventfd(0, EFD_CLOEXEC);
	if (c->stop < 0)
		return error_errno(errno, "cannot make an eventfd");
	c->open = malloc(OPEN_MAX * sizeof(*c->open));
	if (!c->open)
		return &error_no_memory;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	code = thread_start(&c->thread, &attr, run, c);
	c->started = !code;
	pthread_attr_destroy(&attr);
	return code ? error_errno(code, "cannot start a thread") : NULL;
}

struct error *tlab_classes_create(struct object *o, struct tlab_classes **ret)
{
	struct tlab_classes *c = calloc(1, sizeof(*c));
	pthread_mutexattr_t attr;
	struct error *err;

	if (!c)
		return &error_no_memory;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&c->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	c->ring = tlab_object_ring(o, on_record, c);
	err = c->ring ? start(c) : error_errno(errno, "cannot map the ring buffer");
	if (err) {
		tlab_classes_destroy(c);
		return err;
	}
	*ret = c;
	return NULL;
}

void tlab_classes_stop(struct tlab_classes *c)
{
	if (!c->started)
		return;
	eventfd_write(c->stop, 1);
	pthread_join(c->thread, NULL);
	c->started = false;
	pthread_mutex_lock(&c->lock); /* a watchpoint thread may still be at it */
	ring_buffer__consume(c->ring);
	look_again(c, FOR_THE_LAST_TIME);
	pthread_mutex_unlock(&c->lock);
}

void tlab_classes_destroy(struct tlab_classes *c)
{
	if (!c)
		return;
	tlab_classes_stop(c);
	for (u32 i = 0; i < c->nreaders; i++)
		c->readers[i].ops->close(c->readers[i].data);
	if (c->stop >= 0)
		close(c->stop);
	pthread_mutex_destroy(&c->lock);
	free(c->readers);
	free(c->done);
	free(c->open);
	ring_buffer__free(c->ring);
	free(c);
}

void tlab_classes_read_now(void *classes)
{
	struct tlab_classes *c = classes;

	pthread_mutex_lock(&c->lock);
	look_again(c, AT_ONCE);
	ring_buffer__consume(c->ring);
	pthread_mutex_unlock(&c->lock);
}

struct error *tlab_classes_add(struct tlab_classes *c, u32 process, const struct runtime_alloc_ops *ops, void *reader)
{
	struct reader *grown;

	pthread_mutex_lock(&c->lock);
	grown = realloc(c->readers, (c->nreaders + 1) * sizeof(*grown));
	if (grown) {
		c->readers = grown;
		c->readers[c->nreaders++] = (struct reader){.process = process, .ops = ops, .data = reader};
	}
	pthread_mutex_unlock(&c->lock);
	if (grown)
		return NULL;
	ops->close(reader);
	return &error_no_memory;
}

u32 tlab_classes_take(struct tlab_classes *c, struct tlab_class **ret)
{
	u32 n;

	pthread_mutex_lock(&c->lock);
	n = c->ndone;
	*ret = c->done;
	c->done = NULL;
	c->ndone = c->capacity = 0;
	pthread_mutex_unlock(&c->lock);
	return n;
}
