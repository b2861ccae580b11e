/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Names of kernel functions, from the kernel itself. */
#ifndef YRT_KERNEL_NAME_BPF_H
#define YRT_KERNEL_NAME_BPF_H

#define KERNEL_NAME_MAX 512 /* KSYM_NAME_LEN, as of Linux 6.1 */

static const char kernel_name_format[] = "%ps"; /* "name", "name [module]", or the address */
u64 named_addr = 0;
char named_text[KERNEL_NAME_MAX] = {};

/* Run by user space for each address. */
SEC("raw_tp")
int name_kernel(void *ctx)
{
	u64 addr = named_addr;

	return (int)bpf_snprintf(named_text, sizeof(named_text), kernel_name_format, &addr, sizeof(addr));
}

#endif
