/* SPDX-License-Identifier: Apache-2.0 */
#include "request_rules.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind/binary/image.h"
#include "unwind/binary/proc_path.h"
#include "unwind/process/process.h"
#include "unwind/runtime_calls.h"

#define NAMES_TEXT 1024

/* Native servers that export their function, in processes that map a file whose name begins so. */
static const struct native_server {
	const char *file;
	struct runtime_server server;
} natives[] = {
        /* modules/http/http_request.c, include/httpd.h of 2.4: request_rec.the_request: "GET /index.html HTTP/1.1" */
        {"apache2", {"Apache httpd", "apache2:ap_process_async_request", "arg1+48", 0}},
        {"httpd", {"Apache httpd", "httpd:ap_process_async_request", "arg1+48", 0}},
};

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
		if (err)
			break;
		calls->key[calls->n - 1] = s->key;
		calls->rank[calls->n - 1] = s->rank;
	}
	return err;
}

static struct error *add_native(const struct native_server *s, struct hit_options *calls)
{
	const struct runtime_server one[] = {s->server, {0}};

	return add_servers(one, calls);
}

/* The program that the process runs; NULL: it cannot be read. */
static struct image *program_of(pid_t pid)
{
	struct image *img = NULL;
	char path[64];
	int fd;

	proc_path(path, sizeof(path), pid, "exe");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		error_free(image_open(fd, path, &img)); /* takes fd */
	return img;
}

static struct error *add_natives(pid_t pid, const struct maps *maps, struct hit_options *calls)
{
	struct image *program = program_of(pid);
	struct error *err = NULL;

	for (const struct runtime_ops *const *r = runtimes; program && !err && *r; r++)
		if ((*r)->servers && (*r)->made_program(program))
			err = add_servers((*r)->servers, calls);
	for (u32 i = 0; !err && i < sizeof(natives) / sizeof(*natives); i++) {
		const char *const files[] = {natives[i].file, NULL};

		if (maps_one(maps, files))
			err = add_native(&natives[i], calls);
	}
	image_put(program);
	return err;
}

/* Those in interpreters and virtual machines, or in a language's own programs. */
static const struct runtime_server *servers_of(const struct runtime_ops *ops)
{
	return ops->servers ?: ops->calls ? ops->calls->servers : NULL;
}

struct error *request_rules_add_all(struct hit_options *calls)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < sizeof(natives) / sizeof(*natives); i++)
		err = add_native(&natives[i], calls);
	for (const struct runtime_ops *const *r = runtimes; !err && *r; r++)
		if (servers_of(*r))
			err = add_servers(servers_of(*r), calls);
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
	if (!err && !is_native)
		err = add_natives(pid, &maps, calls);
	maps_free(&maps);
	return err;
}

/* Each once. */
static void names_text(char ret[NAMES_TEXT])
{
	size_t len = 0;

	*ret = '\0';
	for (const struct runtime_ops *const *r = runtimes; *r; r++) {
		const struct runtime_server *s = servers_of(*r);

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
	        "known: nginx, Envoy, Apache httpd%s. Of others --begin FUNCTION --end FUNCTION say where requests "
	        "begin and end, or "
	        "--begin LANGUAGE:FUNCTION which one handles a request (`yrt functions` lists them)",
	        names);
}
