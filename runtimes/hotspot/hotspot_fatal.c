/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_fatal.h"

#include <stdio.h>
#include <string.h>

#include "symbols/symbols.h"

#define TEXT_MOST 400

static bool reports(const struct hotspot_instance *instance, const struct runtime_process *p, const struct frame *f)
{
	static const char report[] = "_ZN7VMError14report_and_die";
	struct symbol s;
	const struct mapping *m = symbols_of_frame(p->mappings, p->nmappings, f, &s);

	return m && m->image == instance->image->file && !strncmp(s.name, report, sizeof(report) - 1);
}

static u64 variable(const struct hotspot_instance *instance, const char *name)
{
	struct symbol s;

	return symbols_lookup(instance->image->file, name, &s) ? s.start + instance->bias : 0;
}

/* "" if it is not there. */
static void read_text(struct memory *m, u64 addr, char ret[TEXT_MOST])
{
	if (!addr || !memory_line(m, ret, TEXT_MOST, addr))
		ret[0] = '\0';
}

bool hotspot_last_words(void *instance, const struct runtime_dying *t, char *ret, size_t size)
{
	u64 message = variable(instance, "_ZN7VMError8_messageE"), pointer;
	struct memory *m = t->p->memory;
	char said[TEXT_MOST], detail[TEXT_MOST];
	u32 i = 0;

	while (i < t->n && !reports(instance, t->p, &t->frames[i]))
		i++;
	if (i == t->n)
		return false;
	read_text(m, message && memory_read(m, &pointer, sizeof(pointer), message) ? pointer : 0, said);
	read_text(m, variable(instance, "_ZN7VMError11_detail_msgE"), detail);
	snprintf(ret, size, "%s%s%s", said, *said && *detail ? ": " : "", detail);
	return *ret;
}
