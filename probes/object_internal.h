/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the BPF object share (object.h). */
#ifndef YRT_OBJECT_INTERNAL_H
#define YRT_OBJECT_INTERNAL_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <pthread.h>

#include "object.h"
#include "sample.skel.h"

#define COUNTS_CAPACITY (COUNTS_PLACES / 2)

struct slabs { /* object.c */
	struct arena_source source;
	int fd[ARENA_SLABS_MAX];
	u32 n, nmade, npublished; /* in use, made, and known to BPF */
	int outer;                /* the map of them; -1: not made yet */
	bool running;             /* a thread, that publishes those before end */
	u32 end;
	pthread_t thread;
	struct error *failed;
};

struct object {
	struct object_options options;
	struct sample *skel; /* NULL: object_begin() was not called yet */
	pthread_t loader;    /* loads it, if loading is set */
	bool loading;
	int load_code;
	u32 last_instance;        /* until it is loaded */
	struct ring_buffer *ring; /* NULL: it is not loaded yet */
	struct slabs slabs;
	struct code_watch *code_watch; /* NULL: no target needed it, or the kernel does not permit it */
	bool code_watch_tried;
	int stats_fd; /* keeps BPF_ENABLE_STATS on */
	int ncpus;
	void (*record)(void *ctx, const void *data, size_t size);
	void *record_ctx;
	u32 left;       /* records to be handed out; 0: all */
	u64 outside_ns; /* CPU time of targets while they were none */
	u32 added;      /* processes that became targets */
};

struct error *object_explain_load(int code);
/* Of an event, or of what all events share? */
bool object_is_of_event(const struct object *o, const struct bpf_program *p);

#endif
