/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_missing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hit_callee_match.h"
#include "hit_find.h"

#define FILES_TEXT 256

static void files_text(const struct targets *t, char *ret)
{
	size_t len = 0;
	const struct process *p = t->nprocesses ? t->processes[0] : NULL;
	const struct image *last = NULL;

	*ret = '\0';
	for (u32 i = 0; p && i < p->maps.nlines && len < FILES_TEXT - 80; i++) {
		const struct mapping *m = &p->mappings[i];
		const char *base = m->image ? strrchr(m->image->path, '/') : NULL;

		if (!base || m->image == last || !(m->prot & PROT_EXEC))
			continue;
		last = m->image;
		len += (size_t)snprintf(ret + len, FILES_TEXT - len, "%s%.60s", len ? ", " : "", base + 1);
	}
}

/* What was given is a pattern: no name is like that. */
static struct error *no_patterns(const struct hit_spec *s)
{
	return error_hint(error_new(ERROR_USAGE, "-e %s: no function matches \"%s\"", s->text, s->name),
	        "patterns (*) are for functions of files; `yrt functions -p PID '%s:%s'` lists functions, USDT probes "
	        "and "
	        "tracepoints: give an -e for each",
	        *s->file ? s->file : "*", s->name);
}

/* A function of a language that is called so: "python:shop.order". False: no target has one, or several are. */
static bool find_in_language(
        const struct hit_spec *s, const struct process *p, const char *view, char *ret, size_t size)
{
	struct callee_match match;
	struct error *err = callee_match(p, view, s->text, s->text, false, &match);
	bool found = !err && match.n;

	if (found)
		snprintf(ret, size, "%s:%.255s", view, match.of[0].name);
	free(match.of);
	error_free(err);
	return found;
}

/* Puts "-e" with the language's name into the hint: users write names as stacks show them. */
static struct error *or_of_language(struct error *err, const struct hit_spec *s, const struct targets *t)
{
	char name[HIT_NAME_MAX];

	for (u32 i = 0; i < t->nprocesses; i++)
		for (u32 k = 0; !t->processes[i]->dead && k < t->processes[i]->ninstances; k++) {
			const struct runtime_ops *ops = t->processes[i]->instances[k].ops;

			if (ops->calls && find_in_language(s, t->processes[i], ops->view, name, sizeof(name)))
				return error_hint(err, "a function of %s has it: -e %s", ops->view, name);
		}
	return NULL;
}

static struct error *no_file(const struct hit_spec *s, const struct targets *targets)
{
	char files[FILES_TEXT], near[HIT_NEAR_TEXT];
	struct error *hinted,
	        *err = error_new(ERROR_USAGE,
	                "-e %s: there is no file \"%s\" with code, USDT provider or tracepoint of that name", s->text,
	                s->file);

	hinted = or_of_language(err, s, targets);
	if (hinted)
		return hinted;
	files_text(targets, files);
	hit_near_text(&s->near, near);
	if (s->near.n)
		return error_hint(err, "tracepoints: %s; files: %s", near, files);
	return error_hint(err, "files: %s; functions of scripts and JITs are in none", files);
}

/* Of all files that were mapped. */
static void find_near(const struct hit_spec *s, const struct targets *targets, struct hit_near *ret)
{
	const struct modules *m = targets->modules;

	for (u32 i = 0; i < m->nloaded; i++)
		if (m->loaded[i]->image && m->loaded[i]->image->fd >= 0)
			hit_find_near(s, m->loaded[i]->image, ret);
}

/* Another file that has it; NULL: none. */
static const char *find_elsewhere(const struct hit_spec *s, const struct targets *targets)
{
	const struct modules *m = targets->modules;
	struct hit_spec any = *s;

	*any.file = '\0';
	for (u32 i = 0; !s->by_addr && i < m->nloaded; i++) {
		struct image *img = m->loaded[i]->image;
		struct hit_found found = {0};
		const char *slash = img ? strrchr(img->path, '/') : NULL;

		if (!slash || img->fd < 0)
			continue;
		error_free(hit_find(&any, img, "/", &found));
		free(found.others);
		if (found.n)
			return slash + 1;
	}
	return NULL;
}

struct error *hit_missing(const struct hit_spec *s, bool matched, const struct targets *targets)
{
	struct hit_near names = {0};
	const char *other;
	char near[HIT_NEAR_TEXT];
	struct error *err, *hinted;

	if (hit_is_pattern(s))
		return no_patterns(s);
	if (!matched)
		return no_file(s, targets);
	err = error_new(ERROR_USAGE, "-e %s: there is no function or USDT probe \"%s\"", s->text, s->name);
	other = find_elsewhere(s, targets);
	if (other)
		return error_hint(err, "another file has it: -e %.200s:%s", other, s->name);
	hinted = or_of_language(err, s, targets);
	if (hinted)
		return hinted;
	find_near(s, targets, &names);
	hit_near_text(&names, near);
	if (names.n)
		return error_hint(
		        err, "near: %s; functions of scripts and JITs are in no file, nor those always inlined", near);
	return error_hint(err, "a file without symbols takes addresses as stacks show them: -e nginx+0x51340; "
	                       "functions of scripts and JITs are in no file, nor those always inlined");
}
