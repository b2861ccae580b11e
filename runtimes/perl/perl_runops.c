/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_runops.h"

#include <sys/mman.h>

#include "cfi/cfi.h"

static bool is_own(const struct perl_code *code, u64 function)
{
	for (u32 i = 0; i < code->n; i++)
		if (code->sites[i].part == PERL_RUNOPS &&
		        function - code->sites[i].start < code->sites[i].end - code->sites[i].start)
			return true;
	return false;
}

bool perl_runops_find(const struct perl_image *image, u64 bias, const struct runtime_process *p, u64 *start, u64 *end)
{
	u64 at = bias + image->runops, function;

	if (image->vm.multiple) {
		if (!memory_read(p->memory, &at, sizeof(at), bias + image->interpreter) || !at)
			return false;
		at += image->layout->i_runops.at;
	}
	if (!memory_read(p->memory, &function, sizeof(function), at) || is_own(&image->code, function - bias))
		return false;
	for (u32 i = 0; i < p->nmappings; i++) {
		const struct mapping *m = &p->mappings[i];
		const struct cfi_fde *fde = m->image && m->prot & PROT_EXEC && function - m->start < m->end - m->start
		                                    ? cfi_fde_at(m->image->cfi, function - m->bias)
		                                    : NULL;

		if (fde && fde->start == function - m->bias) {
			*start = function;
			*end = m->bias + fde->end;
			return true;
		}
	}
	return false;
}
