/* SPDX-License-Identifier: Apache-2.0 */
#include "io.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "io_names.h"
#include "io_record.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "sample.skel.h"
#include "unwind/profile/names.h"

struct io {
	const struct event_host *host;
	struct bpf_link *on_enter, *on_exit, *on_submit, *on_complete; /* the last two: NULL if there is no io_uring */
	struct io_names names;
	struct io_summary summary;
};

static const struct io_names *shown; /* of the run, for words of objects */

static void prepare(struct object *o, u32 of)
{
	const struct io_options *options = object_of_event(o);
	struct sample *skel = object_skeleton(o);

	object_want(o, "io_enter");
	object_want(o, "io_exit");
	object_want(o, "io_ring_submit");
	object_want(o, "io_ring_complete");
	object_want(o, "io_ring_complete_old");
	bpf_map__set_max_entries(skel->maps.io_pending, IO_PENDING);
	bpf_map__set_max_entries(skel->maps.io_aio_rings, IO_RINGS);
	skel->rodata->io_of = of;
	skel->rodata->io_count_calls = options && options->calls;
	skel->rodata->io_with_objects = options && options->objects;
	if (options && options->objects)
		bpf_map__set_max_entries(skel->maps.io_known, IO_OBJECTS);
}

static void prepare_files(struct object *o)
{
	prepare(o, IO_OF_FILES);
}

static void prepare_net(struct object *o)
{
	prepare(o, IO_OF_NET);
}

static void destroy(void *event)
{
	struct io *io = event;

	if (!io)
		return;
	bpf_link__destroy(io->on_enter);
	bpf_link__destroy(io->on_exit);
	bpf_link__destroy(io->on_submit);
	bpf_link__destroy(io->on_complete);
	shown = NULL;
	io_names_free(&io->names);
	free(io);
}

/* Kernels have one or the other form of each: where a program takes more arguments than there are it is refused. */
static void attach_rings(struct io *io)
{
	struct sample *skel = object_skeleton(io->host->object);

	io->on_complete = bpf_program__attach(skel->progs.io_ring_complete_old);
	if (!io->on_complete)
		io->on_complete = bpf_program__attach(skel->progs.io_ring_complete);
	io->on_submit = bpf_program__attach(skel->progs.io_ring_submit);
	if (!io->on_submit)
		io->on_submit = bpf_program__attach_raw_tracepoint(skel->progs.io_ring_submit, "io_uring_submit_sqe");
	skel->bss->io_rings = io->on_submit && io->on_complete;
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct sample *skel = object_skeleton(host->object);
	struct io *io = calloc(1, sizeof(*io));
	struct error *err;

	if (!io)
		return &error_no_memory;
	io->host = host;
	shown = &io->names;
	attach_rings(io);
	io->on_exit = bpf_program__attach(skel->progs.io_exit);
	io->on_enter = io->on_exit ? bpf_program__attach(skel->progs.io_enter) : NULL;
	if (io->on_enter) {
		*ret = io;
		return NULL;
	}
	err = error_errno(errno, "cannot attach to the tracepoints of system calls");
	destroy(io);
	return err;
}

static struct error *start(void *event, bool at_exec)
{
	struct io *io = event;

	object_take_ticks(io->host->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	return NULL;
}

static struct error *stop(void *event)
{
	struct io *io = event;

	object_take_ticks(io->host->object, TICKS_IGNORED);
	return NULL;
}

static struct error *record(void *event, const void *data, size_t size)
{
	struct io *io = event;

	return io_names_add(&io->names, data, size);
}

static void sum_counters(struct io *io, struct io_summary *s)
{
	struct object *o = io->host->object;
	struct io_stats sum;

	error_free(object_sum(o, object_skeleton(o)->maps.io_counters, (u64 *)&sum, sizeof(sum)));
	s->calls += sum.calls;
	s->ns += sum.ns;
	s->in_bytes += sum.in_bytes;
	s->out_bytes += sum.out_bytes;
	s->skipped += sum.skipped;
	s->async += sum.async;
	s->later += sum.later;
	s->begun += sum.begun;
}

static void stats(void *event, struct sampler_stats *st)
{
	struct io *io = event;

	io->summary = (struct io_summary){
	        .net = st->event == &net_event, .objects = io->names.n, .full = io->names.n >= IO_OBJECTS};
	sum_counters(io, &io->summary);
	st->of_event = &io->summary;
}

static void reason(u32 reason, char *text)
{
	static const char *const words[] = {
#define X(name, word) [name] = word,
	        IO_VERBS(X)
#undef X
	};
	static const char *const files[] = {
	        [IO_BLOCK_DEVICE] = " of a block device", [IO_DEVICE] = " of a device", [IO_PIPE] = " of a pipe"};
	u32 verb = reason & 0xff, kind = reason >> 8 & 0xff;

	snprintf(text, REASON_LEN, "%s%s%s", verb < IO_VERB_MAX ? words[verb] : "",
	        kind < sizeof(files) / sizeof(*files) && files[kind] ? files[kind] : "",
	        reason & IO_ASYNC ? ", asynchronous" : "");
}

static void object(u64 key, char *text)
{
	if (shown)
		io_names_text(shown, key, text);
}

/* What both events do. */
#define OPERATIONS                                                                                                     \
	.unit = "nanoseconds", .more = "bytes", .slots = 2, .create = create, .destroy = destroy, .start = start,      \
	.stop = stop, .stats = stats, .record = record, .reason = reason, .object = object

const struct event_ops io_event = {
        .name = "io",
        .command = "io-flame",
        .topic = TOPIC_CALLS,
        .summary = "time and bytes of file I/O, by stack and file",
        .view = "time and bytes of file I/O of %s, by stack and file",
        .prepare = prepare_files,
        .command_line = &io_command,
        .words = &io_words,
        OPERATIONS,
};

const struct event_ops net_event = {
        .name = "net",
        .command = "net-flame",
        .topic = TOPIC_CALLS,
        .summary = "bytes sent and received, connects, and their time, by stack and peer",
        .view = "bytes that %s sends and receives, connects, and their time, by stack and peer",
        .prepare = prepare_net,
        .command_line = &net_command,
        .words = &net_words,
        OPERATIONS,
};
