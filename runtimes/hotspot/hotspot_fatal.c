/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_fatal.h"

#include <stdio.h>
#include <string.h>

#include "symbols/symbols.h"

#define TEXT_MOST 400

static bool reports(const struct hotspot_instance *instance, const struct runtime_process *p, const struct frame *f)
{
	static const char report[] = "_ZN7VMError14report_and_die";
	u64 addr = frame_addr(f) - 1;
	const struct mapping *m = frame_kind(f) == FRAME_NATIVE ? mapping_find(p->mappings, p->nmappings, addr) : NULL;
	struct symbol s;

	return m && m->image == instance->image->file && symbols_find(m->image, addr - m->bias, &s) &&
	       !strncmp(s.name, report, sizeof(report) - 1);
}

static u64 variable(const struct hotspot_instance *instance, const char *name)
{
	struct symbol s;

	return symbols_lookup(instance->image->file, name, &s) ? s.start + instance->bias : 0;
}

static void read_line(struct memory *m, u64 addr, char ret[TEXT_MOST])
{
	if (!addr || !memory_string(m, ret, TEXT_MOST, addr))
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

bool hotspot_last_words(const struct hotspot_instance *instance, const struct runtime_process *p,
        const struct frame *frames, u32 n, char *ret, size_t size)
{
	u64 message = variable(instance, "_ZN7VMError8_messageE"), pointer;
	char said[TEXT_MOST], detail[TEXT_MOST];
	u32 i = 0;

	while (i < n && !reports(instance, p, &frames[i]))
		i++;
	if (i == n)
		return false;
	read_line(p->memory, message && memory_read(p->memory, &pointer, sizeof(pointer), message) ? pointer : 0, said);
	read_line(p->memory, variable(instance, "_ZN7VMError11_detail_msgE"), detail);
	snprintf(ret, size, "%s%s%s", said, *said && *detail ? ": " : "", detail);
	return *ret;
}
