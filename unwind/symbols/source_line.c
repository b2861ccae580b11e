/* SPDX-License-Identifier: Apache-2.0 */
#include "source_line.h"

#include <elfutils/libdw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ends_with.h"
#include "sort_keys.h"
#include "symbols.h"

/* Is it the same path, or its last folders? */
static bool is_path(const char *path, const char *end)
{
	size_t n = strlen(path), len = strlen(end);

	return ends_with(path, end) && (n == len || *end == '/' || path[n - len - 1] == '/');
}

/* A line that a compiler took apart has several places in a function: each run of it passes the lowest first. */
static void add(struct image *img, u64 addr, struct line_places *ret)
{
	struct symbol own, other;
	bool known = symbols_find(img, addr, &own);

	for (u32 i = 0; i < ret->n; i++) {
		if (ret->addr[i] != addr &&
		        !(known && symbols_find(img, ret->addr[i], &other) && other.start == own.start))
			continue;
		if (addr < ret->addr[i])
			ret->addr[i] = addr;
		return;
	}
	if (ret->n == LINE_PLACES_MAX)
		ret->more = true;
	else
		ret->addr[ret->n++] = addr;
}

static bool line_of(Dwarf_Line *line, const char *file, u32 *ret)
{
	const char *path = dwarf_linesrc(line, NULL, NULL);
	bool ends; /* it is where the code before it ends */
	int number;

	if (!path || dwarf_lineendsequence(line, &ends) || ends || !is_path(path, file) ||
	        dwarf_lineno(line, &number) || number <= 0)
		return false;
	*ret = (u32)number;
	return true;
}

/* libdw gives the line in each unit, or else the next one that has code there. */
static void take(struct image *img, Dwarf_Line **lines, size_t n, const char *file, struct line_places *ret)
{
	Dwarf_Addr addr;
	u32 line;

	for (size_t i = 0; i < n; i++)
		if (line_of(lines[i], file, &line) && (!ret->line || line < ret->line))
			ret->line = line;
	for (size_t i = 0; i < n; i++)
		if (line_of(lines[i], file, &line) && line == ret->line && !dwarf_lineaddr(lines[i], &addr) && addr)
			add(img, addr, ret);
	sort_keys(ret->addr, ret->n, sizeof(*ret->addr));
}

bool source_line_find(struct image *img, struct image *debug, const char *file, u32 line, struct line_places *ret)
{
	Elf *elf = image_open_elf(debug);
	Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	const char *slash = strrchr(file, '/');
	Dwarf_Line **lines = NULL;
	size_t n = 0;

	*ret = (struct line_places){0};
	if (dwarf && line <= INT_MAX && !dwarf_getsrc_file(dwarf, slash ? slash + 1 : file, (int)line, 0, &lines, &n))
		take(img, lines, n, file, ret);
	free(lines);
	dwarf_end(dwarf);
	elf_end(elf);
	return ret->n;
}
