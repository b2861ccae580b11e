/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_globals.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "binary/memory.h"
#include "cleanup.h"
#include "lua_image.h"
#include "lua_proto.h"
#include "now.h"

/*
 * How Redis and Valkey call the running script or function. While one runs, the field "__RUN_CTX__" of the registry is
 * the address of a struct scriptRunCtx (script.h: Redis 7.0, Valkey 8.1), whose first or second word is the name: that
 * under which a function was registered, or a script's SHA. Lua itself has no name for it except in Redis's registry.
 * The running one is the function that the main lua_State was entered with. Both are read while it runs, and the name
 * counts if neither has changed meanwhile.
 */

#define LUA_SCRIPT_STATES 4
#define LUA_SCRIPTS       256
#define LUA_SCRIPT_NAME   128

struct lua_script {
	struct {
		u64 state, at, key; /* a global_State, the pair of its registry, the pair's key */
	} state[LUA_SCRIPT_STATES];
	u32 n;
	u64 spent_ns;
	struct {
		u64 proto;
		u32 cookie;
		char name[LUA_SCRIPT_NAME];
	} found[LUA_SCRIPTS];
	u32 nfound;
};

#define LOOK_NS        100000000ull  /* at one function */
#define ALL_NS         2000000000ull /* at all of them together */
#define PAUSE_NS       100000
#define LIGHT_USERDATA 2

/* The registry of a global_State has the field. */
static void lua_script_see(struct lua_script *s, u64 state, u64 at, u64 key)
{
	u32 i = 0;

	while (i < s->n && s->state[i].state != state)
		i++;
	if (i == LUA_SCRIPT_STATES)
		return;
	s->n += i == s->n;
	s->state[i].state = state;
	s->state[i].at = at;
	s->state[i].key = key;
}

static bool read_word(struct memory *mem, u64 at, u64 *ret)
{
	return memory_read(mem, ret, sizeof(*ret), at);
}

/* The Proto of the function that the main lua_State was entered with, unless a tail call has replaced it; 0: none. */
static u64 running(const struct lua_image *image, struct memory *mem, u64 state)
{
	const struct lua_layout *l = image->layout;
	u64 thread, ci, base, func, closure, proto;
	u32 tails;

	/* lstate.h of 5.1: mainthread is right behind l_registry */
	if (!read_word(mem, state + l->g_registry.at + 16u, &thread) || !read_word(mem, thread + l->l_ci.at, &ci) ||
	        !read_word(mem, thread + l->l_base_ci.at, &base) || ci <= base)
		return 0;
	ci = base + image->vm.ci_size;
	if (!read_word(mem, ci + image->vm.ci_func, &func) ||
	        !memory_read(mem, &tails, sizeof(tails), ci + image->vm.ci_status) || tails ||
	        !read_word(mem, func, &closure) || !read_word(mem, closure + image->vm.cl_p, &proto))
		return 0;
	return proto;
}

/* Its struct scriptRunCtx; 0: none. */
static u64 context(struct memory *mem, u64 at, u64 key)
{
	u64 pair[3]; /* Node of 5.1: value, its type, key */

	return memory_read(mem, pair, sizeof(pair), at) && (u8)pair[1] == LIGHT_USERDATA && pair[2] == key ? pair[0]
	                                                                                                   : 0;
}

static bool read_name(struct memory *mem, u64 at, char *ret, size_t size)
{
	size_t n = 0;

	if (!memory_string(mem, ret, size, at))
		return false;
	while (isalnum((u8)ret[n]) || ret[n] == '_')
		n++;
	return n && !ret[n];
}

/* Valkey has another pointer in front, to what begins with a pointer, too. */
static bool read_either(struct memory *mem, u64 ctx, char *ret, size_t size)
{
	u64 words[2];

	return memory_read(mem, words, sizeof(words), ctx) &&
	       (read_name(mem, words[0], ret, size) || read_name(mem, words[1], ret, size));
}

static bool look(const struct lua_script *s, u32 i, const struct lua_image *image, struct memory *mem, u64 proto,
        char *ret, size_t size)
{
	u64 ctx = context(mem, s->state[i].at, s->state[i].key);

	return ctx && running(image, mem, s->state[i].state) == proto && read_either(mem, ctx, ret, size) &&
	       running(image, mem, s->state[i].state) == proto && context(mem, s->state[i].at, s->state[i].key) == ctx;
}

/* Has not too much time been spent already? */
static bool lua_script_may_look(const struct lua_script *s)
{
	return s->spent_ns <= ALL_NS;
}

/* The name of what runs with proto as its outermost function. Looks for a few milliseconds whether it does. cookie: of
 * the Proto (lua.h). */
static bool lua_script_find(struct lua_script *s, const struct lua_image *image, struct memory *mem, u64 proto,
        u32 cookie, char *ret, size_t size)
{
	u64 start = now_ns(), now = start;
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	u32 k = 0;
	bool found = false;

	while (k < s->nfound && (s->found[k].proto != proto || s->found[k].cookie != cookie))
		k++;
	if (k == s->nfound && (!s->n || k == LUA_SCRIPTS || image->vm.version != 501 || !lua_script_may_look(s)))
		return false;
	for (; k == s->nfound && !found && now - start < LOOK_NS; now = now_ns()) {
		for (u32 i = 0; i < s->n && !found; i++)
			found = look(s, i, image, mem, proto, s->found[k].name, LUA_SCRIPT_NAME);
		if (!found)
			nanosleep(&pause, NULL); /* it may want this CPU */
	}
	s->spent_ns += now - start;
	if (found) {
		s->found[k].proto = proto;
		s->found[k].cookie = cookie;
		s->nfound++;
	}
	if (k < s->nfound)
		snprintf(ret, size, "%s", s->found[k].name);
	return k < s->nfound;
}

#define STATES        16    /* the last ones that were met */
#define FIELDS        32768 /* of all tables together */
#define UNNAMED       65536 /* that are remembered */
#define BUCKETS       4096  /* power of two */
#define LSIZE_MAX     16    /* of a table: the logarithm of its size */
#define NAME_BYTES    160
#define PART_BYTES    64
#define TABLE         5 /* types of values (lua.h, lobject.h): without the mark of collectable objects */
#define FUNCTION      6
#define LIGHT_C       22
#define C_CLOSURE     38
#define TYPE_BITS     0x3f
#define CLOSURE_BYTES 40 /* all that is used: check_sizes() of lua_image.c */
#define SHARE         20 /* of the time, at most one of so many parts goes into reading */
#define INTERVAL_MIN  100000000ull
#define INNER_DEPTH   8
#define NODE_MAX      40   /* bytes */
#define SCRIPT_TRIES  100  /* to meet a field of the registry */
#define REGISTRY      NULL /* instead of a module's name */

/*
 * What a name belongs to. In a process whose states live for milliseconds, another Proto soon stands at the same
 * address: its cookie tells, which each frame has, too.
 */
struct function {
	u64 addr;   /* of its Proto, or of its code in C */
	u32 cookie; /* lua_cookie(); 0: a function in C */
};

struct named {
	struct named *next;
	struct function function;
	u64 closure;
	bool ambiguous;
	struct function chunk; /* the one in the registry whose source holds it; 0: none */
	char name[NAME_BYTES]; /* "": no table has it */
};

struct lua_globals {
	const struct lua_image *image;
	u64 state[STATES];
	u32 nstates, next_state;
	u64 next_read;       /* not before then */
	u16 lsizenode, node; /* members of a Table */
	u32 left;            /* fields that may still be read */
	u32 unnamed;         /* functions that no table has */
	struct lua_script script;
	struct named *bucket[BUCKETS];
};

/* A pair of a table whose key is a string. */
struct field {
	u64 at; /* of the pair */
	u64 key, value;
	u8 type;
};

struct lua_globals *lua_globals_create(const struct lua_image *image)
{
	struct lua_globals *g = calloc(1, sizeof(*g));

	if (g)
		g->image = image;
	return g;
}

/* Those without a name are kept: they are no reason to read the tables again. */
static void forget(struct lua_globals *g, bool unnamed)
{
	for (u32 i = 0; i < BUCKETS; i++)
		for (struct named **at = &g->bucket[i], *n; (n = *at);) {
			if (n->name[0] || n->chunk.addr || unnamed) {
				*at = n->next;
				free(n);
			} else {
				at = &n->next;
			}
		}
	g->unnamed = unnamed ? 0 : g->unnamed;
}

void lua_globals_destroy(struct lua_globals *g)
{
	if (!g)
		return;
	forget(g, true);
	free(g);
}

void lua_globals_see(struct lua_globals *g, u64 state)
{
	for (u32 i = 0; i < g->nstates; i++)
		if (g->state[i] == state)
			return;
	g->state[g->next_state] = state;
	g->next_state = (g->next_state + 1) % STATES;
	if (g->nstates < STATES)
		g->nstates++;
	g->next_read = 0;
}

static struct named **bucket_of(struct lua_globals *g, struct function f)
{
	return &g->bucket[(f.addr * 0x9e3779b97f4a7c15ull) >> 52 & (BUCKETS - 1)];
}

static struct named *find(struct lua_globals *g, struct function f)
{
	struct named *n = *bucket_of(g, f);

	while (n && (n->function.addr != f.addr || n->function.cookie != f.cookie))
		n = n->next;
	return n;
}

static struct named *find_or_add(struct lua_globals *g, struct function f)
{
	struct named *n = find(g, f), **bucket = bucket_of(g, f);

	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->function = f;
	n->next = *bucket;
	return *bucket = n;
}

static bool read_proto(struct lua_globals *g, struct memory *mem, u64 proto, struct function *ret)
{
	ret->addr = proto;
	return lua_proto_cookie(g->image, mem, proto, &ret->cookie);
}

/* The functions that are written inside of one in Lua. */
static void add_inner(struct lua_globals *g, struct memory *mem, u64 proto, struct function chunk, u32 depth)
{
	const struct lua_layout *l = g->image->layout;
	struct function function;
	u64 inner, list;
	struct named *n;
	u32 count;

	if (!memory_read(mem, &count, sizeof(count), proto + l->p_sizep.at) ||
	        !memory_read(mem, &list, sizeof(list), proto + l->p_p.at))
		return;
	for (u32 i = 0; i < count && g->left; i++) {
		g->left--;
		if (!memory_read(mem, &inner, sizeof(inner), list + (u64)i * sizeof(inner)) ||
		        !read_proto(g, mem, inner, &function))
			return;
		n = find_or_add(g, function);
		if (!n)
			return;
		n->chunk = chunk;
		if (depth)
			add_inner(g, mem, inner, chunk, depth - 1);
	}
}

/* Of several names of one function the shortest counts: the order of a table differs from run to run. */
static bool is_better(const char *name, const char *than)
{
	size_t length = strlen(name), other = strlen(than);

	return length != other ? length < other : strcmp(name, than) < 0;
}

static void add(struct lua_globals *g, struct function function, u64 closure, const char *module, const char *name)
{
	bool whole = module == REGISTRY || !strcmp(module, "_G");
	struct named *n = find_or_add(g, function);
	char text[NAME_BYTES];

	if (!n)
		return;
	snprintf(text, sizeof(text), "%s%s%s", whole ? "" : module, whole ? "" : ".", name);
	if (!n->name[0])
		n->closure = closure;
	n->ambiguous = n->ambiguous || n->closure != closure;
	if (!n->name[0] || (module != REGISTRY && is_better(text, n->name)))
		memcpy(n->name, text, sizeof(text));
}

/* A Node (lobject.h): 40 bytes in 5.1 and 5.2, 32 in 5.3, 24 from 5.4 on. The value is first. */
static bool take_field(u32 version, const u8 *node, struct field *ret)
{
	u8 key = version >= 504 ? node[9] : node[24];

	memcpy(&ret->value, node, sizeof(ret->value));
	memcpy(&ret->key, node + 16, sizeof(ret->key));
	ret->type = node[8] & TYPE_BITS;
	return (key & 0xf) == 4;
}

static u32 node_size(const struct lua_globals *g)
{
	return g->image->vm.version >= 504 ? 24 : g->image->vm.version == 503 ? 32 : 40;
}

/* The fields of a table that have a string as key, in the order of next(). NULL: there are none. */
static struct field *read_fields(struct lua_globals *g, struct memory *mem, u64 table, u32 *n)
{
	u32 version = g->image->vm.version, size = node_size(g), count;
	cleanup(free) u8 *nodes = NULL;
	struct field *ret;
	u64 node;
	u8 lsize;

	*n = 0;
	if (!memory_read(mem, &lsize, sizeof(lsize), table + g->lsizenode) ||
	        !memory_read(mem, &node, sizeof(node), table + g->node) || lsize > LSIZE_MAX)
		return NULL;
	count = 1u << lsize;
	if (count > g->left)
		return NULL;
	g->left -= count;
	nodes = malloc((size_t)count * size);
	ret = malloc(count * sizeof(*ret));
	if (nodes && ret && memory_read(mem, nodes, (size_t)count * size, node))
		for (u32 i = 0; i < count; i++) {
			ret[*n].at = node + (u64)i * size;
			*n += take_field(version, nodes + (size_t)i * size, &ret[*n]);
		}
	return ret;
}

/* Does the pair still hold what it did, and not what another state has put there since? */
static bool is_unchanged(const struct lua_globals *g, struct memory *mem, const struct field *f)
{
	u8 node[NODE_MAX];
	struct field now;

	return memory_read(mem, node, node_size(g), f->at) && take_field(g->image->vm.version, node, &now) &&
	       now.key == f->key && now.value == f->value && now.type == f->type;
}

static void add_function(
        struct lua_globals *g, struct memory *mem, const struct field *f, const char *module, const char *name)
{
	const struct lua_vm *vm = &g->image->vm;
	u8 closure[256 + sizeof(u64)] = {0}; /* has room for any offset */
	struct function function = {f->value, 0};
	bool in_c;

	if (f->type == LIGHT_C) {
		add(g, function, f->value, module, name);
		return;
	}
	if (!memory_read(mem, closure, CLOSURE_BYTES, f->value) || (closure[vm->l_tt] & 15) != FUNCTION)
		return;
	in_c = vm->cl_is_c ? closure[vm->cl_is_c] : f->type == C_CLOSURE;
	memcpy(&function.addr, closure + (in_c ? vm->cl_f : vm->cl_p), sizeof(function.addr));
	if ((!in_c && !read_proto(g, mem, function.addr, &function)) || !is_unchanged(g, mem, f))
		return;
	add(g, function, f->value, module, name);
	if (!in_c && module == REGISTRY)
		add_inner(g, mem, function.addr, function, INNER_DEPTH);
}

static bool is_function(const struct field *f)
{
	return f->type == FUNCTION || f->type == LIGHT_C || f->type == C_CLOSURE;
}

static void add_functions(struct lua_globals *g, struct memory *mem, u64 table, const char *module)
{
	u32 n;
	cleanup(free) struct field *fields = read_fields(g, mem, table, &n);
	char name[PART_BYTES];

	for (u32 i = 0; i < n; i++)
		if (is_function(&fields[i]) &&
		        lua_string_read(g->image->vm.version, mem, fields[i].key, name, sizeof(name)))
			add_function(g, mem, &fields[i], module, name);
}

static void add_modules(struct lua_globals *g, struct memory *mem, u64 loaded)
{
	u32 n;
	cleanup(free) struct field *fields = read_fields(g, mem, loaded, &n);
	char name[PART_BYTES];

	for (u32 i = 0; i < n; i++) {
		if (!lua_string_read(g->image->vm.version, mem, fields[i].key, name, sizeof(name)))
			continue;
		if (is_function(&fields[i]))
			add_function(g, mem, &fields[i], "_G", name);
		else if (fields[i].type == TABLE)
			add_functions(g, mem, fields[i].value, name);
	}
}

/* Up to 5.4 Table.lastfree is behind node, and points into what that points to. */
static bool is_shape(const struct lua_globals *g, struct memory *mem, u64 table, u16 lsizenode, u16 node)
{
	u64 nodes[2];
	u8 lsize;

	return memory_read(mem, &lsize, sizeof(lsize), table + lsizenode) && lsize <= LSIZE_MAX &&
	       memory_read(mem, nodes, sizeof(nodes), table + node) && !(nodes[0] & 7) &&
	       (g->image->vm.version >= 505 || nodes[1] - nodes[0] <= (u64)node_size(g) << lsize);
}

/*
 * What no layout by release knows: Redis and Valkey have added "int readonly" to the Table of their 5.1
 * (deps/lua/src/lobject.h, 7.0), and 5.2.4 has the Table of 5.3.
 */
static bool find_shape(struct lua_globals *g, struct memory *mem, u64 table)
{
	const struct lua_layout *l = g->image->layout;
	struct {
		u16 version, lsizenode, node;
	} shape[] = {{g->image->vm.version, l->t_lsizenode.at, l->t_node.at}, {501, 16, 40}, {502, 11, 24}};

	for (u32 i = 0; i < sizeof(shape) / sizeof(*shape); i++)
		if (shape[i].version == g->image->vm.version &&
		        is_shape(g, mem, table, shape[i].lsizenode, shape[i].node)) {
			g->lsizenode = shape[i].lsizenode;
			g->node = shape[i].node;
			return true;
		}
	return false;
}

static void read_state(struct lua_globals *g, struct memory *mem, u64 state)
{
	u32 n;
	u64 registry;
	cleanup(free) struct field *fields = NULL;
	char name[PART_BYTES];

	if (!memory_read(mem, &registry, sizeof(registry), state + g->image->layout->g_registry.at) ||
	        !find_shape(g, mem, registry))
		return;
	fields = read_fields(g, mem, registry, &n);
	for (u32 i = 0; i < n; i++)
		if (fields[i].type == TABLE &&
		        lua_string_read(g->image->vm.version, mem, fields[i].key, name, sizeof(name)) &&
		        !strcmp(name, "_LOADED"))
			add_modules(g, mem, fields[i].value);
	for (u32 i = 0; i < n; i++) {
		if (!lua_string_read(g->image->vm.version, mem, fields[i].key, name, sizeof(name)))
			continue;
		if (is_function(&fields[i]))
			add_function(g, mem, &fields[i], REGISTRY, name);
		else if (!strcmp(name, "__RUN_CTX__"))
			lua_script_see(&g->script, state, fields[i].at, fields[i].key);
	}
}

static void read_all(struct lua_globals *g, struct memory *mem)
{
	u64 start = now_ns(), end;

	forget(g, g->unnamed >= UNNAMED);
	g->left = FIELDS;
	for (u32 i = 0; i < g->nstates; i++)
		read_state(g, mem, g->state[i]);
	end = now_ns();
	g->next_read = end + (end - start) * SHARE;
	if (g->next_read < end + INTERVAL_MIN)
		g->next_read = end + INTERVAL_MIN;
}

static struct named *look_up(struct lua_globals *g, struct memory *mem, struct function function)
{
	struct named *n = find(g, function);

	if (!n && g->nstates && now_ns() >= g->next_read) {
		read_all(g, mem);
		n = find_or_add(g, function);
		g->unnamed += n && !n->name[0];
	}
	return n;
}

static const char *name_of(const struct named *n)
{
	return n && n->name[0] && !n->ambiguous ? n->name : NULL;
}

const char *lua_globals_find(struct lua_globals *g, struct memory *mem, u64 function, u32 cookie)
{
	return name_of(look_up(g, mem, (struct function){function, cookie}));
}

bool lua_globals_script(struct lua_globals *g, struct memory *mem, u64 proto, u32 cookie, char *ret, size_t size)
{
	/* the field is not there between two scripts */
	for (u32 i = 0; i < SCRIPT_TRIES && g->script.n < g->nstates && lua_script_may_look(&g->script); i++) {
		u64 start = now_ns();

		read_all(g, mem);
		g->script.spent_ns += now_ns() - start;
	}
	return lua_script_find(&g->script, g->image, mem, proto, cookie, ret, size);
}

const char *lua_globals_chunk(struct lua_globals *g, struct memory *mem, u64 proto, u32 cookie)
{
	const struct named *n = look_up(g, mem, (struct function){proto, cookie});

	return n && n->chunk.addr ? name_of(find(g, n->chunk)) : NULL;
}
