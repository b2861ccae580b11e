/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the BPF object with the walkers that are wanted alone. A walker is its functions and one call to each of those
 * that the driver steps it by (unwind/driver.h). libbpf hands the kernel what a program calls, so where no walker is
 * wanted the relocation of the call is turned to a function that does nothing: the kernel never gets the walker. With
 * the constant before each call (`walkers`) alone, the verifier of Linux 6.8 and later would skip it, but a start would
 * take twice as long, and kernels before that verify every function that they get.
 *
 * The object is made to fit the kernel, too: it does without bpf_loop (Linux 5.17) and without maps that are allocated on
 * demand (6.1) where these are missing.
 */
#ifndef YRT_SKELETON_H
#define YRT_SKELETON_H

#include <types.h>

struct sample;

#define WALKERS_ALL (~0u)

/* walkers: bit n: the runtime of id n. cache_dir: for the kernel's types; NULL: none. NULL, and errno: it failed. */
struct sample *skeleton_open(u32 walkers, const char *cache_dir);

#endif
