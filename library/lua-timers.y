// SPDX-License-Identifier: Apache-2.0
// OpenResty: timers (ngx.timer) that are pending or run, and ngx.sleep, by the Lua function: how many, when due
//
// Works without debug information: nginx 1.14 to 1.29 with its module for Lua 0.10.7 and later, of a VM's first
// lua_State; not with lua_code_cache off, where each request has a VM of its own. Reads the tree of nginx's timers, a
// page or so each, and the connections' array. The first line has ngx.timer.pending_count() and running_count(). A
// function is written as chunk:line where it begins. Of what sleeps, it is the one that the coroutine began with.

#ifndef STATE
#define STATE _luajit
#endif

##ifndefvar ngx_http_lua_module
#error "this is no nginx with its module for Lua, or one that exports no names"
##endif

##ifdeffield GCRef gcptr64
#define REF(r)     ((GCobj *)(r).gcptr64)
#define PTR(r)     ((r).ptr64)
#define FIRST      2 /* where a stack begins: behind its thread and a link */
#define IS_FUNC(v) ((v).it64 >> 47 == -9)
#define FUNC(v)    ((GCfunc *)((v).gcr.gcptr64 & 0x7fffffffffffUL))
##else
#define REF(r)     ((GCobj *)(unsigned long)(r).gcptr32)
#define PTR(r)     ((unsigned long)(r).ptr32)
#define FIRST      1
#define IS_FUNC(v) ((int)(v).it == -9)
#define FUNC(v)    ((GCfunc *)(unsigned long)(v).gcr.gcptr32)
##endif
#define BASE(th)   ((TValue *)PTR((th)->stack) + FIRST)

/* What nginx and its module have in all those versions: src/core, src/event, ngx_http_lua_common.h. */
struct timer_module { unsigned long ctx_index, index; const char *name; unsigned long spares[2], version; };
struct timer_node { unsigned long key; struct timer_node *left, *right, *parent; unsigned long color; };
struct timer_event { void *data; long flags; void *handler; long index, log; struct timer_node timer; long queue[2]; };
struct timer_connection { void *data; struct timer_event *read, *write; int fd; };
struct timer_request { unsigned signature; struct timer_connection *connection; void **ctx; };
/* ngx_http_lua_timer_ctx_t, which follows its event */
struct timer_context {
	long conf[3];
	lua_State *co;
	void *pool, *listening;
	long address[2], lmcf, vm;
	int ref;
	unsigned delay : 31;
};

#define CYCLE        (*(long ***)&ngx_cycle)
#define MODULE(m)    ((struct timer_module *)&m)
#define VERSION(c)   (((struct timer_module *)(c)[17][0])->version)
#define BEHIND(c)    ((long *)(c) + (VERSION(c) < 1019006 ? 60 : 61)) /* connection_n, which follows the zones */
#define SIGNATURE    0x50545448 /* "HTTP" */
#define NO_THREAD    ((lua_State *)0)

_agg due[_str, _str, int, long];
long now_ms;

long now(void)
{
	long own = *(long *)&ngx_current_msec, ms = _ns / 1000000;

	/* its own clock stands while it waits; of a core, or of versions with a clock of the day, it is the only one */
	return ms >= own && ms - own < 86400000 ? ms : own;
}

/* NULL: it is none of this VM. */
lua_State *thread_at(void *address)
{
	lua_State *th = *(lua_State **)address ?? NO_THREAD;

	return th && (((GCobj *)th)->gch.gct ?? 0) == 6 && PTR(th->glref) == PTR(STATE->glref) ? th : NO_THREAD;
}

void add(_str what, lua_State *th, long every, long in_ms)
{
	GCproto *p;

	if (!IS_FUNC(*BASE(th)) || FUNC(*BASE(th))->c.ffid) {
		due[what, "a function of C", 0, every] <<< in_ms;
		return;
	}
	p = (GCproto *)(PTR(FUNC(*BASE(th))->l.pc) - sizeof(GCproto));
	due[what, _str((char *)REF(p->chunkname) + sizeof(GCstr)), p->firstline, every] <<< in_ms;
}

void look(struct timer_event *e)
{
	long in_ms = (long)e->timer.key - now_ms;
	lua_State *th;

	if ((char *)e->data == (char *)(e + 1)) {
		struct timer_context *t = e->data;

		th = thread_at(&t->co);
		if (th) {
			add("pending", th, t->delay, in_ms);
		}
		return;
	}
	/* ngx.sleep: the event is part of what its data, a coroutine's context, leads to; co is its second word */
	if ((char *)e > (char *)e->data && (char *)e - (char *)e->data < 512) {
		th = thread_at((long *)e->data + 1);
		if (th)
			add("sleeping", th, 0, in_ms);
	}
}

void visit(struct timer_node *node, struct timer_node *end)
{
	if (node == end)
		return;
	visit(node->left, end);
	look(_container_of(node, struct timer_event, timer));
	visit(node->right, end);
}

/* A timer that runs has a connection and a request of its own, without a socket. */
void running(struct timer_connection *c)
{
	struct timer_request *r = c->data;
	long *ctx;

	if (c->fd != -1 || !r || (r->signature ?? 0) != SIGNATURE || r->connection != c)
		return;
	ctx = r->ctx[MODULE(ngx_http_lua_module)->ctx_index];
	for (int i = 3; ctx && i < 12; i++) {
		lua_State *th = thread_at(ctx + i);

		if (th) {
			add("running", th, 0, 0);
			return;
		}
	}
}

void each_connection(void)
{
	long *behind = BEHIND(CYCLE);
	char *connections = (char *)behind[2];
	struct timer_event *events = (struct timer_event *)behind[3];
	int size = 64;

	/* whose size depends on how nginx was built: the second one has the second event */
	while (size < 1024 && *(struct timer_event **)(connections + size + 8) != events + 1)
		size += 8;
	for (long i = 0; i < behind[0]; i++)
		running((struct timer_connection *)(connections + i * size));
}

void print_counts(void)
{
	long ***contexts = (long ***)CYCLE[0][MODULE(ngx_http_module)->index];
	long *lmcf = contexts[0][MODULE(ngx_http_lua_module)->ctx_index];

	/* behind the cycle: pool, the most that may be pending, those that are, the most that may run, those that do */
	for (int i = 1; i < 16; i++)
		if (lmcf[i] == (long)CYCLE) {
			printf("%ld pending of at most %ld, %ld running of at most %ld\n", lmcf[i + 3], lmcf[i + 2], lmcf[i + 5],
			       lmcf[i + 4]);
			return;
		}
}

_probe _oneshot {
	struct timer_node **tree = (struct timer_node **)&ngx_event_timer_rbtree;

	now_ms = now();
	print_counts();
	visit(tree[0], tree[1]);
	each_connection();
	printf("%8s %12s %12s %10s  %-9s %s\n", "COUNT", "FIRST IN ms", "LAST IN ms", "EVERY ms", "STATE", "FUNCTION");
	_foreach (state, chunk, line, every : total _in due) {
		printf("%8ld %12ld %12ld ", _count(due[state, chunk, line, every]), _min(due[state, chunk, line, every]),
		       _max(due[state, chunk, line, every]));
		if (every)
			printf("%10ld", every);
		else
			printf("%10s", "");
		printf("  %-9s %s", state, chunk);
		if (line)
			printf(":%d", line);
		printf("\n");
	}
}
