/* SPDX-License-Identifier: Apache-2.0 */
#include "own.h"

#include <string.h>

#include "frontends/format/text.h"
#include "unwind/hash_text.h"
#include "unwind/symbols/compiler_copy.h"

#define MATCH_NAME 1024

/* A compiler's copies of a function are that function. */
static void cut_suffixes(const struct profile_function *f, char *name)
{
	if (f->kind != KIND_NATIVE && f->kind != KIND_CXX && f->kind != KIND_VM && f->kind != KIND_KERNEL)
		return;
	for (char *at = strchr(name + 1, '.'); at; at = strchr(at + 1, '.'))
		if (compiler_copy(at, true)) {
			*at = '\0';
			return;
		}
}

void matched_name(const struct profile_function *f, char *ret, size_t size)
{
	if (text_plain_name(f, ret, size) != ret)
		snprintf(ret, size, "%s", f->name);
	if (*ret)
		cut_suffixes(f, ret);
}

static bool name_matches(const struct pattern *p, const struct profile_function *f)
{
	char name[MATCH_NAME];

	matched_name(f, name, sizeof(name));
	return pattern_matches(p, name);
}

/* Names are matched without the line that is executed. */
bool term_matches(const struct term *t, const struct libraries *l, const struct profile_function *f)
{
	return (!t->kinds || t->kinds & 1u << f->kind) && (!t->own || is_own(l, f)) &&
	       (!t->name.set || name_matches(&t->name, f)) &&
	       (!t->place.set || pattern_matches(&t->place, f->file) || pattern_matches(&t->place, f->module));
}

bool is_code(const struct profile_function *f)
{
	switch (f->kind) {
	case KIND_NATIVE:
	case KIND_CXX:
	case KIND_RUST:
	case KIND_SCRIPT:
	case KIND_SCRIPT_BASELINE:
	case KIND_SCRIPT_JIT:
		return true;
	default:
		return false;
	}
}

static bool is_of_library(const struct libraries *l, const struct profile_function *f)
{
	for (u32 i = 0; i < l->n; i++)
		if (term_matches(&l->all[i], NULL, f))
			return true;
	return false;
}

/* Each rule asks that of each function, and the answer takes dozens of regular expressions. */
bool is_own(const struct libraries *l, const struct profile_function *f)
{
	u64 hash, *known;

	if (!is_code(f))
		return false;
	if (!l)
		return true;
	hash = hash_add_text(hash_add_text(hash_add_text(f->kind, f->name), f->file), f->module) | 1;
	known = &l->known[(hash >> 1) % OWN_KNOWN];
	if ((*known | 1) != hash)
		*known = hash - is_of_library(l, f);
	return *known & 1;
}
