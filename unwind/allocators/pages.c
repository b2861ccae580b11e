/* SPDX-License-Identifier: Apache-2.0 */
#include "pages.h"

#include <fcntl.h>
#include <unistd.h>

#include "binary/core_file.h"
#include "binary/proc_path.h"
#include "search.h"

void pages_open(struct pages *p, pid_t pid, const struct core_file *core)
{
	char path[64];

	p->core = core;
	p->fd = -1;
	p->first = p->n = 0;
	if (!pid || core)
		return;
	proc_path(path, sizeof(path), pid, "pagemap");
	p->fd = open(path, O_RDONLY | O_CLOEXEC);
}

void pages_close(struct pages *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

void pages_forget(struct pages *p)
{
	p->n = 0;
}

static enum page_state core_page(const struct core_file *core, u64 addr)
{
	u32 at = SEARCH(core->nsegments, k, addr >= core->segments[k].end);
	const struct core_segment *s = at < core->nsegments ? &core->segments[at] : NULL;

	return s && addr >= s->start && addr - s->start < s->kept ? PAGE_PRESENT : PAGE_ABSENT;
}

u64 pages_entry(struct pages *p, u64 addr)
{
	u64 page = addr / PAGES_SIZE;
	ssize_t size;

	if (page - p->first >= p->n) {
		size = pread(p->fd, p->entries, sizeof(p->entries), (off_t)(page * sizeof(u64)));
		p->first = page;
		p->n = size > 0 ? (u64)size / sizeof(u64) : 0;
	}
	return p->n ? p->entries[page - p->first] : 0;
}

enum page_state pages_at(struct pages *p, u64 addr)
{
	u64 entry;

	if (p->core)
		return core_page(p->core, addr);
	if (p->fd < 0)
		return PAGE_PRESENT;
	entry = pages_entry(p, addr);
	return entry & PAGES_PRESENT ? PAGE_PRESENT : entry & PAGES_SWAPPED ? PAGE_SWAPPED : PAGE_ABSENT;
}

void pages_add(struct pages *p, u64 start, u64 end, struct amount *to)
{
	for (u64 at = start; at < end;) {
		u64 next = (at / PAGES_SIZE + 1) * PAGES_SIZE, stop = next < end ? next : end;
		enum page_state state = pages_at(p, at);

		if (state == PAGE_PRESENT)
			to->resident += stop - at;
		else if (state == PAGE_SWAPPED)
			to->swapped += stop - at;
		at = stop;
	}
}
