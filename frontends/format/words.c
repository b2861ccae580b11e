/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include <string.h>

#include "text.h"
#include "unwind/process/module.h"
#include "unwind/runtime.h"

static bool is_code(enum profile_kind kind)
{
	return kind == KIND_SCRIPT || kind == KIND_SCRIPT_BASELINE || kind == KIND_SCRIPT_JIT;
}

/* NULL for what was read from text, or by a recording of a runtime that is not known here. */
static const struct runtime_ops *runtime_of(const char *module)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (!strcmp((*r)->name, module))
			return *r;
	return NULL;
}

const char *words_of_runtime(const struct runtime_ops *ops, enum profile_kind kind)
{
	const char *word = kind == KIND_SCRIPT            ? ops->words.interpreted
	                   : kind == KIND_SCRIPT_BASELINE ? ops->words.baseline
	                                                  : ops->words.jit;

	return word ? word : ops->language;
}

const char *words_of(const char *module, enum profile_kind kind)
{
	const struct runtime_ops *ops = is_code(kind) ? runtime_of(module) : NULL;

	return ops ? words_of_runtime(ops, kind) : text_kind(kind);
}

enum profile_kind words_kind(const struct profile_function *f)
{
	const struct runtime_ops *ops = f->kind == KIND_SCRIPT_JIT ? runtime_of(f->module) : NULL;

	return ops && ops->words.ahead ? KIND_NATIVE : f->kind;
}

/* Is there a function of this kind (KIND_ROOT: of any kind of code) and runtime (NULL: of none)? */
static bool has(const struct profile *p, enum profile_kind kind, const struct runtime_ops *ops)
{
	for (u32 i = 0; i < p->nfunctions; i++) {
		const struct profile_function *f = &p->functions[i];

		if ((kind == KIND_ROOT ? is_code(f->kind) : f->kind == kind) && runtime_of(f->module) == ops)
			return true;
	}
	return false;
}

static bool has_several_languages(const struct profile *p)
{
	const char *language = NULL;

	for (const struct runtime_ops *const *r = runtimes; *r; r++) {
		if (!has(p, KIND_ROOT, *r))
			continue;
		if (language && strcmp(language, (*r)->language))
			return true;
		language = (*r)->language;
	}
	return false;
}

static int put(char ret[WORDS_LEGEND], int n, const char *language, const char *word)
{
	bool says = !*language || !strncmp(word, language, strlen(language));

	if (n >= WORDS_LEGEND)
		return n;
	return n + snprintf(ret + n, WORDS_LEGEND - n, "%s%s%s%s", n ? ", " : "", says ? "" : language, says ? "" : " ",
	                   word);
}

const char *words_legend(const struct profile *p, enum profile_kind kind, char ret[WORDS_LEGEND])
{
	bool several;
	int n = 0;

	if (!is_code(kind))
		return text_kind(kind);
	several = has_several_languages(p);
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (has(p, kind, *r))
			n = put(ret, n, several ? (*r)->language : "", words_of_runtime(*r, kind));
	if (!n || has(p, kind, NULL))
		put(ret, n, "", text_kind(kind));
	return ret;
}
