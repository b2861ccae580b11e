/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_names.h"

#include <string.h>

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

static void read_again(struct kernel_names *k)
{
	struct kallsyms *symbols = NULL;

	k->again = true;
	error_free(kallsyms_load(SYMBOLS, &symbols));
	if (!symbols)
		return;
	kallsyms_destroy(k->symbols);
	k->symbols = symbols;
}

const char *kernel_names_find(struct kernel_names *k, u64 addr)
{
	const char *name;

	if (!k->tried) {
		k->tried = true;
		error_free(kallsyms_load(SYMBOLS, &k->symbols));
	}
	name = k->symbols ? kallsyms_find(k->symbols, addr) : NULL;
	if (!k->symbols || k->again || (name && !strstr(name, " [bpf]")))
		return name;
	read_again(k);
	return kallsyms_find(k->symbols, addr);
}
