/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_callee_match.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "hit_callee.h"
#include "hit_name.h"
#include "unwind/arch/x86_64/arch.h"
#include "unwind/grow.h"
#include "unwind/heap/heap_cache.h"

#define CACHE_MAX (32u << 20)

enum how { EXACTLY, BY_PATTERN, BY_END };

struct matching {
	const char *name;
	const char
	        *arguments; /* "(environ,start_response)", of functions that take these, maybe behind self; or NULL */
	enum runtime_origin origin; /* of those */
	enum how how;
	bool in_files; /* names are FILE:FUNCTION */
	struct callee_match *ret;
};

bool callee_is_pattern(const char *name)
{
	return strchr(name, '*') != NULL;
}

const char *callee_form(const char *view)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (!strcmp((*r)->view, view) && (*r)->calls)
			return (*r)->calls->form;
	return NULL;
}

struct error *callee_each(const struct process *p, const char *view, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	struct runtime_process seen = process_view(p);
	struct heap_cache *cache =
	        NULL; /* objects lie close together: hundreds of thousands of reads become thousands */
	struct error *err = NULL;

	for (u32 i = 0; !err && i < p->ninstances; i++) {
		const struct instance *instance = &p->instances[i];

		if (!instance->data || !instance->ops->calls || strcmp(instance->ops->view, view) != 0)
			continue;
		err = cache ? NULL : heap_cache_create(p->memory, p->pid, CACHE_MAX, &cache);
		if (err)
			break;
		seen.memory = heap_cache_memory(cache);
		err = instance->ops->calls->list(instance->data, &seen, pattern, add, ctx);
	}
	heap_cache_destroy(cache);
	return err;
}

/* Does it end in the whole of a name, or of several with what is between them? */
static bool ends_so(const char *full, size_t nfull, const char *name, size_t n)
{
	if (n >= nfull || memcmp(full + nfull - n, name, n) != 0)
		return false;
	return !isalnum((unsigned char)full[nfull - n - 1]) && full[nfull - n - 1] != '_';
}

static bool is_end(const char *full, size_t nfull, const char *name, size_t n)
{
	return (n == nfull && !memcmp(full, name, n)) || ends_so(full, nfull, name, n);
}

/* "app.lua:handle" is "/srv/app.lua:M.handle". */
static bool both_end_so(const char *full, const char *name)
{
	const char *file_end = strchr(full, ':'), *end = strchr(name, ':');

	return file_end && end && is_end(full, (size_t)(file_end - full), name, (size_t)(end - name)) &&
	       is_end(file_end + 1, strlen(file_end + 1), end + 1, strlen(end + 1));
}

static bool matches(const struct matching *m, const char *full)
{
	switch (m->how) {
	case EXACTLY:
		return !strcmp(full, m->name);
	case BY_PATTERN:
		return hit_name_fits(m->name, full);
	default:
		return ends_so(full, strlen(full), m->name, strlen(m->name)) ||
		       (m->in_files && both_end_so(full, m->name));
	}
}

/* Has it these arguments, and comes from there? */
static bool takes(const struct matching *m, const struct runtime_callee *c)
{
	const char *own = strncmp(c->arguments, "self,", 5) ? c->arguments : c->arguments + 5;
	size_t len = strlen(own);

	if (!m->arguments)
		return true;
	return !strncmp(m->arguments + 1, own, len) && !strcmp(m->arguments + 1 + len, ")") && c->origin == m->origin;
}

static struct error *add(void *ctx, const struct runtime_callee *c)
{
	struct matching *m = ctx;
	struct callee_match *ret = m->ret;
	struct error *err;

	if (!takes(m, c) || (!m->arguments && !matches(m, c->name))) {
		if (m->how == BY_END)
			hit_near_dotted(&ret->near, m->name, c->name);
		return NULL;
	}
	if (ret->all++ >= CALLEES_MAX)
		return NULL;
	err = grow(&ret->of, ret->n, sizeof(*ret->of));
	if (!err)
		ret->of[ret->n++] = *c;
	return err;
}

static struct error *find(const struct process *p, const char *view, struct matching *m, enum how how)
{
	m->how = how;
	return callee_each(p, view, how == BY_END || m->arguments ? NULL : m->name, add, m);
}

/* "a, b, c", each once, in HIT_NEAR_TEXT bytes. Returns how many. */
static u32 names_text(const struct callee_match *m, char *ret)
{
	size_t len = 0;
	u32 n = 0;

	*ret = '\0';
	for (u32 i = 0, k; i < m->n; i++) {
		for (k = 0; strcmp(m->of[k].name, m->of[i].name) != 0;)
			k++;
		if (k < i || n++ >= HIT_NEAR)
			continue;
		len += (size_t)snprintf(ret + len, HIT_NEAR_TEXT - len, "%s%.200s", len ? ", " : "", m->of[i].name);
	}
	return n;
}

/* A part of a name must stand for one. */
static struct error *check_one(const struct callee_match *m, const char *text)
{
	char list[HIT_NEAR_TEXT];
	u32 n = names_text(m, list);

	if (n <= 1)
		return NULL;
	if (strchr(text, '('))
		return error_hint(error_new(ERROR_USAGE, "%u functions take %s: which one handles a request?", n,
		                          strchr(text, '(')),
		        "choose by --begin %.*s:NAME --key 'environ[REQUEST_METHOD],environ[PATH_INFO]' (or "
		        "scope[path]): "
		        "%s%s",
		        (int)strcspn(text, ":"), text, list, n > HIT_NEAR ? ", and others" : "");
	return error_hint(error_new(ERROR_USAGE, "-e %s: %u functions have a name that ends so", text, n), "%s%s", list,
	        n > HIT_NEAR ? ", and others: `yrt functions` lists all" : "");
}

static struct error *check_count(const struct callee_match *m, const char *text)
{
	if (m->all <= CALLEES_MAX)
		return NULL;
	return error_hint(error_new(ERROR_USAGE, "-e %s: %u functions match; at most %u can be probed in one run", text,
	                          m->all, CALLEES_MAX),
	        "`yrt functions` lists them");
}

struct error *callee_match(const struct process *p, const char *view, const char *text, const char *name, bool whole,
        struct callee_match *ret)
{
	const char *form = callee_form(view);
	struct matching m = {.name = name, .in_files = form && strstr(form, "FILE:"), .ret = ret};
	struct error *err;

	*ret = (struct callee_match){0};
	m.arguments = callee_is_pattern(name) ? strchr(name, '(') : NULL;
	err = find(p, view, &m, callee_is_pattern(name) ? BY_PATTERN : EXACTLY);
	if (!err && m.arguments && !ret->n) { /* the program may be installed as a library is */
		m.origin = RUNTIME_INSTALLED;
		err = find(p, view, &m, BY_PATTERN);
	}
	if (!err && m.arguments)
		err = check_one(ret, text);
	if (!err && !ret->n && !whole && !callee_is_pattern(name)) {
		err = find(p, view, &m, BY_END);
		err = err ? err : check_one(ret, text);
	}
	return err ? err : check_count(ret, text);
}

static struct error *take(void *ctx, const struct runtime_callee *c)
{
	struct callee_match *ret = ctx;
	struct error *err = grow(&ret->of, ret->n, sizeof(*ret->of));

	if (!err)
		ret->of[ret->n++] = *c;
	return err;
}

struct error *callee_again(
        const struct process *p, const char *view, const struct runtime_callee *of, struct callee_match *ret)
{
	struct runtime_process seen = process_view(p);
	struct error *err = NULL;

	*ret = (struct callee_match){0};
	for (u32 i = 0; !err && !ret->n && i < p->ninstances; i++) {
		const struct instance *instance = &p->instances[i];
		const struct runtime_calls_ops *calls = instance->ops->calls;

		if (instance->data && calls && calls->again && !strcmp(instance->ops->view, view))
			err = calls->again(instance->data, &seen, of, take, ret);
	}
	return err;
}

void callee_inlined(const struct process *p, const char *view, const struct runtime_callee *of,
        void (*add)(void *ctx, const char *into), void *ctx)
{
	struct runtime_process seen = process_view(p);

	for (u32 i = 0; i < p->ninstances; i++) {
		const struct instance *instance = &p->instances[i];
		const struct runtime_calls_ops *calls = instance->ops->calls;

		if (instance->data && calls && calls->inlined && !strcmp(instance->ops->view, view))
			calls->inlined(instance->data, &seen, of, add, ctx);
	}
}

bool callee_field(const struct process *p, const char *view, const struct runtime_callee *of, u32 i, const char *fields,
        struct value_places *v, u32 slot)
{
	struct runtime_process seen = process_view(p);

	for (u32 k = 0; k < p->ninstances; k++) {
		const struct instance *instance = &p->instances[k];
		const struct runtime_calls_ops *calls = instance->ops->calls;

		if (instance->data && calls && calls->field && !strcmp(instance->ops->view, view))
			return calls->field(instance->data, &seen, of, i, fields, v, slot);
	}
	return false;
}

u32 callee_register(u8 number)
{
	static const u8 words[] = ARCH_PT_REGS_WORDS;

	return number < sizeof(words) ? words[number] : CALLEE_NO_REG;
}

void callee_value(const struct process *p, const char *view, const struct runtime_value *v, FILE *out)
{
	struct runtime_process seen = process_view(p);

	for (u32 i = 0; i < p->ninstances; i++) {
		const struct instance *instance = &p->instances[i];
		const struct runtime_calls_ops *calls = instance->ops->calls;

		if (!instance->data || !calls || !calls->value || strcmp(instance->ops->view, view) != 0)
			continue;
		calls->value(instance->data, &seen, v, out);
		return;
	}
	putc('?', out);
}
