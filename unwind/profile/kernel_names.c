/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_names.h"

#define SYMBOLS "/proc/kallsyms"

void kernel_names_free(struct kernel_names *k)
{
	kallsyms_destroy(k->symbols);
}

const char *kernel_names_find(struct kernel_names *k, u64 addr)
{
	if (k->ask)
		return k->ask(k->ctx, addr, k->text, sizeof(k->text)) ? k->text : NULL;
	if (!k->tried) {
		k->tried = true;
		error_free(kallsyms_load(SYMBOLS, &k->symbols));
	}
	return k->symbols ? kallsyms_find(k->symbols, addr) : NULL;
}
