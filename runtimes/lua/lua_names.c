/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "hash_text.h"
#include "lua_globals.h"
#include "lua_proto.h"
#include "runtimes/lua_common/lua_source.h"

#define BUCKETS  4096 /* power of two */
#define PROTOS   20000
#define TEXT_MAX (1u << 20)
#define TEXT_CUT 45 /* of a chunk that was given as text: LUA_IDSIZE is 60 */

struct lua_names {
	const struct lua_image *image;
	struct lua_globals *globals;
	struct lua_sources *sources;
	u32 n;
	struct lua_proto *bucket[BUCKETS];
};

struct lua_names *lua_names_create(const struct lua_image *image)
{
	struct lua_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->image = image;
	names->globals = lua_globals_create(image);
	names->sources = lua_sources_create();
	if (names->globals && names->sources)
		return names;
	lua_names_destroy(names);
	return NULL;
}

void lua_names_see(struct lua_names *names, u64 state)
{
	lua_globals_see(names->globals, state);
}

static void forget_all(struct lua_names *names)
{
	for (u32 i = 0; i < BUCKETS; i++)
		while (names->bucket[i]) {
			struct lua_proto *p = names->bucket[i];

			names->bucket[i] = p->next;
			lua_proto_free(p);
		}
	names->n = 0;
}

void lua_names_destroy(struct lua_names *names)
{
	if (!names)
		return;
	forget_all(names);
	lua_globals_destroy(names->globals);
	lua_sources_destroy(names->sources);
	free(names);
}

static u32 cookie_of(const struct frame *f)
{
	return (u32)(f->detail >> LUA_COOKIE_BITS);
}

static u32 pos_of(const struct frame *f)
{
	return (u32)f->detail & LUA_NO_POS;
}

/* The prototype that stood there when the frame was walked; NULL: it is another one by now, or gone. */
static struct lua_proto *proto_of(struct lua_names *names, struct memory *mem, const struct frame *f)
{
	struct lua_proto **bucket = &names->bucket[(frame_addr(f) >> 4) * 0x9e3779b97f4a7c15ull >> 52 & (BUCKETS - 1)],
	                 *p;

	for (p = *bucket; p; p = p->next)
		if (p->addr == frame_addr(f) && p->cookie == cookie_of(f))
			return p;
	p = lua_proto_read(names->image, mem, frame_addr(f));
	if (!p || p->cookie != cookie_of(f)) {
		lua_proto_free(p);
		return NULL;
	}
	if (names->n++ >= PROTOS)
		forget_all(names);
	p->next = *bucket;
	*bucket = p;
	return p;
}

static bool is_lua(const struct frame *f)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_LUA &&
	       !(f->detail & (LUA_C_FUNCTION | LUA_COLLECTS | LUA_STATE));
}

/* The native frames by which Lua calls Lua where each function has a luaV_execute() of its own (5.4.0, 5.4.1). */
static bool is_vm(const struct frame *f)
{
	return frame_kind(f) == FRAME_NATIVE && frame_flags(f) & FRAME_VM;
}

/* The name by which the next frame of Lua calls this one. Other native frames between them run a metamethod, or a C
 * function. */
static void name_by_caller(
        struct lua_names *names, struct memory *mem, const struct frame *frames, u32 i, u32 n, char *ret, size_t size)
{
	const struct lua_proto *p;
	char name[LUA_NAME_MAX];
	u32 caller = i + 1, cookie;

	while (caller < n && is_vm(&frames[caller]))
		caller++;
	if (caller >= n || !is_lua(&frames[caller]) || frames[i].detail & LUA_TAIL_CALLED ||
	        pos_of(&frames[caller]) == LUA_NO_POS)
		return;
	p = proto_of(names, mem, &frames[caller]);
	/* if the caller is gone by now, as with a state that lived for milliseconds, the name may be another's */
	if (p && lua_proto_callee(p, mem, pos_of(&frames[caller]), name) &&
	        lua_proto_cookie(names->image, mem, p->addr, &cookie) && cookie == p->cookie)
		snprintf(ret, size, "%s", name);
}

/* function, cookie: as lua_globals_find() takes them. 5.3 and 5.4 prefer a table's name to the caller's. */
static void name_by_table(struct lua_names *names, struct memory *mem, u64 function, u32 cookie, struct frame_name *ret)
{
	bool preferred = names->image->vm.version == 503 || names->image->vm.version == 504;
	const char *name = ret->name[0] && !preferred ? NULL : lua_globals_find(names->globals, mem, function, cookie);

	if (name)
		snprintf(ret->name, sizeof(ret->name), "%s", name);
}

/* What the source calls it: a file, or the chunk's own text. */
static void find_definition(struct lua_names *names, const struct runtime_process *process, struct lua_proto *p)
{
	const struct lua_definition d = {.path = p->source + 1,
	        .line = p->linedefined,
	        .last = p->lastlinedefined,
	        .parameters = p->parameters,
	        .vararg = p->vararg};
	char name[LUA_NAME_MAX] = "";

	if (p->source[0] == '@') {
		lua_source_name(names->sources, process->pid, &d, name, sizeof(name));
	} else if (p->source[0] != '=') {
		cleanup(free) char *text = malloc(TEXT_MAX);

		if (text && lua_string_read(p->version, process->memory, p->text, text, TEXT_MAX))
			lua_source_parse(text, strlen(text), &d, name, sizeof(name));
	}
	p->definition = strdup(name);
}

/* A function that neither a caller nor a table names. */
static void name_by_source(
        struct lua_names *names, const struct runtime_process *process, struct lua_proto *p, struct frame_name *ret)
{
	if (!p->definition)
		find_definition(names, process, p);
	if (p->definition)
		snprintf(ret->name, sizeof(ret->name), "%s", p->definition);
}

/* As luaO_chunkid() shows a chunk: '@' is a file, '=' a name, all else the text itself, of which the first line. */
static void name_source(const char *source, char *ret, size_t size)
{
	size_t len = strcspn(source, "\n");

	if (*source == '@' || *source == '=')
		snprintf(ret, size, "%s", source + 1);
	else if (!source[len] && len <= TEXT_CUT)
		snprintf(ret, size, "[string \"%.*s\"]", TEXT_CUT, source);
	else
		snprintf(ret, size, "[string \"%.*s...\"]", (int)(len < TEXT_CUT ? len : TEXT_CUT), source);
}

/* The name of the call site is the stack's own: a function that has two names is two boxes. */
static u64 identity_of(const struct lua_proto *p, const char *name)
{
	u64 hash = p->addr * 0x9e3779b97f4a7c15ull ^
	           ((u64)p->linedefined << 32 | p->lastlinedefined) * 0xc2b2ae3d27d4eb4full;

	return hash_add_text(hash_add_text(hash, p->source), name);
}

static void mark_tail_call(struct frame_name *ret)
{
	size_t len = strlen(ret->name);

	snprintf(ret->name + len, sizeof(ret->name) - len, "%s, tail called", len ? "" : "function");
}

static bool is_outermost(const struct frame *frames, u32 i, u32 n)
{
	for (i++; i < n; i++)
		if (is_lua(&frames[i]))
			return false;
	return true;
}

static bool name_lua(struct lua_names *names, const struct runtime_process *process, const struct frame *frames, u32 i,
        u32 n, struct frame_name *ret)
{
	struct memory *mem = process->memory;
	struct lua_proto *p;
	const char *chunk;
	u32 pos = pos_of(&frames[i]);

	name_by_caller(names, mem, frames, i, n, ret->name, sizeof(ret->name));
	p = proto_of(names, mem, &frames[i]);
	if (!p)
		return false;
	if (!p->linedefined)
		ret->name[0] = '\0';
	name_by_table(names, mem, p->addr, p->cookie, ret);
	if (!ret->name[0] && !(frames[i].detail & LUA_TAIL_CALLED) && is_outermost(frames, i, n) &&
	        (!strcmp(p->source, "@user_function") || !strcmp(p->source, "@user_script")))
		lua_globals_script(names->globals, mem, p->addr, p->cookie, ret->name, sizeof(ret->name));
	if (!ret->name[0] && p->linedefined)
		name_by_source(names, process, p, ret);
	chunk = strpbrk(p->source, "/.")
	                ? NULL
	                : lua_globals_chunk(names->globals, mem, p->addr, p->cookie); /* not of a file */
	if (chunk)
		snprintf(ret->file, sizeof(ret->file), "%s", chunk);
	else
		name_source(p->source, ret->file, sizeof(ret->file));
	ret->definition = p->linedefined;
	if (p->lines && pos < p->sizecode)
		ret->line = (u32)p->lines[pos];
	if (!p->linedefined && !ret->name[0])
		snprintf(ret->name, sizeof(ret->name), "main chunk");
	else if (frames[i].detail & LUA_TAIL_CALLED)
		mark_tail_call(ret);
	ret->identity = identity_of(p, ret->name);
	return true;
}

bool lua_name_frame(struct lua_names *names, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n,
        struct frame_name *ret)
{
	if (is_lua(&frames[i]))
		return name_lua(names, p, frames, i, n, ret);
	if (frames[i].detail & LUA_STATE) { /* of a stack that was not expanded */
		strcpy(ret->name, "(state)");
		ret->identity = LUA_STATE;
		ret->entry = true;
		return true;
	}
	if (frames[i].detail & LUA_COLLECTS) {
		strcpy(ret->name, "(gc)");
		ret->identity = LUA_COLLECTS;
		return true;
	}
	name_by_caller(names, p->memory, frames, i, n, ret->name, sizeof(ret->name));
	if (names->image->vm.version >= 503) /* before, a name of luaL_Reg says as much */
		name_by_table(names, p->memory, frame_addr(&frames[i]), 0, ret);
	ret->native_address = frame_addr(&frames[i]);
	/* one function in C may be known by several names: each is one box */
	ret->identity = hash_add_text(ret->native_address, ret->name);
	ret->form = FORM_NATIVE;
	return true;
}
