/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernel functions. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

#include "kernel_name.h"
#include "object_internal.h"

#define TAG_CHARS 16

/* bpf_prog_TAG_NAME and bpf_trampoline_NUMBER, which the kernel's own functions are not called. */
static bool is_bpf(const char *name)
{
	static const char program[] = "bpf_prog_", trampoline[] = "bpf_trampoline_";
	const size_t len = sizeof(trampoline) - 1;

	if (!strncmp(name, program, sizeof(program) - 1))
		return strspn(name + sizeof(program) - 1, "0123456789abcdef") == TAG_CHARS;
	return !strncmp(name, trampoline, len) && name[len] && !name[len + strspn(name + len, "0123456789")];
}

bool kernel_name(int program, u64 *named_addr, char *named_text, u64 addr, char *text, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);

	*named_addr = addr;
	*named_text = '\0';
	if (bpf_prog_test_run_opts(program, &run) || !*named_text || !strncmp(named_text, "0x", 2))
		return false;
	snprintf(text, size, "%s%s", named_text, is_bpf(named_text) ? " [bpf]" : "");
	return true;
}

bool object_name_kernel(struct object *o, u64 addr, char *text, size_t size)
{
	struct sample *skel = o->skel;

	return kernel_name(bpf_program__fd(skel->progs.name_kernel), &skel->bss->named_addr, skel->bss->named_text,
	        addr, text, size);
}
