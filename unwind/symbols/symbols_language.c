/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are in no symbol table but in a language's own tables. */
#include <string.h>

#include "grow.h"
#include "runtime.h"
#include "symbols.h"
#include "symbols_table.h"

static struct error *add(void *ctx, u64 start, u64 end, const char *name)
{
	struct symbols *s = ctx;
	struct error *err = grow(&s->by_language, s->nby_language, sizeof(*s->by_language));

	if (err || s->nby_language == SYMBOLS_MAX)
		return err;
	err = grow(&s->names, s->nnames, sizeof(*s->names));
	if (err)
		return err;
	s->names[s->nnames] = strdup(name);
	if (!s->names[s->nnames])
		return &error_no_memory;
	s->by_language[s->nby_language++] =
	        (struct symbol_by_language){.addr = start, .size = end - start, .name = s->nnames++};
	return NULL;
}

struct error *symbols_use_languages(struct image *img)
{
	struct symbols *s = img->symbols;
	struct error *err = NULL;

	if (!s || s->languages)
		return NULL;
	s->languages = true;
	for (const struct runtime_ops *const *r = runtimes; !err && *r; r++)
		if ((*r)->functions)
			err = (*r)->functions(img, add, s);
	if (s->nby_language)
		symbols_forget(s);
	return err;
}
