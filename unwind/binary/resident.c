/* SPDX-License-Identifier: Apache-2.0 */
#include "resident.h"

#include <fcntl.h>
#include <unistd.h>

#include "proc_path.h"

#define ENTRIES (sizeof(((struct resident *)0)->entries) / sizeof(u64))
#define HOLDS   (1ull << 63 | 1ull << 62) /* present, swapped: Documentation/admin-guide/mm/pagemap.rst */

void resident_open(struct resident *r, pid_t pid)
{
	char path[64];

	proc_path(path, sizeof(path), pid, "pagemap");
	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	r->page = (u64)sysconf(_SC_PAGESIZE);
	r->first = r->n = r->ahead = 0;
}

void resident_close(struct resident *r)
{
	if (r->fd >= 0)
		close(r->fd);
}

static bool holds(struct resident *r, u64 page)
{
	u64 n = r->ahead && r->ahead < ENTRIES ? r->ahead : ENTRIES;
	ssize_t size;

	if (r->fd < 0)
		return true;
	if (page - r->first >= r->n) {
		size = pread(r->fd, r->entries, n * sizeof(u64), (off_t)(page * sizeof(u64)));
		r->first = page;
		r->n = size > 0 ? (u64)size / sizeof(u64) : 0;
	}
	return r->n && (r->entries[page - r->first] & HOLDS);
}

bool resident_next(struct resident *r, u64 start, u64 end, u64 max, u64 *ret_start, u64 *ret_end)
{
	u64 page = start / r->page, last = end / r->page, first, most = max / r->page;

	while (page < last && !holds(r, page))
		page++;
	first = page;
	while (page < last && page - first < most && holds(r, page))
		page++;
	*ret_start = first * r->page;
	*ret_end = page * r->page;
	return page > first;
}
