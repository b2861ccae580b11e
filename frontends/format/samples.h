/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as a list of samples, thread by thread, for formats that show time. If the recording kept times
 * (--timeline), these are used; else each stack of a thread follows the one before it, for as long as it ran in total.
 */
#ifndef YRT_FORMAT_SAMPLES_H
#define YRT_FORMAT_SAMPLES_H

#include "order.h"

struct sample_of {
	u32 node;
	u32 thread; /* in samples.threads */
	u64 ns;     /* since the start */
	u64 count;
};

struct samples_thread {
	const struct profile_function *process, *thread; /* NULL: not distinguished */
	u32 pid, tid;                                    /* 0: not known, or several */
	u32 first, n;                                    /* of samples.list, in order of time */
};

struct samples {
	struct sample_of *list;
	u32 n;
	struct samples_thread *threads; /* in the order of the profile */
	u32 nthreads;
	bool timed;
	double step_ns; /* what a count stands for: of CPU samples and waits their time; else a thousandth of a
	                   millisecond */
};

struct error *samples_create(const struct profile *p, const struct order *o, struct samples *ret);
/* Samples of all threads by time, not one thread after the other: threads have no ranges then. */
void samples_sort_by_time(struct samples *s);
void samples_free(struct samples *s);
/* The name of a thread without "(tid 42)", of a process without "(pid 42)"; "yrt" where there is none. */
#define SAMPLES_NAME 256
const char *samples_name(const struct samples_thread *t, bool process, char ret[SAMPLES_NAME]);
/* Is a node code, not the root, a container, a process or a thread? */
bool samples_is_code(const struct profile *p, u32 node);

static inline void cleanup_samples(struct samples *s)
{
	samples_free(s);
}

#endif
