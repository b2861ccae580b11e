/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_lines.h"

#include "hotspot_unsigned5.h"

#define LONG_FORM 0xff

struct pair {
	u32 bci;
	s32 line;
};

/* Goes on to the next entry. False: the table ends, or is broken. */
static bool next(struct hotspot_stream *s, struct pair *p)
{
	u32 byte = hotspot_read_byte(s);

	if (s->broken || !byte)
		return false;
	if (byte == LONG_FORM) {
		p->bci += (u32)hotspot_read_int(s);
		p->line = (s32)((u32)p->line + (u32)hotspot_read_int(s));
	} else {
		p->bci += byte >> 3;
		p->line = (s32)((u32)p->line + (byte & 7));
	}
	return !s->broken;
}

u32 hotspot_line(const u8 *table, u32 size, bool no_zero, u32 bci)
{
	struct hotspot_stream s = {.at = table, .end = table + size, .no_zero = no_zero};
	struct pair p = {0}, best = {0};

	while (next(&s, &p)) {
		if (p.bci == bci)
			return p.line > 0 ? (u32)p.line : 0;
		if (p.bci < bci && p.bci >= best.bci)
			best = p;
	}
	return best.line > 0 ? (u32)best.line : 0;
}

u32 hotspot_lines_size(const u8 *table, u32 size, bool no_zero)
{
	struct hotspot_stream s = {.at = table, .end = table + size, .no_zero = no_zero};
	struct pair p = {0};

	while (next(&s, &p))
		continue;
	return s.broken ? 0 : (u32)(s.at - table);
}
