/* SPDX-License-Identifier: Apache-2.0 */
/* The probes of a program in the kernel, beside the VM that runs its other handlers: both see the same maps. */
#ifndef YRT_YLANG_PROBES_H
#define YRT_YLANG_PROBES_H

#include "frontends/ylang/emit/bpf.h"
#include "frontends/ylang/vm.h"

struct profile;
struct y_probes;

/*
 * For y_run_options.probes; p and t outlive it. Keys that are stacks become strings in p: that is what the VM sees.
 * warn: says what does not end the run, from another thread; owns the error.
 */
struct error *y_probes_new(struct y_program *p, struct y_target *t, void (*warn)(void *ctx, struct error *err),
        void *ctx, struct y_probes **ret);
void y_probes_free(struct y_probes *s); /* NULL is fine */
/* How much there was for the kernel's verifier. */
void y_probes_verified(const struct y_probes *s, FILE *out);
/* Behind a run: what the program's map by stack has, as a profile; owned by s. NULL: nothing. */
struct profile *y_probes_profile(struct y_probes *s);
extern const struct y_probe_ops y_probes_ops;

/* The program's probes as BPF, for this kernel; *ret: y_bpf_free(). t: pid 0: of no process. */
struct error *y_probes_make(const struct y_program *p, const struct y_target *t, struct y_bpf **ret);

#endif
