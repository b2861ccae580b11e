/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel types that the BPF objects use, as BTF. The kernel's own BTF has some megabytes; libbpf reads it page by
 * page and searches it for each type, which is about 20 ms of a start. So these types are cached: each structure or
 * union whose name is in our own BTF, with what it contains by value. Pointers lose the type that they point to, which
 * CO-RE never compares (bpf_core_fields_are_compat() in libbpf's relo_core.c).
 */
#ifndef YRT_KERNEL_TYPES_H
#define YRT_KERNEL_TYPES_H

#include <stddef.h>

/* For open options' btf_custom_path; ours: the BTF of the object that is to be opened. NULL: the kernel's own is to be
 * used. The caller frees it. */
char *kernel_types(const char *cache_dir, const void *ours, size_t size);

#endif
