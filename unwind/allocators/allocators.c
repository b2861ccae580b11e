/* SPDX-License-Identifier: Apache-2.0 */
#include "allocators.h"

#include <string.h>
#include <sys/mman.h>

#include "binary/memory.h"

/* glibc's is in most programs: what it says of itself depends on whether another one is used. */
static const struct allocator *const allocators[] = {&jemalloc_allocator, &mallocng_allocator, &mimalloc_allocator,
        &tcmalloc_allocator, &glibc_allocator, &recognised_allocators, NULL};

/* --- what nobody claims --- */

/* A thread's stack of glibc or musl ends with its descriptor, which points to itself (tcbhead_t: tcb, self). */
static bool is_stack(const struct space *s, u32 map)
{
	u64 words[PAGES_SIZE / 8], end = s->maps.lines[map].end;

	if (s->of[map].named_stack)
		return true;
	if (!space_is_anonymous(s, map) || end - s->maps.lines[map].start < 4 * PAGES_SIZE ||
	        pages_at(s->pages, end - PAGES_SIZE) != PAGE_PRESENT ||
	        !memory_read(s->memory, words, sizeof(words), end - PAGES_SIZE))
		return false;
	for (u32 i = 0; i + 2 < PAGES_SIZE / 8; i++) {
		u64 at = end - PAGES_SIZE + 8ull * i;

		if (words[i] == at && (words[i + 2] == at || i == 0))
			return true;
	}
	return false;
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file whose variables without a first value (.bss) lie here, behind the others; maps.nlines: none. */
static u32 data_before(const struct space *s, u32 map)
{
	const struct map_line *line = &s->maps.lines[map];

	return map && space_is_anonymous(s, map) && !line->path[0] && line[-1].end == line->start && line[-1].ino &&
	                       line[-1].prot & PROT_WRITE && !s->of[map - 1].shared
	               ? map - 1
	               : s->maps.nlines;
}

static struct error *place(const struct space *s, u32 map, struct usage *u, u32 *node)
{
	const struct map_line *line = &s->maps.lines[map];
	const char *group = "anonymous", *name = "";
	u32 file = data_before(s, map);
	struct error *err;

	if (line->ino) {
		group = s->of[map].shared ? "shared files" : "files";
		name = file_name(line->path);
	} else if (file < s->maps.nlines) {
		group = "files";
		name = file_name(s->maps.lines[file].path);
	} else if (s->of[map].shared) {
		group = "shared memory";
		name = line->path;
	} else if (is_stack(s, map)) {
		group = "stacks";
		name = s->of[map].named_stack ? "first thread" : "threads";
	} else if (!(line->prot & PROT_WRITE)) {
		group = line->prot & PROT_READ ? "anonymous, read-only" : "reserved";
	} else if (line->prot & PROT_EXEC) {
		group = "anonymous code";
	}
	if (!strcmp(line->path, "[vdso]") || !strncmp(line->path, "[vvar", 5) || !strcmp(line->path, "[vsyscall]"))
		group = "kernel";
	if (!line->ino && line->path[0] == '[' && !name[0] && strcmp(line->path, "[heap]") != 0)
		name = line->path;
	err = usage_child(u, 0, USAGE_GROUP, node, "%s", group);
	if (!err && name[0])
		err = usage_child(u, *node, USAGE_MAPPING, node, "%s", name);
	return err;
}

static u64 less(u64 all, u64 part)
{
	return all > part ? all - part : 0;
}

static struct error *add_unclaimed(const struct space *s, struct usage *u)
{
	struct error *err = NULL;
	u32 node;

	for (u32 i = 0; !err && i < s->maps.nlines; i++) {
		const struct amount *all = &s->of[i].all, *claimed = &s->of[i].claimed;
		struct amount left = {
		        .size = less(all->size, claimed->size),
		        .resident = less(all->resident, claimed->resident),
		        .swapped = less(all->swapped, claimed->swapped),
		};

		if (!left.size)
			continue;
		err = place(s, i, u, &node);
		if (!err)
			usage_add(u, node, &left);
	}
	return err;
}

/* What an allocator says helps is of what it has itself. */
static struct error *read_one(const struct allocator *a, struct space *s, struct usage *u)
{
	struct usage_facts before = u->facts;
	struct error *err;

	u->facts = (struct usage_facts){0};
	err = a->read(s, u);
	usage_add_facts(&u->facts, &before);
	return err;
}

struct error *allocators_read(struct space *s, struct usage **ret)
{
	struct usage *u;
	struct error *err = usage_create(&u);

	if (err)
		return err;
	for (u32 i = 0; i < s->maps.nlines; i++)
		u->resident += s->of[i].all.resident;
	for (u32 i = 0; !err && allocators[i]; i++)
		err = read_one(allocators[i], s, u);
	if (!err)
		err = add_unclaimed(s, u);
	if (err) {
		usage_destroy(u);
		return err;
	}
	usage_finish(u);
	*ret = u;
	return NULL;
}
