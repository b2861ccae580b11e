/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the BPF object with the wanted walkers only. A walker is its functions, and the calls by which the driver steps
 * it (unwind/driver.h). libbpf loads what a program calls. So for an unwanted walker the relocation of each call is
 * changed to a function that does nothing, and the kernel never gets the walker. The constant before each call
 * (`walkers`) would be enough for the verifier of Linux 6.8 and later to skip the walker, but a start would take twice
 * as long, and earlier kernels verify every function that is loaded.
 *
 * The object is made to fit the kernel: it does without bpf_loop (Linux 5.17), and without maps that are allocated on
 * demand (6.1), where these are missing.
 */
#ifndef YRT_SKELETON_H
#define YRT_SKELETON_H

#include <types.h>

struct sample;

#define WALKERS_ALL (~0u)

/* walkers: bit n: the runtime of id n. cache_dir: for the kernel's types; NULL: none. NULL, and errno: it failed. */
struct sample *skeleton_open(u32 walkers, const char *cache_dir);
/* Call before on_fault (fault/fault.bpf.h) is loaded: it does without bpf_find_vma() where that is missing. */
void skeleton_fit_fault(struct sample *skel);

#endif
