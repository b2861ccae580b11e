// SPDX-License-Identifier: Apache-2.0
// LuaJIT 2.1: objects of the collector by type, and their bytes
//
// Works without debug information, by what yrt knows of LuaJIT's builds. Takes the process's first VM; -D
// 'STATE=_luajit(1)' its second one. Reads each object's head, some 30 bytes. What the buffers, the compiler and cdata
// take is "other".

#ifndef STATE
#define STATE _luajit
#endif

##ifdeffield GCRef gcptr64
#define REF(r) ((GCobj *)(r).gcptr64)
#define PTR(r) ((r).ptr64)
##else
#define REF(r) ((GCobj *)(unsigned long)(r).gcptr32)
#define PTR(r) ((unsigned long)(r).ptr32)
##endif

##ifdeffield global_State strmask
#define STRINGS(g) ((g)->strhash)
#define MASK(g) ((g)->strmask)
##else
#define STRINGS(g) ((g)->str.tab)
#define MASK(g) ((g)->str.mask)
##endif

_agg bytes[_str];

/* As lj_obj.h numbers what the collector has, from the string on. */
_str type_of(int number)
{
	switch (number) {
	case 5: return "upvalue";
	case 6: return "thread";
	case 7: return "prototype";
	case 8: return "function";
	case 9: return "trace";
	case 10: return "cdata";
	case 11: return "table";
	case 12: return "userdata";
	}
	return "unknown";
}

long table_size(GCtab *t)
{
	long size = sizeof(GCtab) + (t->colo & 0x7f) * sizeof(TValue);

	if (t->colo <= 0 && t->asize)
		size += t->asize * sizeof(TValue);
	return t->hmask ? size + (t->hmask + 1L) * sizeof(Node) : size;
}

long size_of(GCobj *o)
{
	switch (o->gch.gct) {
	case 5: return sizeof(GCupval);
	case 6: return sizeof(lua_State) + o->th.stacksize * sizeof(TValue);
	case 7: return o->pt.sizept;
	case 8:
		if (o->fn.c.ffid)
			return sizeof(GCfuncC) + (o->fn.c.nupvalues - 1L) * sizeof(TValue);
		return sizeof(GCfuncL) + (o->fn.l.nupvalues - 1L) * sizeof(GCRef);
	case 11: return table_size(&o->tab);
	case 12: return sizeof(GCudata) + o->ud.len;
	}
	return 0;
}

_probe _oneshot {
	global_State *g = (global_State *)PTR(STATE->glref);
	long sum = 0;

	for (GCobj *o = REF(g->gc.root); o; o = REF(o->gch.nextgc))
		bytes[type_of(o->gch.gct)] <<< size_of(o);
	for (unsigned i = 0; i <= MASK(g); i++) {
		/* the lowest bit of a chain is a mark */
		for (GCobj *o = (GCobj *)((unsigned long)REF(STRINGS(g)[i]) & ~1UL); o; o = REF(o->gch.nextgc))
			bytes["string"] <<< (long)(sizeof(GCstr) + ((o->str.len + 4) & ~3U));
	}
	printf("%10s %12s  %s\n", "OBJECTS", "BYTES", "TYPE");
	_foreach (type : total _in bytes, _top 20) {
		printf("%10ld %12ld  %s\n", _count(bytes[type]), total, type);
		sum += total;
	}
	printf("%10s %12ld  other\n%10s %12ld  in all, as collectgarbage(\"count\") has it\n", "", (long)g->gc.total - sum, "",
	       (long)g->gc.total);
}
