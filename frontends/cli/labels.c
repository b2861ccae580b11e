/* SPDX-License-Identifier: Apache-2.0 */
#include "labels.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probes/select.h"
#include "unwind/cleanup.h"

struct shared { /* "": not known, or not the same of all */
	char service[SELECT_ID], pod[SELECT_ID], container[SELECT_ID], unit[SELECT_ID];
};

static void keep_same(char *all, const char *one, bool first)
{
	if (first)
		snprintf(all, SELECT_ID, "%s", one);
	else if (strcmp(all, one))
		*all = '\0';
}

static void look_at(const struct process_facts *f, struct shared *s, bool first)
{
	char id[SELECT_ID];

	keep_same(s->service, facts_name(f), first);
	keep_same(s->pod, facts_pod(f, id) ? id : "", first);
	keep_same(s->container, facts_container(f, id) ? id : "", first);
	keep_same(s->unit, facts_unit(f, id) ? id : "", first);
}

static void put(FILE *out, const char *key, const char *value)
{
	if (!value || !*value)
		return;
	fprintf(out, "%s=", key);
	for (; *value; value++)
		fputc((unsigned char)*value < ' ' ? '_' : *value, out);
	fputc('\n', out);
}

char *labels_of(const pid_t *pids, int n, const char *fallback)
{
	struct shared s = {0};
	struct process_facts f;
	char *text = NULL, host[256] = "";
	bool first = true;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (int i = 0; i < n; i++)
		if (facts_read("/proc", pids[i], &f)) {
			look_at(&f, &s, first);
			first = false;
		}
	gethostname(host, sizeof(host) - 1);
	put(out, "service.name", *s.service ? s.service : fallback);
	put(out, "host.name", host);
	put(out, "k8s.pod.uid", s.pod);
	put(out, "container.id", s.container);
	put(out, "systemd.unit", s.unit);
	fclose(out);
	return text;
}

/* Does a line of text begin with this key? */
static bool has_key(const char *text, const char *key, size_t n)
{
	for (; text && *text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		if (!strncmp(text, key, n) && text[n] == '=')
			return true;
	return false;
}

/* The value of the last line with this key; NULL if no line has it. */
static const char *value_of(const char *text, const char *key)
{
	size_t n = strlen(key);
	const char *found = NULL;

	for (; text && *text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		if (!strncmp(text, key, n) && text[n] == '=')
			found = text + n + 1;
	return found;
}

/* The build-id of the program whose file's name is the service's. */
static const char *build_of(const struct profile *p, const char *service, size_t n)
{
	for (u32 i = 1; i < p->nimages; i++) {
		const char *slash = strrchr(p->images[i].path, '/'), *name = slash ? slash + 1 : p->images[i].path;

		if (strlen(name) == n && !strncmp(name, service, n))
			return p->images[i].build_id;
	}
	return NULL;
}

struct error *labels_merge(struct profile *p, const char *more)
{
	static const char build_key[] = "process.executable.build_id.gnu";
	const char *own = p->meta.labels ? p->meta.labels : "";
	const char *service = value_of(own, "service.name");
	const char *given = has_key(more, "service.name", 12) ? NULL : value_of(more, "service"); /* means the same */
	cleanup(free) char *text = NULL;
	struct error *err;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return &error_no_memory;
	for (const char *line = more, *next; line && *line; line = next) { /* the last one of a key */
		next = strchrnul(line, '\n');
		next += !!*next;
		if (!has_key(next, line, strcspn(line, "=")))
			fprintf(out, "%.*s\n", (int)strcspn(line, "\n"), line);
	}
	if (given)
		fprintf(out, "service.name=%.*s\n", (int)strcspn(given, "\n"), given);
	for (const char *line = own; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!has_key(more, line, strcspn(line, "=\n")) && !(given && !strncmp(line, "service.name=", 13)))
			fprintf(out, "%.*s\n", (int)strcspn(line, "\n"), line);
	if (service && !has_key(more, build_key, sizeof(build_key) - 1) &&
	        !has_key(own, build_key, sizeof(build_key) - 1))
		put(out, build_key, build_of(p, service, strcspn(service, "\n")));
	fclose(out);
	err = profile_string(p, text, &p->meta.labels);
	return err;
}
