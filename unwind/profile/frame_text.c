/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_text.h"

#include <stdio.h>

#include "profile_places.h"

enum profile_kind frame_kind_of(const struct frame_name *name)
{
	static const enum profile_kind kinds[] = {[FORM_INTERPRETED] = KIND_SCRIPT,
	        [FORM_BASELINE] = KIND_SCRIPT_BASELINE,
	        [FORM_JIT] = KIND_SCRIPT_JIT,
	        [FORM_NATIVE] = KIND_SCRIPT_NATIVE,
	        [FORM_STUB] = KIND_STUB,
	        [FORM_WORK] = KIND_WORK,
	        [FORM_CLASS] = KIND_CLASS,
	        [FORM_LABEL] = KIND_LABEL};

	return kinds[name->form];
}

void frame_show(const struct frame_name *name, const struct names_options *options, char *text, size_t size)
{
	int n = snprintf(text, size, "%s%s",
	        name->name[0]      ? name->name
	        : name->definition ? "function"
	                           : "?",
	        options->signatures ? name->signature : "");

	if (name->file[0] && name->definition && !name->qualified)
		n += snprintf(text + n, size - n, " (%s:%u)", profile_place(name->file), name->definition);
	else if (name->file[0] && !name->qualified)
		n += snprintf(text + n, size - n, " (%s)", profile_place(name->file));
	if (options->lines && name->line)
		snprintf(text + n, size - n, ":%u", name->line);
}
