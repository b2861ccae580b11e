/* SPDX-License-Identifier: Apache-2.0 */
#include "request_rules.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind/process/process.h"
#include "unwind/runtime_calls.h"

#define NAMES_TEXT 512

static bool maps_one(const struct maps *maps, const char *const *files)
{
	for (u32 i = 0; i < maps->nlines; i++) {
		const char *slash = maps->lines[i].ino ? strrchr(maps->lines[i].path, '/') : NULL;

		for (const char *const *file = files; slash && maps->lines[i].prot & PROT_EXEC && *file; file++)
			if (!strncmp(slash + 1, *file, strlen(*file)))
				return true;
	}
	return false;
}

static bool has(const struct hit_options *calls, const char *text)
{
	for (u32 i = 0; i < calls->n; i++)
		if (!strcmp(calls->spec[i].text, text))
			return true;
	return false;
}

static struct error *add_servers(const struct runtime_server *servers, struct hit_options *calls)
{
	struct error *err = NULL;

	for (const struct runtime_server *s = servers; !err && s->name && !has(calls, s->call); s++) {
		err = hit_add(calls, s->call);
		if (!err)
			calls->key[calls->n - 1] = s->key;
	}
	return err;
}

struct error *request_rules_add_all(struct hit_options *calls)
{
	struct error *err = NULL;

	for (const struct runtime_ops *const *r = runtimes; !err && *r; r++)
		if ((*r)->calls && (*r)->calls->servers)
			err = add_servers((*r)->calls->servers, calls);
	return err;
}

struct error *request_rules_add(pid_t pid, struct hit_options *calls, bool *native)
{
	static const char *const otherwise[] = {"nginx", "openresty", "envoy", NULL}; /* request.c */
	struct maps maps;
	struct error *err = maps_read(pid, &maps);
	bool is_native;

	if (err) { /* attaching says why */
		error_free(err);
		return NULL;
	}
	is_native = maps_one(&maps, otherwise);
	*native |= is_native;
	for (const struct runtime_ops *const *r = runtimes; !err && !is_native && *r; r++)
		if ((*r)->calls && (*r)->calls->servers && maps_one(&maps, (*r)->calls->files))
			err = add_servers((*r)->calls->servers, calls);
	maps_free(&maps);
	return err;
}

/* Each once. */
static void names_text(char ret[NAMES_TEXT])
{
	size_t len = 0;

	*ret = '\0';
	for (const struct runtime_ops *const *r = runtimes; *r; r++) {
		const struct runtime_server *s = (*r)->calls ? (*r)->calls->servers : NULL;

		for (const char *last = ""; s && s->name && len < NAMES_TEXT; last = s->name, s++)
			if (strcmp(s->name, last) != 0)
				len += (size_t)snprintf(ret + len, NAMES_TEXT - len, ", %s", s->name);
	}
}

struct error *request_rules_none(void)
{
	char names[NAMES_TEXT];

	names_text(names);
	return error_hint(error_new(ERROR_UNSUPPORTED, "no target is a server whose requests yrt knows"),
	        "known: nginx, Envoy%s. Of others --begin FUNCTION --end FUNCTION say where requests begin and end, or "
	        "--begin LANGUAGE:FUNCTION which one handles a request (`yrt functions` lists them)",
	        names);
}
