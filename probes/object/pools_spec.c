/* SPDX-License-Identifier: Apache-2.0 */
#include "pools_spec.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define REGISTERS 6 /* that pass arguments */
#define NONE      0xff

const char *const pools_built_in[] = {
        "alloc=ngx_palloc(pool,size) alloc=ngx_pnalloc(pool,size) alloc=ngx_pcalloc(pool,size) "
        "alloc=ngx_pmemalign(pool,size) create=ngx_create_pool destroy=ngx_destroy_pool(pool) "
        "reset=ngx_reset_pool(pool) free=ngx_pfree(pool,ptr)",
        "alloc=apr_palloc(pool,size) alloc=apr_pcalloc(pool,size) create=apr_pool_create_ex(&pool) "
        "destroy=apr_pool_destroy(pool) reset=apr_pool_clear(pool)",
        NULL};

static struct error *wrong(const char *word, size_t n, const char *why)
{
	return error_hint(error_new(ERROR_USAGE, "--pool: \"%.*s\": %s", (int)(n < 64 ? n : 64), word, why),
	        "--pool 'alloc=my_alloc(pool,size) create=my_new destroy=my_free(pool) reset=my_clear(pool)'");
}

static bool take_kind(const char **at, enum pool_kind *ret)
{
	static const char *const kinds[] = {[POOL_ALLOC] = "alloc=",
	        [POOL_CREATE] = "create=",
	        [POOL_DESTROY] = "destroy=",
	        [POOL_RESET] = "reset=",
	        [POOL_FREE] = "free="};

	for (u32 i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(*at, kinds[i], strlen(kinds[i]))) {
			*at += strlen(kinds[i]);
			*ret = i;
			return true;
		}
	return false;
}

/* The argument that tells more than the pool: a size, or the block that is freed. */
static bool names_second(enum pool_kind kind, const char *at, size_t n)
{
	const char *name = kind == POOL_FREE ? "ptr" : "size";

	return n == strlen(name) && !memcmp(at, name, n);
}

/* The arguments between parentheses: which is the pool, which the size. False: there are too many, or one is twice. */
static bool take_arguments(const char *at, const char *end, struct pool_call *c)
{
	for (u32 i = 0; at < end; i++) {
		const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
		size_t n = (size_t)(stop - at);
		bool out = n && *at == '&', pool = n - out == 4 && !memcmp(at + out, "pool", 4);
		u8 *which = pool ? &c->pool : names_second(c->kind, at, n) ? &c->size : NULL;

		if (which && (*which != NONE || i >= REGISTERS))
			return false;
		if (which)
			*which = (u8)i;
		c->out |= pool && out;
		at = comma ? comma + 1 : end;
	}
	return true;
}

static struct error *take_word(const char *word, size_t n, struct pool_call *c)
{
	const char *end = word + n, *at = word, *open;

	if (!take_kind(&at, &c->kind))
		return wrong(word, n, "it begins with none of alloc=, create=, destroy=, reset=, free=");
	open = memchr(at, '(', (size_t)(end - at));
	n = (size_t)((open ? open : end) - at);
	if (!n || n >= POOL_NAME_MAX || (open && end[-1] != ')'))
		return wrong(word, (size_t)(end - word), "a function's name is missing, or a parenthesis");
	memcpy(c->name, at, n);
	c->pool = c->size = NONE;
	if (open && !take_arguments(open + 1, end - 1, c))
		return wrong(word, (size_t)(end - word), "pool and size are each one of the first six arguments");
	if (c->kind == POOL_CREATE && c->pool != NONE && !c->out)
		return wrong(word, (size_t)(end - word), "a function that makes a pool returns it, or has it as &pool");
	if (c->kind != POOL_CREATE && (c->pool == NONE || c->out))
		return wrong(word, (size_t)(end - word), "no argument is called pool");
	if (c->kind == POOL_ALLOC && c->size == NONE)
		return wrong(word, (size_t)(end - word), "no argument is called size");
	if (c->kind == POOL_FREE && c->size == NONE)
		return wrong(word, (size_t)(end - word), "no argument is called ptr");
	return NULL;
}

struct error *pool_spec_parse(const char *text, struct pool_spec *ret)
{
	struct error *err = NULL;

	memset(ret, 0, sizeof(*ret));
	while (!err && *(text += strspn(text, " \t\n"))) {
		size_t n = strcspn(text, " \t\n");

		if (ret->n == POOL_CALLS_MAX)
			return wrong(text, n, "too many functions");
		err = take_word(text, n, &ret->call[ret->n++]);
		text += n;
	}
	for (u32 i = 0; !err && i < ret->n; i++)
		if (ret->call[i].kind == POOL_ALLOC)
			return NULL;
	return err ? err : wrong(text, 0, "there is no alloc=");
}
