/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernel functions, by a BPF program of kernel_name.bpf.h. */
#ifndef YRT_KERNEL_NAME_H
#define YRT_KERNEL_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <types.h>

/*
 * The kernel function at addr: "name", "name [module]", or "name [bpf]" for a BPF program. False: no function is there.
 * program: of name_kernel(), of which *named_addr and named_text are. Not thread-safe. Unlike reading /proc/kallsyms,
 * it needs neither CAP_SYSLOG nor 30 ms.
 */
bool kernel_name(int program, u64 *named_addr, char *named_text, u64 addr, char *text, size_t size);

#endif
