/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the USDT probes by which programs tell samples of their allocations, and places uprobes there. */
#ifndef YRT_ALLOC_SAMPLES_H
#define YRT_ALLOC_SAMPLES_H

#include "alloc.h"
#include "alloc_sample.h"
#include "unwind/process/process.h"

struct alloc_samples;
struct bpf_program;
struct object;

/* at, freed: the programs at samples and where their blocks are freed; freed may be NULL: that does not matter. */
struct error *alloc_samples_create(
        struct object *o, const struct bpf_program *at, const struct bpf_program *freed, struct alloc_samples **ret);
void alloc_samples_destroy(struct alloc_samples *s); /* NULL is fine; takes the uprobes away */
/*
 * A process that is looked at for the first time, or has other mappings. *ret: its samples are taken, so that its
 * malloc is not probed.
 */
struct error *alloc_samples_look(struct alloc_samples *s, const struct process *p, bool *ret);
/* "libx.so (otel_memory)": of all so far. NULL is fine. */
const char *alloc_samples_text(const struct alloc_samples *s);
/* Adds the samples up to now. */
void alloc_samples_add(struct object *o, struct alloc_estimate *ret);

#endif
