/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The BPF object: what all events share, the walkers, and the programs of each event (event.h). Only those of one event
 * are loaded; the others cost only their bytes.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"
#include "unwind/driver.h"
#include "unwind/shared/alloc.h"
#include "unwind/native_walk.c"
#include "walkers.h"

#include "stack.bpf.h"
#include "event.bpf.h"
#include "files.bpf.h"
#include "events.h"
#include "follow.bpf.h"
#include "kernel_name.bpf.h"

/* Stands for a walker that is not loaded (probes/skeleton.h). */
WALK_GLOBAL int walker_missing(struct walk *w)
{
	return STOP_NO_WALKER;
}

char LICENSE[] SEC("license") = "GPL";
