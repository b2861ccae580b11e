/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The keys of requests that lie in objects to which an argument leads. */
#ifndef YRT_HIT_FIELDS_BPF_H
#define YRT_HIT_FIELDS_BPF_H

#include "hit/hit_callee.bpf.h"

/*
 * Behind the program that walks, where a call begins whose key is a way along objects: takes the way, and keeps what
 * is there until the call is over.
 */
SEC("perf_event")
int on_callee_fields(struct bpf_perf_event_data *ctx)
{
	struct callee_counts *counts = callee_counts_here();
	struct probe_stats *st = my_stats();

	if (!counts || !st)
		return 0;
	callee_let_go(counts, st);
	values_later();
	callee_keep(counts->at);
	callee_time(counts->at);
	return 0;
}

#endif
