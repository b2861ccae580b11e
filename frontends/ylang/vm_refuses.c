/* SPDX-License-Identifier: Apache-2.0 */
/* Before and behind a run: what the VM cannot run, and what a run leaves. */
#include <stdlib.h>

#include "vm.h"

struct error *y_vm_refuses(const struct y_program *p, bool core, bool probes)
{
	for (u32 i = 0; i < p->nhandlers; i++) {
		const struct y_handler *h = &p->handlers[i];
		const struct y_place *place = &p->places[p->functions[h->function].place];

		if (y_in_kernel(h->point) && !probes && !core)
			return error_hint(error_new(ERROR_UNSUPPORTED, "%s:%u: %s: no engine runs this yet",
			                          place->file, place->line, p->functions[h->function].name),
			        "functions, _oneshot, _timer, _begin and _end run now");
		if (core && (h->point == Y_TIMER || y_in_kernel(h->point)))
			return error_hint(
			        error_new(ERROR_USAGE,
			                "%s:%u:%u: %s: nothing moves in a core: no handler of this kind would run",
			                place->file, place->line, place->column, p->functions[h->function].name),
			        "_probe _oneshot reads it once; the rest of the program may stay for a process");
	}
	return NULL;
}

void y_run_stats_free(struct y_run_stats *s)
{
	free(s->failures);
	s->failures = NULL;
}
