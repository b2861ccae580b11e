/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_types.h"

#include <string.h>

#include "luajit_layout.h"

#define HEADER    "GCRef nextgc; u8 marked; u8 gct; "
#define FUNCTION  HEADER "u8 ffid; u8 nupvalues; GCRef env; GCRef gclist; MRef pc; "
#define GC_OFFSET 16 /* of global_State.gc, where the table of strings is a structure of its own; before 2020 32 */

const struct layout_type luajit_types[] = {
        {LAYOUT_STRUCT, "MRef", "@gc64 u64 ptr64; @gc32 u32 ptr32", NULL},
        {LAYOUT_STRUCT, "GCRef", "@gc64 u64 gcptr64; @gc32 u32 gcptr32", NULL},
        {LAYOUT_UNION, "TValue", "u64 u64; s64 it64; double n; GCRef gcr; s32 i; @4 u32 it", NULL},
        {LAYOUT_STRUCT, "Node", "TValue val; TValue key; MRef next; @freetop MRef freetop", NULL},
        {LAYOUT_STRUCT, "GChead", HEADER "u8 unused1; u8 unused2; GCRef env; GCRef gclist; GCRef metatable", NULL},
        {LAYOUT_STRUCT, "GCstr", HEADER "u8 reserved; u32 len", NULL},
        {LAYOUT_STRUCT, "GCudata", HEADER "u8 udtype; u8 unused2; GCRef env; u32 len; GCRef metatable; u32 align1",
                NULL},
        {LAYOUT_STRUCT, "GCcdata", HEADER "u16 ctypeid", NULL},
        {LAYOUT_STRUCT, "GCproto",
                HEADER "u8 numparams; u8 framesize; u32 sizebc; MRef k; MRef uv; u32 sizekgc; u32 sizekn; u32 sizept; "
                       "u8 sizeuv; u8 flags; u16 trace; GCRef chunkname; s32 firstline; s32 numline; MRef lineinfo; "
                       "MRef uvinfo; MRef varinfo",
                NULL},
        {LAYOUT_STRUCT, "GCupval", HEADER "u8 closed; u8 immutable; TValue tv; @upvalue_v MRef v; u32 dhash", NULL},
        {LAYOUT_STRUCT, "GCfuncC", FUNCTION "void *f; TValue upvalue[1]", NULL},
        {LAYOUT_STRUCT, "GCfuncL", FUNCTION "GCRef uvptr[1]", NULL},
        {LAYOUT_UNION, "GCfunc", "GCfuncC c; GCfuncL l", NULL},
        {LAYOUT_STRUCT, "GCtab",
                HEADER "u8 nomm; s8 colo; MRef array; GCRef gclist; GCRef metatable; MRef node; u32 asize; u32 hmask; "
                       "@table_freetop MRef freetop",
                NULL},
        {LAYOUT_STRUCT, "lua_State",
                HEADER "u8 dummy_ffid; u8 status; MRef glref; GCRef gclist; TValue *base; TValue *top; MRef maxstack; "
                       "MRef stack; GCRef openupval; GCRef env; void *cframe; u32 stacksize",
                "thread_size"},
        {LAYOUT_UNION, "GCobj",
                "GChead gch; GCstr str; GCupval uv; lua_State th; GCproto pt; GCfunc fn; GCcdata cd; GCtab tab; "
                "GCudata ud",
                NULL},
        {LAYOUT_STRUCT, "GCState",
                "@gc64 u64 total; @gc32 u32 total; @threshold64 u64 threshold; @threshold32 u32 threshold; "
                "u8 currentwhite; u8 state; u8 nocdatafin; u8 lightudnum; u32 sweepstr; GCRef root",
                LAYOUT_PART},
        {LAYOUT_STRUCT, "StrInternState", "GCRef *tab; u32 mask; u32 num", LAYOUT_PART},
        {LAYOUT_STRUCT, "CType", "u32 info; u32 size; u16 sib; u16 next; GCRef name", NULL},
        {LAYOUT_STRUCT, "CTState", "CType *tab; u32 top; u32 sizetab; lua_State *L; void *g", LAYOUT_PART},
        {LAYOUT_STRUCT, "global_State",
                "@old GCRef *strhash; @old_mask u32 strmask; @old_number u32 strnum; @allocf void *allocf; "
                "@allocd void *allocd; @gc GCState gc; @strings StrInternState str; s32 vmstate; u8 hookmask; "
                "GCRef mainthref; GCRef cur_L; MRef jit_base; MRef ctype_state",
                "state_size"},
        {LAYOUT_END, NULL, NULL, NULL},
};

/* global_State begins with what allocates, and has the table of strings behind its flags, right before vmstate. */
static s64 place_of_strings(const struct luajit_layout *l)
{
	s64 at = (l->g_hookmask.at + 3 + 7) / 8 * 8;

	return l->g_gc_total.at == GC_OFFSET && at + 32 == l->g_vmstate.at ? at : -1;
}

s64 luajit_types_place(const void *values, const char *name)
{
	const struct luajit_layout *l = values;
	bool gc64 = luajit_gc64(l), old = l->g_gc_total.at == 2 * GC_OFFSET;
	const struct {
		const char *name;
		s64 at;
	} places[] = {{"gc64", gc64 ? 0 : -1}, {"gc32", gc64 ? -1 : 0}, {"freetop", gc64 ? -1 : 20},
	        {"table_freetop", gc64 ? 56 : -1}, {"threshold64", gc64 ? 8 : -1}, {"threshold32", gc64 ? -1 : 4},
	        {"upvalue_v", gc64 ? 32 : 16}, {"thread_size", l->gg_g.at}, {"state_size", l->gg_g.size},
	        {"gc", l->g_gc_total.at}, {"old", old ? 0 : -1}, {"old_mask", old ? 8 : -1},
	        {"old_number", old ? 12 : -1}, {"allocf", l->g_gc_total.at - 16}, {"allocd", l->g_gc_total.at - 8},
	        {"strings", place_of_strings(l)}};

	for (u32 i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (!strcmp(places[i].name, name))
			return places[i].at;
	return -1;
}
