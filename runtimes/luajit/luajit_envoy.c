/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_envoy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "cleanup.h"
#include "now.h"
#include "binary/resident.h"
#include "runtimes/lua_common/lua_source.h"

#define SCRIPTS    1024
#define NAMES      (3 * LUAJIT_ENVOY_NAME)
#define PIECE      (1u << 20)
#define BUDGET     (256u << 20)
#define BEFORE     (64u << 10) /* of a configuration's URL: what is around it */
#define BEHIND     (16u << 10)
#define TIME_SHARE 20
#define TIME_AHEAD 500000000ull /* ns */

static const char url[] = LUAJIT_ENVOY_URL;

struct script {
	u64 text; /* hash */
	char name[NAMES];
};

struct luajit_envoy {
	struct script script[SCRIPTS];
	u32 n;
	u64 start, spent; /* ns: when it was created; CPU time of all searches */
};

struct search {
	struct luajit_envoy *envoy;
	struct lua_sources *sources;
	const struct runtime_process *process;
	const struct mapping *mapping;
	u8 *piece, *around;
};

struct luajit_envoy *luajit_envoy_create(void)
{
	struct luajit_envoy *envoy = calloc(1, sizeof(*envoy));

	if (envoy)
		envoy->start = now_ns();
	return envoy;
}

void luajit_envoy_destroy(struct luajit_envoy *envoy)
{
	free(envoy);
}

/* Lua gets it as a C string. */
static u64 hash_script(const u8 *text, size_t len)
{
	return XXH3_64bits(text, strnlen((const char *)text, len));
}

static struct script *find(struct luajit_envoy *envoy, u64 text)
{
	for (u32 i = 0; i < envoy->n; i++)
		if (envoy->script[i].text == text)
			return &envoy->script[i];
	return NULL;
}

/* Another filter that has the same script. */
static void add_name(struct script *s, const char *name)
{
	size_t len = strlen(s->name), n = strlen(name);

	if (strstr(s->name, name))
		return;
	if (len + n + sizeof(", , ...") < sizeof(s->name))
		sprintf(s->name + len, ", %s", name);
	else if (len < 3 || strcmp(s->name + len - 3, "..."))
		sprintf(s->name + len, ", ...");
}

static void add_script(void *ctx, const struct luajit_envoy_script *script)
{
	struct search *s = ctx;
	char name[NAMES], path[4096];
	const u8 *text = script->text;
	size_t len = script->len;
	struct script *known;
	u64 hash;

	if (script->is_file) {
		snprintf(path, sizeof(path), "%.*s", (int)(len < sizeof(path) ? len : sizeof(path)), text);
		text = (const u8 *)lua_source_text(s->sources, s->process->pid, path, &len);
		if (!text)
			return;
	}
	hash = hash_script(text, len);
	known = find(s->envoy, hash);
	snprintf(name, sizeof(name), "%s%s", script->filter, script->part);
	if (known) {
		add_name(known, name);
	} else if (s->envoy->n < SCRIPTS) {
		known = &s->envoy->script[s->envoy->n++];
		known->text = hash;
		strcpy(known->name, name);
	}
}

/* Reads what is around the URL at an address, too: a piece may begin or end within. */
static void look_at(struct search *s, u64 address)
{
	u64 start = address - s->mapping->start > BEFORE ? address - BEFORE : s->mapping->start;
	u64 end = s->mapping->end - address > BEHIND ? address + BEHIND : s->mapping->end;
	size_t size;

	if (!memory_read(s->process->memory, s->around, end - start, start))
		return;
	size = luajit_envoy_size(s->around, end - start, address - start);
	if (size > end - address && size <= s->mapping->end - address && size <= PIECE) {
		end = address + size;
		if (!memory_read(s->process->memory, s->around, end - start, start))
			return;
	}
	luajit_envoy_parse(s->around, end - start, address - start, add_script, s);
}

static void search_piece(struct search *s, u64 start, u64 size)
{
	const u8 *at = s->piece, *end = s->piece + size;

	if (!memory_read(s->process->memory, s->piece, size, start))
		return;
	for (; (at = memmem(at, end - at, url, sizeof(url) - 1)); at += sizeof(url) - 1)
		if (at - s->piece >= 2 && at[-2] == '\n' && at[-1] >= sizeof(url) - 1) /* it may be serialized */
			look_at(s, start + (at - s->piece));
}

static void search_mapping(struct search *s, struct resident *pages, u64 *budget)
{
	u64 at = s->mapping->start, start, end, overlap;

	while (*budget && resident_next(pages, at, s->mapping->end, PIECE, &start, &end)) {
		overlap = start == at && start > s->mapping->start ? sizeof(url) : 0;
		search_piece(s, start - overlap, end - start + overlap);
		*budget -= end - start < *budget ? end - start : *budget;
		at = end;
	}
}

static void search_all(struct search *s)
{
	cleanup(free) struct resident *pages = malloc(sizeof(*pages));
	cleanup(free) u8 *piece = malloc(PIECE + sizeof(url)), *around = malloc(BEFORE + PIECE + BEHIND);
	const struct runtime_process *p = s->process;
	u64 budget = BUDGET;

	if (!pages || !piece || !around)
		return;
	s->piece = piece;
	s->around = around;
	resident_open(pages, p->pid);
	for (u32 i = 0; i < p->nmappings; i++) {
		s->mapping = &p->mappings[i];
		if (s->mapping->anonymous && (s->mapping->prot & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE))
			search_mapping(s, pages, &budget);
	}
	resident_close(pages);
}

/* A script that is in no configuration must not cost a search each time. */
static bool may_search(const struct luajit_envoy *envoy)
{
	return envoy->spent <= TIME_AHEAD + (now_ns() - envoy->start) / TIME_SHARE;
}

const char *luajit_envoy_name(
        struct luajit_envoy *envoy, struct lua_sources *sources, const struct runtime_process *p, const char *text)
{
	struct search s = {.envoy = envoy, .sources = sources, .process = p};
	const struct script *known;
	u64 hash, start;

	if (!strstr(text, "envoy_on_re")) /* the functions that Envoy calls: envoy_on_request, envoy_on_response */
		return NULL;
	hash = hash_script((const u8 *)text, strlen(text));
	known = find(envoy, hash);
	if (!known && may_search(envoy)) {
		start = thread_cpu_ns();
		search_all(&s);
		envoy->spent += thread_cpu_ns() - start;
		known = find(envoy, hash);
	}
	return known ? known->name : NULL;
}
