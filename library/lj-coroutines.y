// SPDX-License-Identifier: Apache-2.0
// LuaJIT 2.1: coroutines by state and by the function that they run, with the bytes of their stacks
//
// Works without debug information. Takes the process's first VM; -D 'STATE=_luajit(1)' its second one. States are those
// of coroutine.status(), but that what is not suspended or dead is "active". Reads each object's head, and the stacks'
// first words. A coroutine that piles up suspended is one that nobody resumes and somebody keeps.

#ifndef STATE
#define STATE _luajit
#endif

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

_agg bytes[_str, _str, int];

/* What stands first on its stack: the function that coroutine.create() was given, until it returns. */
#define BASE(th)     ((TValue *)PTR((th)->stack) + FIRST)
#define RETURNED(th) (!(th)->status && (th)->base <= BASE(th) && (th)->top == (th)->base)

_str state_of(lua_State *th)
{
	if (th->status > 1 || RETURNED(th))
		return "dead";
	return th->status || th->base <= BASE(th) ? "suspended" : "active";
}

/* NULL: none of Lua's. */
GCproto *body_of(lua_State *th)
{
	if (RETURNED(th) || !IS_FUNC(*BASE(th)) || FUNC(*BASE(th))->c.ffid)
		return NULL;
	return (GCproto *)(PTR(FUNC(*BASE(th))->l.pc) - sizeof(GCproto));
}

_probe _oneshot {
	global_State *g = (global_State *)PTR(STATE->glref);
	GCobj *main = (GCobj *)STATE;

	for (GCobj *o = REF(g->gc.root); o; o = REF(o->gch.nextgc)) {
		GCproto *p;

		if (o->gch.gct != 6 || o == main)
			continue;
		p = body_of(&o->th);
		bytes[state_of(&o->th),
		      p                 ? _str((char *)REF(p->chunkname) + sizeof(GCstr))
		      : RETURNED(&o->th) ? "returned"
		                        : "a function of C",
		      p ? p->firstline : 0] <<< (long)(o->th.stacksize * sizeof(TValue));
	}
	printf("%8s %12s  %-10s %s\n", "COUNT", "STACK BYTES", "STATE", "FUNCTION");
	_foreach (state, chunk, line : total _in bytes, _top 40) {
		printf("%8ld %12ld  %-10s %s", _count(bytes[state, chunk, line]), total, state, chunk);
		if (line)
			printf(":%ld", line);
		printf("\n");
	}
}
