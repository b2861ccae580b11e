/* SPDX-License-Identifier: Apache-2.0 */
/* A layout as `yrt inspect` shows it. */
#include <stdio.h>
#include <string.h>

#include "layout.h"
#include "report.h"

void layout_report(const struct layout *l, struct report *out)
{
	char origin[512], remark[576];

	report_section(out, "layout", NULL);
	for (u32 i = 0; i < l->schema->n; i++) {
		const struct layout_field *f = &l->schema->fields[i];
		const struct layout_member *m = f->list ? NULL : layout_member(l, i);

		layout_origin(l, i, origin, sizeof(origin));
		if (!m) {
			snprintf(remark, sizeof(remark), "names, %s", origin);
			report_number(out, f->name, layout_list(l, i)->n, remark);
		} else if (!m->size) {
			report_text(out, f->name, origin, "none");
		} else {
			if (m->at == m->size && !strncmp(f->name, "sizeof ", 7))
				snprintf(remark, sizeof(remark), "bytes, %s", origin);
			else
				snprintf(remark, sizeof(remark), "%u byte%s, %s", m->size, m->size > 1 ? "s" : "",
				        origin);
			report_number(out, f->name, m->at, remark);
		}
	}
}
