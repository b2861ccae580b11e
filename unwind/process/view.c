/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"

#include <string.h>

const struct view *views(void)
{
	static struct view all[RUNTIME_MAX + 1];

	if (all[0].name)
		return all;
	for (const struct runtime_ops *const *r = runtimes; *r; r++) {
		struct view *v = all;

		while (v->name && strcmp(v->name, (*r)->view))
			v++;
		v->name = (*r)->view;
		v->language = (*r)->language;
		v->runtimes |= 1u << (*r)->id;
		v->alloc |= (*r)->alloc != NULL;
		v->allocator |= (*r)->allocator != NULL;
	}
	return all;
}

const struct view *view_of_command(const char *command)
{
	size_t len = strcspn(command, "-");

	for (const struct view *v = views(); v->name; v++)
		if (strlen(v->name) == len && !strncmp(command, v->name, len))
			return v;
	return NULL;
}

bool view_has(const struct view *v, enum runtime_id id)
{
	return v && v->runtimes >> id & 1;
}

bool view_is_thread_entry(const struct view *v, const char *symbol)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (view_has(v, (*r)->id) && (*r)->is_thread_entry && (*r)->is_thread_entry(symbol))
			return true;
	return false;
}
