/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of the kernel that the BPF objects look into, as BTF. All of the kernel's is some megabytes, and libbpf
 * reads it page by page and searches it for each type: about 20 ms of a start. So those types are kept in the cache:
 * each structure or union of a name that our own BTF has, and what lies inside it by value. Pointers lose what they
 * point to, which CO-RE never compares (bpf_core_fields_are_compat() in libbpf's relo_core.c).
 */
#ifndef YRT_KERNEL_TYPES_H
#define YRT_KERNEL_TYPES_H

#include <stddef.h>

/* For open options' btf_custom_path; ours: the BTF of the object that is to be opened. NULL: the kernel's own is to be
 * used. The caller frees it. */
char *kernel_types(const char *cache_dir, const void *ours, size_t size);

#endif
