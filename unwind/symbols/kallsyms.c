/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cleanup.h"
#include "search.h"
#include "sort_keys.h"
#include "symbols.h"

#define READ_SIZE     (64u << 10)
#define NAMES_MAX     (1u << 30)
#define ENTRIES_MAX   (1u << 24)
#define FUNCTION_MAX  (1u << 20) /* none is longer: what is further behind a symbol is not its code */
#define LOCAL         (1u << 31)
#define ADDRESS_CHARS 16

struct kallsyms_entry {
	u64 addr;
	u32 name; /* offset in names; LOCAL while loading */
} __attribute__((packed));

struct kallsyms {
	struct kallsyms_entry *entries; /* sorted, one for an address */
	u32 count, room;
	char *names;
	u32 names_size, names_room;
};

static struct error *names_reserve(struct kallsyms *k, u32 size)
{
	u32 room = k->names_room;
	char *names;

	if (k->names_size + size <= room)
		return NULL;
	room = room ? room * 2 : READ_SIZE;
	names = room <= NAMES_MAX ? realloc(k->names, room) : NULL;
	if (!names)
		return &error_no_memory;
	k->names = names;
	k->names_room = room;
	return NULL;
}

static struct error *entries_reserve(struct kallsyms *k)
{
	u32 room = k->room ? k->room * 2 : 4096;
	void *entries;

	if (k->count < k->room)
		return NULL;
	entries = room <= ENTRIES_MAX ? realloc(k->entries, room * sizeof(*k->entries)) : NULL;
	if (!entries)
		return &error_no_memory;
	k->entries = entries;
	k->room = room;
	return NULL;
}

static bool parse_address(const char *s, u64 *ret)
{
	u64 addr = 0;
	u32 i, digit;

	for (i = 0; i < ADDRESS_CHARS; i++) {
		digit = (u8)s[i] - '0';
		if (digit > 9) {
			digit = ((u8)s[i] | 0x20) - 'a';
			if (digit > 5)
				return false;
			digit += 10;
		}
		addr = addr << 4 | digit;
	}
	*ret = addr;
	return true;
}

static bool is_text(char kind)
{
	return kind == 'T' || kind == 't' || kind == 'W' || kind == 'w';
}

/* "ffffffff81000000 T name" or "ffffffffc0001000 t name\t[module]" */
static struct error *parse_line(struct kallsyms *k, const char *line, u32 len)
{
	struct error *err;
	char *name, *tab;
	u64 addr;

	if (len < ADDRESS_CHARS + 4 || line[ADDRESS_CHARS] != ' ' || line[ADDRESS_CHARS + 2] != ' ' ||
	        !is_text(line[ADDRESS_CHARS + 1]) || !parse_address(line, &addr) || !addr)
		return NULL;
	len -= ADDRESS_CHARS + 3;
	err = names_reserve(k, len + 1);
	if (!err)
		err = entries_reserve(k);
	if (err)
		return err;
	name = k->names + k->names_size;
	memcpy(name, line + ADDRESS_CHARS + 3, len);
	name[len] = 0;
	tab = memchr(name, '\t', len);
	if (tab)
		*tab = ' ';
	k->entries[k->count++] = (struct kallsyms_entry){
	        .addr = addr,
	        .name = k->names_size | (line[ADDRESS_CHARS + 1] >= 'a' ? LOCAL : 0),
	};
	k->names_size += len + 1;
	return NULL;
}

/* All whole lines of buf; *ret is how many bytes they are. */
static struct error *parse_lines(struct kallsyms *k, const char *buf, size_t size, size_t *ret)
{
	struct error *err;
	const char *p = buf, *end;

	while ((end = memchr(p, '\n', buf + size - p))) {
		err = parse_line(k, p, end - p);
		if (err)
			return err;
		p = end + 1;
	}
	*ret = p - buf;
	return NULL;
}

static struct error *parse_file(struct kallsyms *k, int fd, const char *path)
{
	cleanup(free) char *buf = malloc(READ_SIZE);
	struct error *err;
	size_t have = 0, done;
	ssize_t n;

	if (!buf)
		return &error_no_memory;
	while ((n = read(fd, buf + have, READ_SIZE - have)) != 0) {
		if (n < 0)
			return error_errno(errno, "cannot read %s", path);
		have += n;
		err = parse_lines(k, buf, have, &done);
		if (err)
			return err;
		have = done || have < READ_SIZE ? have - done : 0; /* a line longer than buf is none */
		memmove(buf, buf + done, have);
	}
	return NULL;
}

/* The kernel's own come sorted; those of modules and BPF programs follow in the order of their loading. */
static void sort(struct kallsyms *k)
{
	u32 from = 1, i;
	u64 lowest;

	while (from < k->count && k->entries[from - 1].addr <= k->entries[from].addr)
		from++;
	if (from >= k->count)
		return;
	lowest = k->entries[from].addr;
	for (i = from; i < k->count; i++)
		lowest = k->entries[i].addr < lowest ? k->entries[i].addr : lowest;
	from = SEARCH(from, n, k->entries[n].addr <= lowest);
	sort_keys(k->entries + from, k->count - from, sizeof(*k->entries));
}

/* Global before local, then without underscores in front, then the shorter. */
static bool is_better(const struct kallsyms *k, const struct kallsyms_entry *a, const struct kallsyms_entry *b)
{
	const char *left = k->names + (a->name & ~LOCAL), *right = k->names + (b->name & ~LOCAL);
	size_t x = strspn(left, "_"), y = strspn(right, "_");

	if ((a->name ^ b->name) & LOCAL)
		return b->name & LOCAL;
	return x != y ? x < y : strlen(left) < strlen(right);
}

static void merge_aliases(struct kallsyms *k)
{
	u32 i, n = 0;

	for (i = 0; i < k->count; i++) {
		if (!n || k->entries[n - 1].addr != k->entries[i].addr)
			k->entries[n++] = k->entries[i];
		else if (is_better(k, &k->entries[i], &k->entries[n - 1]))
			k->entries[n - 1] = k->entries[i];
	}
	k->count = n;
	for (i = 0; i < n; i++)
		k->entries[i].name &= ~LOCAL;
}

static void give_back_room(struct kallsyms *k)
{
	void *entries = realloc(k->entries, k->count * sizeof(*k->entries) + 1);
	void *names = realloc(k->names, k->names_size + 1);

	k->entries = entries ? entries : k->entries;
	k->names = names ? names : k->names;
}

struct error *kallsyms_load(const char *path, struct kallsyms **ret)
{
	cleanup(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct kallsyms *k;
	struct error *err;

	if (fd < 0)
		return error_errno(errno, "cannot open %s", path);
	k = calloc(1, sizeof(*k));
	if (!k)
		return &error_no_memory;
	err = parse_file(k, fd, path);
	if (err) {
		kallsyms_destroy(k);
		return err;
	}
	sort(k);
	merge_aliases(k);
	give_back_room(k);
	*ret = k;
	return NULL;
}

void kallsyms_destroy(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->entries);
	free(k->names);
	free(k);
}

const char *kallsyms_find(const struct kallsyms *k, u64 addr)
{
	u32 low = 0, high = k->count, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (k->entries[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || addr - k->entries[low - 1].addr >= FUNCTION_MAX)
		return NULL;
	return k->names + k->entries[low - 1].name;
}
