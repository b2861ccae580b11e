/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/format/text.h"
#include "own.h"
#include "source_text.h"
#include "unwind/clean_text.h"

/* The length of "render" of "render (pages.py:16)", as scripts' functions are named by where they begin. */
static size_t bare_length(const char *name)
{
	size_t n = strlen(name), at = n;
	const char *line = strrchr(name, ':');
	u32 open = 0;

	if (!line || !line[1] || line + 1 + strspn(line + 1, "0123456789") != name + n - 1 || name[n - 1] != ')')
		return n;
	do {
		at--;
		open += name[at] == ')';
		open -= name[at] == '(';
	} while (open && at); /* a file may be called "(eval)" */
	return !open && at > 1 && name[at - 1] == ' ' ? at - 1 : n;
}

char *place_name(const struct libraries *l, const struct profile_function *f, char *ret, size_t size)
{
	char name[NAME_LENGTH];
	const char *base = strrchr(f->file, '/') ? strrchr(f->file, '/') + 1 : f->file;
	bool placed = *base && f->line && is_own(l, f);
	FILE *out = fmemopen(ret, size, "w");

	*ret = '\0';
	if (!out)
		return ret;
	text_plain_name(f, name, sizeof(name));
	if (placed)
		name[bare_length(name)] = '\0';
	text_put_short(out, name, f->kind);
	if (placed)
		fprintf(out, " (%s:%u)", base, f->line);
	fclose(out);
	return ret;
}

struct error *place_make(const struct libraries *l, const struct profile_function *fn, double share,
        const struct evidence *e, struct finding_site *ret)
{
	char name[NAME_LENGTH];

	text_plain_name(fn, name, sizeof(name));
	ret->function = clean_text(name);
	ret->file = clean_text(fn->file);
	ret->line = fn->line ? fn->line : fn->definition;
	ret->share = share;
	ret->text = is_own(l, fn) ? source_text(e, fn->file, fn->line) : NULL;
	return ret->function && ret->file ? NULL : &error_no_memory;
}

void place_free(struct finding_site *s)
{
	free(s->function);
	free(s->file);
	free(s->text);
}
