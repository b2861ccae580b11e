/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_coro.h"

#include <string.h>
#include <sys/mman.h>

#include "symbols/symbols.h"

static bool is_coro(struct image *img)
{
	const char *slash = strrchr(img->path, '/');
	struct symbol boot;

	return slash && !strcmp(slash, "/State.so") && symbols_lookup(img, "boot_Coro__State", &boot);
}

bool perl_coro_find(const struct runtime_process *p, struct perl_coro *ret)
{
	struct symbol base;

	memset(ret, 0, sizeof(*ret));
	for (u32 i = 0; i < p->nmappings && !ret->start; i++) {
		const struct mapping *m = &p->mappings[i];

		if (m->image && m->prot & PROT_EXEC && is_coro(m->image)) {
			ret->start = m->start;
			ret->end = m->end;
		}
	}
	for (u32 i = 0; i < p->nmappings && ret->start && !ret->base; i++) {
		const struct mapping *m = &p->mappings[i];

		if (m->image && m->prot & PROT_EXEC && symbols_lookup(m->image, "abort", &base))
			ret->base = m->bias + base.start;
	}
	return ret->base;
}
