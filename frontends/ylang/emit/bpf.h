/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes of a program as BPF, made here without a compiler. Slots live in a map's value and not in registers, so the
 * verifier looks at each instruction about once, whatever the program branches and loops. Loops take their rounds from
 * one bpf_iter_num of the handler (Linux 6.4), which is what lets the verifier see that they end. Functions are
 * inlined. What BPF cannot do here is refused by name, with its place.
 */
#ifndef YRT_YLANG_BPF_H
#define YRT_YLANG_BPF_H

#include "frontends/ylang/ir.h"
#include "probes/y/y_object.h"

struct y_bpf_options {
	u32 pid; /* of the target, as this process knows it; 0: all but own */
	u32 own;
	const char *program;
	u64 pid_namespace[2]; /* device and inode of this process's: threads are numbered in it */
	u64 wall_ns;          /* what the wall clock is ahead of CLOCK_MONOTONIC */
	bool sleepable;       /* reads of uprobes may wait for absent pages */
	bool check_pid;       /* other processes may come by */
	u32 cpus;
};

struct y_bpf {
	struct y_object object;
	u32 *global_offsets; /* of each global, in Y_MAP_GLOBALS */
	bool *gathered;      /* of each map: handlers only add to it; its keys begin with a generation */
	bool *set;           /* of each map: handlers also assign to its entries */
	u32 globals_size;
};

/* ERROR_UNSUPPORTED: BPF cannot run one of its probes. */
struct error *y_bpf_make(const struct y_program *p, const struct y_bpf_options *o, struct y_bpf **ret);
void y_bpf_free(struct y_bpf *b);
/* The instructions as text, as the kernel's own tools write them. */
void y_bpf_print(const struct y_bpf *b, const struct y_program *p, FILE *out);

#endif
