/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_names.h"

#define SYMBOLS "/proc/kallsyms"

void kernel_names_free(struct kernel_names *k)
{
	kallsyms_destroy(k->symbols);
}

bool kernel_names_ready(struct kernel_names *k, struct name_reader *reader)
{
	if (!k->tried)
		k->tried = name_reader_has_kernel(reader, &k->symbols);
	return k->tried;
}

const char *kernel_names_find(struct kernel_names *k, u64 addr)
{
	if (!k->tried) {
		k->tried = true;
		error_free(kallsyms_load(SYMBOLS, &k->symbols));
	}
	return k->symbols ? kallsyms_find(k->symbols, addr) : NULL;
}
