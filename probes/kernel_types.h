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

/*
 * For btf_custom_path of the open options; ours: the BTF of the object to open. NULL: use the kernel's own. The caller
 * frees it.
 */
char *kernel_types(const char *cache_dir, const void *ours, size_t size);

#endif
