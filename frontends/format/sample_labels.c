/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

const char *const pprof_containers[CONTAINER_TERMS] = {
        "pod_uid", "namespace", "pod", "container", "container_name", "unit", "cgroup"};

bool sample_label_is(enum profile_kind kind)
{
	return kind == KIND_CONTAINER || kind == KIND_PROCESS || kind == KIND_THREAD || kind == KIND_LABEL;
}

/* "name (pid 42)" is two labels. */
static void add_process(const struct profile_function *f, const struct label_keys *keys, label_add *add, void *ctx)
{
	char text[TEXT_CLEAN], pid[32];
	struct container container;
	size_t n, end;

	n = (size_t)snprintf(text, sizeof(text), "%s", text_name(f));
	end = (size_t)snprintf(pid, sizeof(pid), " (pid %u)", f->line);
	if (f->line && n > end && n < sizeof(text) && !strcmp(text + n - end, pid))
		text[n - end] = '\0';
	add(ctx, keys->process, text, 0);
	if (f->line && keys->pid)
		add(ctx, keys->pid, NULL, f->line);
	container_parse(f->file, &container);
	for (u32 i = 0; i < CONTAINER_TERMS; i++)
		if (keys->container[i] && *container.term[i])
			add(ctx, keys->container[i], container.term[i], 0);
}

/* "name (tid 42)" is two labels. */
static void add_thread(const struct profile_function *f, const struct label_keys *keys, label_add *add, void *ctx)
{
	const char *name = text_name(f), *tid = strstr(name, " (tid ");
	char text[TEXT_CLEAN];

	snprintf(text, sizeof(text), "%.*s", tid ? (int)(tid - name) : (int)strlen(name), name);
	if (keys->thread)
		add(ctx, keys->thread, text, 0);
	if (tid && keys->thread_id)
		add(ctx, keys->thread_id, NULL, strtoul(tid + 6, NULL, 10));
}

/* Copies up to one of the bytes of end, or to the end of the text; what is behind a backslash is meant as it is. */
static const char *take(const char *at, const char *end, char *ret, size_t room)
{
	size_t n = 0;

	for (; *at && !strchr(end, *at); at++) {
		if (*at == '\\' && at[1])
			at++;
		if (n + 1 < room)
			ret[n++] = *at;
	}
	ret[n] = '\0';
	return at;
}

/* "labels: key=value, key=value", as struct frame_name has it. */
static void add_program(const struct profile_function *f, label_add *add, void *ctx)
{
	const char *at = strchr(text_name(f), ' ');
	char key[TEXT_CLEAN], value[TEXT_CLEAN];

	while (at && *at) {
		at = take(at + strspn(at, ", "), "=,", key, sizeof(key));
		if (*at != '=')
			continue;
		at = take(at + 1, ",", value, sizeof(value));
		add(ctx, key, value, 0);
	}
}

void sample_labels_add(const struct profile_function *f, const struct label_keys *keys, label_add *add, void *ctx)
{
	if (f->kind == KIND_PROCESS)
		add_process(f, keys, add, ctx);
	else if (f->kind == KIND_THREAD)
		add_thread(f, keys, add, ctx);
	else if (f->kind == KIND_LABEL)
		add_program(f, add, ctx);
}

u32 sample_labels_program(const struct profile *p)
{
	u64 most = 0;
	u32 best = 0;

	for (u32 i = 1; i < p->nnodes; i++) {
		const struct profile_function *f = &p->functions[p->nodes[i].function];

		if (f->kind == KIND_PROCESS && f->image && p->nodes[i].total > most) {
			most = p->nodes[i].total;
			best = p->nodes[i].function;
		}
	}
	return best;
}
