/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of frames. A Lua function has the name from its definition in the source. An anonymous function, or one in C,
 * has the name that the caller's bytecode gives it, as in debug.traceback.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "hash_text.h"
#include "luajit_envoy.h"
#include "luajit_proto.h"
#include "runtime.h"
#include "runtimes/lua_common/lua_source.h"

#define BUCKETS      4096
#define CACHE_BYTES  (4u << 20)
#define TEXT_WHOLE   48
#define TEXT_CUT     45
#define LINE_BUILTIN 0xffffffffu /* firstline of library functions that are written in Lua */

struct luajit_names {
	const struct luajit_image *image;
	struct lua_sources *sources;
	struct luajit_envoy *envoy;
	u32 bytes;
	struct luajit_proto *bucket[BUCKETS];
};

struct luajit_names *luajit_names_create(const struct luajit_image *image)
{
	struct luajit_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->image = image;
	names->sources = lua_sources_create();
	names->envoy = luajit_envoy_create();
	if (names->sources && names->envoy)
		return names;
	luajit_names_destroy(names);
	return NULL;
}

static void forget_all(struct luajit_names *names)
{
	for (u32 i = 0; i < BUCKETS; i++) {
		while (names->bucket[i]) {
			struct luajit_proto *pt = names->bucket[i];

			names->bucket[i] = pt->next;
			luajit_proto_free(pt);
		}
	}
	names->bytes = 0;
}

void luajit_names_destroy(struct luajit_names *names)
{
	if (!names)
		return;
	forget_all(names);
	lua_sources_destroy(names->sources);
	luajit_envoy_destroy(names->envoy);
	free(names);
}

static struct luajit_proto **bucket_of(struct luajit_names *names, u64 addr)
{
	return &names->bucket[(addr >> 4) * 0x9e3779b97f4a7c15ull >> 52 & (BUCKETS - 1)];
}

static struct luajit_proto *find(struct luajit_names *names, u64 addr)
{
	struct luajit_proto *pt = *bucket_of(names, addr);

	while (pt && pt->addr != addr)
		pt = pt->next;
	return pt;
}

static void forget(struct luajit_names *names, struct luajit_proto *old)
{
	struct luajit_proto **at = bucket_of(names, old->addr);

	while (*at != old)
		at = &(*at)->next;
	*at = old->next;
	names->bytes -= old->size + sizeof(*old);
	luajit_proto_free(old);
}

static struct luajit_proto *read_into(struct luajit_names *names, struct memory *mem, u64 addr)
{
	struct luajit_proto *pt = luajit_proto_read(names->image->layout, mem, addr), **bucket = bucket_of(names, addr);

	if (!pt)
		return NULL;
	if (names->bytes > CACHE_BYTES)
		forget_all(names);
	names->bytes += pt->size + sizeof(*pt);
	pt->next = *bucket;
	*bucket = pt;
	return pt;
}

/* Is this what stood there when the frame was walked? */
static bool agrees(const struct luajit_proto *pt, const struct frame *f)
{
	u32 pos = luajit_pos(f), cookie = (u32)(f->detail >> LUAJIT_COOKIE_BITS);

	if (pos == LUAJIT_NO_POS)
		pos = 0;
	return pos < pt->sizebc && luajit_cookie(LUAJIT_OP_PATCHED, luajit_proto_instruction(pt, pos)) == cookie;
}

/* The prototype of a Lua function's frame. What is cached may have been freed since, and another read in its place. */
static struct luajit_proto *proto_of(struct luajit_names *names, struct memory *mem, const struct frame *f)
{
	u64 addr = frame_addr(f);
	struct luajit_proto *pt = find(names, addr);

	if (pt && agrees(pt, f))
		return pt;
	if (pt)
		forget(names, pt);
	pt = read_into(names, mem, addr);
	return pt && agrees(pt, f) ? pt : NULL;
}

static bool is_work(const struct frame *f)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_LUAJIT &&
	       luajit_function(f) == LUAJIT_FAST && frame_addr(f) >= LUAJIT_WORK;
}

static bool is_lua(const struct frame *f)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_LUAJIT && luajit_function(f) == LUAJIT_LUA;
}

/*
 * The name by which the next frame down calls this one. Where the VM stands between (its native frames, its work), it
 * runs a metamethod that the instruction below has set off: __gc.
 */
static void name_by_caller(
        struct luajit_names *names, struct memory *mem, const struct frame *frames, u32 i, u32 n, char *ret)
{
	const struct luajit_proto *pt;
	char name[LUAJIT_NAME_MAX];
	u32 caller = i + 1;

	while (caller < n && (frame_kind(&frames[caller]) == FRAME_NATIVE || is_work(&frames[caller])))
		caller++;
	if (caller >= n || !is_lua(&frames[caller]) || luajit_pos(&frames[caller]) == LUAJIT_NO_POS)
		return;
	pt = proto_of(names, mem, &frames[caller]);
	if (!pt || !luajit_proto_callee(pt, mem, luajit_pos(&frames[caller]), name))
		return;
	if (caller == i + 1 || !strcmp(name, "__gc"))
		memcpy(ret, name, sizeof(name));
}

/* Is it a line as many scripts have it: an empty one of a comment, or one of a licence? */
static bool says_nothing(const char *line, size_t n)
{
	static const char *const words[] = {"SPDX-", "Copyright", "License"};

	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (memmem(line, n, words[i], strlen(words[i])))
			return true;
	return strspn(line, "-[] \t\r") == n;
}

/* Behind the comments at the beginning that say nothing; the beginning if there is nothing else. */
static const char *skip_licence(const char *text)
{
	const char *line = text + strspn(text, " \t\r\n"), *first = line;
	bool in_long = false;

	for (size_t n = strcspn(line, "\n"); line[n]; n = strcspn(line, "\n")) {
		const char *end;

		in_long |= !strncmp(line, "--[[", 4);
		end = in_long ? memmem(line, n, "]]", 2) : NULL;
		if ((!in_long && strncmp(line, "--", 2)) || !says_nothing(line, n))
			return line;
		if (end && (size_t)(end - line) + 2 + strspn(end + 2, " \t\r") < n)
			return line;
		in_long &= !end;
		line += n + 1;
		line += strspn(line, " \t\r\n");
	}
	return *line ? line : first;
}

/*
 * Of a chunk that was given as text, whom it belongs to ("string": unknown) and its first line that says something: cut
 * as lj_debug_shortname does it, to which LUA_IDSIZE is 60.
 */
static void name_text(const char *owner, const char *text, char *ret)
{
	size_t len = 0;

	text = skip_licence(text);
	while (len < TEXT_WHOLE && (u8)text[len] >= ' ')
		len++;
	if (!text[len])
		snprintf(ret, NAME_MAX_BYTES, "[%s \"%.*s\"]", owner, TEXT_WHOLE, text);
	else
		snprintf(ret, NAME_MAX_BYTES, "[%s \"%.*s...\"]", owner, (int)(len < TEXT_CUT ? len : TEXT_CUT), text);
}

static void name_source(const struct luajit_proto *pt, char *ret)
{
	if (luajit_proto_first_line(pt) == LINE_BUILTIN)
		snprintf(ret, NAME_MAX_BYTES, "[builtin:%.*s]", TEXT_WHOLE, pt->chunk);
	else if (pt->chunk[0] == '@' || pt->chunk[0] == '=')
		snprintf(ret, NAME_MAX_BYTES, "%s", pt->chunk + 1);
	else
		name_text(pt->owner ? pt->owner : "string", pt->chunk, ret);
}

/* What the source calls it; "" if it gives no name. Code that was loaded from a string has its source for a chunk
 * name. */
static void find_definition(struct luajit_names *names, const struct runtime_process *p, struct luajit_proto *pt)
{
	struct lua_definition d = {.path = pt->chunk + 1, .line = luajit_proto_first_line(pt)};
	char name[LUAJIT_NAME_MAX] = "";
	const char *owner;
	size_t len;

	d.last = d.line + luajit_proto_line_count(pt);
	d.parameters = luajit_proto_parameters(pt, &d.vararg);
	pt->text = hash_add_text(0, pt->chunk);
	if (pt->chunk[0] == '@' && d.line && d.line != LINE_BUILTIN) {
		lua_source_name(names->sources, p->pid, &d, name, sizeof(name));
	} else if (pt->chunk[0] != '=' && d.line != LINE_BUILTIN) {
		cleanup(free) char *text = luajit_proto_text(pt, p->memory, &len);

		if (text) {
			pt->text = hash_add_text(0, text);
			lua_source_parse(text, len, &d, name, sizeof(name));
			owner = luajit_envoy_name(names->envoy, names->sources, p, text);
			pt->owner = owner ? strdup(owner) : NULL;
		}
	}
	pt->definition = strdup(name);
}

static const char *definition_of(struct luajit_names *names, const struct runtime_process *p, struct luajit_proto *pt)
{
	if (!pt->definition)
		find_definition(names, p, pt);
	return pt->definition ? pt->definition : "";
}

/*
 * Where it is defined, not where it lies: VMs that have loaded the same script, as those of Envoy's workers, have the
 * same functions. Names that callers give are those of their stacks: frames of one function may have different ones.
 */
static u64 identity_of(const struct luajit_proto *pt, const char *name)
{
	u64 hash = pt->text * 0x9e3779b97f4a7c15ull + pt->sizebc;

	if (!luajit_proto_first_line(pt)) /* a whole chunk, or the lines were stripped */
		hash ^= pt->addr;
	hash ^= ((u64)luajit_proto_first_line(pt) << 32 | luajit_proto_line_count(pt)) * 0xc2b2ae3d27d4eb4full;
	return hash_add_text(hash, name);
}

static bool name_lua(struct luajit_names *names, const struct runtime_process *p, const struct frame *frames, u32 i,
        u32 n, struct frame_name *ret)
{
	struct luajit_proto *pt;
	const char *definition;
	u32 first;

	name_by_caller(names, p->memory, frames, i, n, ret->name);
	pt = proto_of(names, p->memory, &frames[i]);
	if (!pt)
		return false;
	first = luajit_proto_first_line(pt);
	definition = definition_of(names, p, pt);
	name_source(pt, ret->file);
	if (definition[0])
		snprintf(ret->name, sizeof(ret->name), "%s", definition);
	if (first == LINE_BUILTIN) {
		if (!ret->name[0])
			snprintf(ret->name, sizeof(ret->name), "%s", pt->chunk);
	} else {
		ret->definition = first;
		if (luajit_pos(&frames[i]) != LUAJIT_NO_POS)
			ret->line = luajit_proto_line(pt, luajit_pos(&frames[i]));
		if (!first && luajit_proto_line_count(pt))
			strcpy(ret->name, "main chunk");
	}
	ret->identity = identity_of(pt, ret->name);
	ret->form = frames[i].detail & LUAJIT_JIT ? FORM_JIT : FORM_INTERPRETED;
	return true;
}

/* The VM's own work has no function of Lua. */
static const char *work_name(u64 state)
{
	static const char *const names[] = {[LUAJIT_VMST_GC] = "(gc)",
	        [LUAJIT_VMST_EXIT] = "(trace exit)",
	        [LUAJIT_VMST_RECORD] = "(trace compile)",
	        [LUAJIT_VMST_OPT] = "(trace compile)",
	        [LUAJIT_VMST_ASM] = "(trace compile)"};

	return state < LUAJIT_VMST_MAX && names[state] ? names[state] : "";
}

static void name_builtin(const struct luajit_image *image, u64 number, struct frame_name *ret)
{
	const char *name = number < image->builtins.n ? image->builtins.names[number] : NULL;

	if (number >= LUAJIT_WORK)
		name = work_name(number - LUAJIT_WORK);
	if (name && name[0])
		snprintf(ret->name, sizeof(ret->name), "%s", name);
	else
		snprintf(ret->name, sizeof(ret->name), "builtin#%lu", number);
	ret->identity = number;
	ret->form = number < LUAJIT_WORK ? FORM_NATIVE : FORM_INTERPRETED;
}

/* A trace by its number and the line where it starts: the frame of luajit_expand.c, whose cookie is the position. */
static bool name_trace(
        struct luajit_names *names, const struct runtime_process *p, const struct frame *f, struct frame_name *ret)
{
	struct luajit_proto *pt;
	u32 pos = (u32)(f->detail >> LUAJIT_COOKIE_BITS);

	if (!(frame_flags(f) & FRAME_INLINED)) /* it could not be expanded */
		return false;
	pt = find(names, frame_addr(f));
	if (!pt)
		pt = read_into(names, p->memory, frame_addr(f));
	snprintf(ret->name, sizeof(ret->name), "T:%u", luajit_pos(f));
	if (pt) {
		definition_of(names, p, pt);
		name_source(pt, ret->file);
		ret->definition = luajit_proto_line(pt, pos);
	}
	ret->identity = luajit_pos(f) ^ frame_addr(f) << 16;
	ret->form = FORM_JIT;
	return true;
}

bool luajit_name_frame(struct luajit_names *names, const struct runtime_process *p, const struct frame *frames, u32 i,
        u32 n, struct frame_name *ret)
{
	memset(ret, 0, sizeof(*ret));
	switch (luajit_function(&frames[i])) {
	case LUAJIT_LUA:
		return name_lua(names, p, frames, i, n, ret);
	case LUAJIT_FAST:
		name_builtin(names->image, frame_addr(&frames[i]), ret);
		return true;
	case LUAJIT_C:
		name_by_caller(names, p->memory, frames, i, n, ret->name);
		ret->native_address = frame_addr(&frames[i]);
		ret->identity = hash_add_text(ret->native_address, ret->name);
		ret->form = FORM_NATIVE;
		return true;
	case LUAJIT_MCODE:
		return name_trace(names, p, &frames[i], ret);
	}
	return false;
}
