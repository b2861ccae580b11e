/* SPDX-License-Identifier: Apache-2.0 */
#include "jit_names.h"

#include <stdlib.h>
#include <xxhash.h>

#include "symbols/jit_symbols.h"
#include "symbols/perf_map.h"

struct jit {
	struct perf_map *map;
	struct jit_symbols *symbols;
};

static void jit_destroy(struct jit *jit)
{
	perf_map_destroy(jit->map);
	jit_symbols_destroy(jit->symbols);
	free(jit);
}

static struct error *jit_create(pid_t pid, struct jit **ret)
{
	struct jit *jit = calloc(1, sizeof(*jit));
	struct error *err =
	        jit && (jit->symbols = jit_symbols_create()) ? perf_map_create(pid, &jit->map) : &error_no_memory;

	if (err && jit)
		jit_destroy(jit);
	*ret = jit;
	return err;
}

void jit_names_free(struct table *processes)
{
	for (size_t i = 0; i < processes->capacity; i++)
		if (processes->entries[i].key)
			jit_destroy((struct jit *)(uintptr_t)processes->entries[i].value);
	table_free(processes);
}

struct error *jit_names_find(struct table *processes, const struct process *p, u64 addr, const char **ret)
{
	u64 key = XXH3_64bits(&p->number, sizeof(p->number)) | 1, *known = table_get(processes, key);
	struct jit *jit = known ? (struct jit *)(uintptr_t)*known : NULL;
	struct error *err = NULL;

	*ret = NULL;
	if (!jit && p->dead)
		return NULL; /* its pid may be another's by now */
	if (!jit) {
		err = jit_create(p->pid, &jit);
		if (!err && (err = table_put(processes, key, (u64)(uintptr_t)jit)))
			jit_destroy(jit);
	}
	if (err)
		return err;
	*ret = perf_map_find(jit->map, addr);
	if (!*ret)
		*ret = jit_symbols_find(jit->symbols, p->memory, p->mappings, p->maps.nlines, addr);
	return NULL;
}
