/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What yrt must know about a build of LuaJIT. Names are those of its sources (lj_obj.h, lj_jit.h, lj_dispatch.h);
 * members that not every build has are marked OPTIONAL.
 */
#ifndef YRT_LUAJIT_LAYOUT_H
#define YRT_LUAJIT_LAYOUT_H

#include "layout/layout.h"
#include "luajit.h"

#define LUAJIT_MEMBERS(M, OPTIONAL)                                                                                    \
	M(l_gct, "lua_State.gct")                                                                                      \
	M(l_status, "lua_State.status")                                                                                \
	M(l_glref, "lua_State.glref")                                                                                  \
	M(l_base, "lua_State.base")                                                                                    \
	M(l_top, "lua_State.top")                                                                                      \
	M(l_maxstack, "lua_State.maxstack")                                                                            \
	M(l_stack, "lua_State.stack")                                                                                  \
	M(l_cframe, "lua_State.cframe")                                                                                \
	OPTIONAL(l_exdata2, "lua_State.exdata2") /* OpenResty, since 2020-10 */                                        \
	M(gg_g, "GG_State.g")                                                                                          \
	M(gg_j, "GG_State.J")                                                                                          \
	M(gg_dispatch, "GG_State.dispatch")                                                                            \
	M(g_vmstate, "global_State.vmstate")                                                                           \
	M(g_hookmask, "global_State.hookmask")                                                                         \
	M(g_mainthref, "global_State.mainthref")                                                                       \
	M(g_gc_total, "global_State.gc.total")                                                                         \
	M(g_cur_l, "global_State.cur_L")                                                                               \
	M(g_jit_base, "global_State.jit_base")                                                                         \
	M(j_flags, "jit_State.flags")                                                                                  \
	M(j_state, "jit_State.state")                                                                                  \
	M(j_trace, "jit_State.trace")                                                                                  \
	M(j_sizetrace, "jit_State.sizetrace")                                                                          \
	M(j_mcarea, "jit_State.mcarea")                                                                                \
	M(j_szmcarea, "jit_State.szmcarea")                                                                            \
	M(j_szallmcarea, "jit_State.szallmcarea")                                                                      \
	M(fn_ffid, "GCfuncC.ffid")                                                                                     \
	M(fn_pc, "GCfuncC.pc")                                                                                         \
	M(fn_f, "GCfuncC.f")                                                                                           \
	M(proto_size, "sizeof GCproto")                                                                                \
	M(proto_framesize, "GCproto.framesize")                                                                        \
	M(proto_sizebc, "GCproto.sizebc")                                                                              \
	M(proto_k, "GCproto.k")                                                                                        \
	M(proto_sizept, "GCproto.sizept")                                                                              \
	M(proto_sizeuv, "GCproto.sizeuv")                                                                              \
	M(proto_trace, "GCproto.trace")                                                                                \
	M(proto_chunkname, "GCproto.chunkname")                                                                        \
	M(proto_firstline, "GCproto.firstline")                                                                        \
	M(proto_numline, "GCproto.numline")                                                                            \
	M(proto_lineinfo, "GCproto.lineinfo")                                                                          \
	M(proto_uvinfo, "GCproto.uvinfo")                                                                              \
	M(proto_varinfo, "GCproto.varinfo")                                                                            \
	M(str_len, "GCstr.len")                                                                                        \
	M(str_size, "sizeof GCstr")                                                                                    \
	M(trace_size, "sizeof GCtrace")                                                                                \
	M(trace_nins, "GCtrace.nins")                                                                                  \
	M(trace_nk, "GCtrace.nk")                                                                                      \
	M(trace_ir, "GCtrace.ir")                                                                                      \
	M(trace_nsnap, "GCtrace.nsnap")                                                                                \
	M(trace_nsnapmap, "GCtrace.nsnapmap")                                                                          \
	M(trace_snap, "GCtrace.snap")                                                                                  \
	M(trace_snapmap, "GCtrace.snapmap")                                                                            \
	M(trace_startpt, "GCtrace.startpt")                                                                            \
	M(trace_startpc, "GCtrace.startpc")                                                                            \
	M(trace_szmcode, "GCtrace.szmcode")                                                                            \
	M(trace_mcode, "GCtrace.mcode")                                                                                \
	M(trace_mcloop, "GCtrace.mcloop")                                                                              \
	M(trace_spadjust, "GCtrace.spadjust")                                                                          \
	M(trace_traceno, "GCtrace.traceno")                                                                            \
	M(trace_link, "GCtrace.link")                                                                                  \
	M(trace_root, "GCtrace.root")                                                                                  \
	M(trace_linktype, "GCtrace.linktype")                                                                          \
	M(snap_size, "sizeof SnapShot")                                                                                \
	M(snap_mapofs, "SnapShot.mapofs")                                                                              \
	M(snap_ref, "SnapShot.ref")                                                                                    \
	OPTIONAL(snap_mcofs, "SnapShot.mcofs") /* since 2021-03 */                                                     \
	M(snap_nslots, "SnapShot.nslots")                                                                              \
	M(snap_nent, "SnapShot.nent")

#define LUAJIT_LISTS(L)                                                                                                \
	L(bytecode, "enum BCOp BC_")                                                                                   \
	L(ir, "enum IROp IR_")

/* The layout of a build. Whether references have 64 bits (GC64) follows from the size of lua_State.glref. */
struct luajit_layout {
#define M(slot, name) struct layout_member slot;
	LUAJIT_MEMBERS(M, M)
#undef M
#define L(slot, name) struct layout_list slot;
	LUAJIT_LISTS(L)
#undef L
};

extern const struct layout_schema luajit_layout_schema;

/*
 * The layout of a file that holds LuaJIT, from the first source that has it: its debug information; its separate debug
 * file; the library by build-id; the library by code (luajit_facts.h). By code, only layouts count whose members are
 * where the code has them: the one with the same GG_State, or else one whose global_State has another size, moved to
 * where the code has it. version: for messages. start, end: the VM's code. *ret is the caller's; its values are a
 * struct luajit_layout. An error says what is missing, which members the code contradicts, or which layouts of the
 * library cannot be distinguished.
 */
struct error *luajit_layout_find(struct image *img, const char *version, u64 start, u64 end, struct layout **ret);

struct luajit_facts;
/* The last of these ways alone. *ret is left alone if there is an error. */
struct error *luajit_layout_by_code(const struct layout_library *library, const struct image *img, const char *version,
        const struct luajit_facts *facts, struct layout **ret);

static inline bool luajit_gc64(const struct luajit_layout *l)
{
	return l->l_glref.size == 8;
}

#endif
