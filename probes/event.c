/* SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

#include <string.h>

#include "sampler.h"

const struct event_ops *const events[] = {
#define EVENT(name) &name##_event,
#include "list.h"
#undef EVENT
        NULL};

const struct event_ops *event_find(const char *name)
{
	for (const struct event_ops *const *e = events; *e; e++)
		if (!strcmp((*e)->name, name))
			return *e;
	return NULL;
}

struct error *event_goes_on(const struct event_host *host, struct error *err)
{
	if (!err || err == &error_no_memory)
		return err;
	host->options->warn(host->options->ctx, err);
	return NULL;
}

void event_halve_by_weight(void *event)
{
}
