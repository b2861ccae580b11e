// SPDX-License-Identifier: Apache-2.0
// LuaJIT 2.1: strings by length, and the longest ones with their beginning
//
// Works without debug information. Takes the process's first VM; -D 'STATE=_luajit(1)' its second one. Reads the head of
// each string, by the table of all of them. Many of nearly the same length that nobody needs are keys of a cache.

#ifndef STATE
#define STATE _luajit
#endif
#ifndef LONGEST
#define LONGEST 10
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

_agg bytes;
_map long length[unsigned long];

_probe _oneshot {
	global_State *g = (global_State *)PTR(STATE->glref);

	for (unsigned i = 0; i <= MASK(g); i++) {
		/* the lowest bit of a chain is a mark */
		for (GCobj *o = (GCobj *)((unsigned long)REF(STRINGS(g)[i]) & ~1UL); o; o = REF(o->gch.nextgc)) {
			bytes <<< (long)o->str.len;
			if (o->str.len >= 64)
				length[(unsigned long)o] = o->str.len;
		}
	}
	printf("%ld strings of %ld bytes, the longest of %ld\n", _count(bytes), _sum(bytes), _max(bytes));
	_hist(bytes);
	_foreach (o : n _in length, _top LONGEST)
		printf("%10ld  %.60s\n", n, (char *)o + sizeof(GCstr));
}
