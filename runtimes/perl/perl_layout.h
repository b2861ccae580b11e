/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What yrt must know about a build of Perl. Names are those of its sources; members that not every build has are marked
 * OPTIONAL.
 */
#ifndef YRT_PERL_LAYOUT_H
#define YRT_PERL_LAYOUT_H

#include "layout/layout.h"
#include "perl.h"

#define PERL_MEMBERS(M, OPTIONAL)                                                                                      \
	OPTIONAL(i_size, "sizeof interpreter") /* MULTIPLICITY, as the next */                                         \
	OPTIONAL(i_op, "interpreter.Iop")                                                                              \
	OPTIONAL(i_curcop, "interpreter.Icurcop")                                                                      \
	OPTIONAL(i_curstackinfo, "interpreter.Icurstackinfo")                                                          \
	OPTIONAL(i_runops, "interpreter.Irunops")                                                                      \
	OPTIONAL(i_cop_seqmax, "interpreter.Icop_seqmax")                                                              \
	M(si_cxstack, "stackinfo.si_cxstack")                                                                          \
	M(si_prev, "stackinfo.si_prev")                                                                                \
	M(si_cxix, "stackinfo.si_cxix")                                                                                \
	M(si_cxmax, "stackinfo.si_cxmax")                                                                              \
	M(si_type, "stackinfo.si_type")                                                                                \
	M(cx_size, "sizeof context")                                                                                   \
	M(cx_type, "context.cx_u.cx_blk.blku_type")                                                                    \
	M(cx_oldcop, "context.cx_u.cx_blk.blku_oldcop")                                                                \
	M(cx_retop, "context.cx_u.cx_blk.blk_u.blku_sub.retop")                                                        \
	M(cx_cv, "context.cx_u.cx_blk.blk_u.blku_sub.cv")                                                              \
	M(cx_format_cv, "context.cx_u.cx_blk.blk_u.blku_format.cv")                                                    \
	M(cx_eval_retop, "context.cx_u.cx_blk.blk_u.blku_eval.retop")                                                  \
	M(cx_namesv, "context.cx_u.cx_blk.blk_u.blku_eval.old_namesv")                                                 \
	M(sv_any, "sv.sv_any")                                                                                         \
	M(sv_flags, "sv.sv_flags")                                                                                     \
	M(sv_u, "sv.sv_u")                                                                                             \
	M(cv_stash, "xpvcv.xcv_stash")                                                                                 \
	M(cv_start, "xpvcv.xcv_start_u")                                                                               \
	M(cv_root, "xpvcv.xcv_root_u")                                                                                 \
	OPTIONAL(cv_gv, "xpvcv.xcv_gv_u")                                                                              \
	OPTIONAL(cv_gv_only, "xpvcv.xcv_gv") /* 5.16 */                                                                \
	M(cv_flags, "xpvcv.xcv_flags")                                                                                 \
	M(pv_cur, "xpv.xpv_cur")                                                                                       \
	M(gv_namehek, "xpvgv.xiv_u")                                                                                   \
	M(gv_stash, "xpvgv.xnv_u")                                                                                     \
	M(hek_len, "hek.hek_len")                                                                                      \
	M(hek_key, "hek.hek_key")                                                                                      \
	M(hv_max, "xpvhv.xhv_max")                                                                                     \
	OPTIONAL(hv_aux, "xpvhv_with_aux.xhv_aux") /* 5.36; before behind the buckets */                               \
	M(aux_name, "xpvhv_aux.xhv_name_u")                                                                            \
	M(aux_name_count, "xpvhv_aux.xhv_name_count")                                                                  \
	M(op_next, "op.op_next")                                                                                       \
	M(op_ppaddr, "op.op_ppaddr")                                                                                   \
	M(op_targ, "op.op_targ")                                                                                       \
	M(cop_line, "cop.cop_line")                                                                                    \
	OPTIONAL(i_stashpad, "interpreter.Istashpad")                                                                  \
	OPTIONAL(cop_stashoff, "cop.cop_stashoff") /* threads */                                                       \
	OPTIONAL(cop_stashpv, "cop.cop_stashpv")   /* threads, 5.16: text */                                           \
	OPTIONAL(cop_stash, "cop.cop_stash")       /* no threads */                                                    \
	OPTIONAL(cop_file, "cop.cop_file")         /* threads: text */                                                 \
	OPTIONAL(cop_filegv, "cop.cop_filegv")     /* no threads: a GV */

/* The layout of a build. */
struct perl_layout {
#define M(slot, name) struct layout_member slot;
	PERL_MEMBERS(M, M)
#undef M
};

extern const struct layout_schema perl_layout_schema;

/* What a file says of its build. */
struct perl_build {
	u32 revision, version, subversion; /* 5, 36, 0 */
	u32 interpreter_size;              /* PL_interp_size; without MULTIPLICITY that of another structure */
	char options[128];                 /* those that change the layout: "MULTIPLICITY USE_ITHREADS" */
};

/*
 * The layout of a file that holds Perl of this build, from the first that has it: its debug information; its separate
 * debug file; the library by build-id; the library by version and options ("5.36 MULTIPLICITY USE_ITHREADS": within a
 * minor version builds of the same options are binary compatible). *ret is the caller's, its values are a struct
 * perl_layout.
 */
struct error *perl_layout_find(struct image *img, const struct perl_build *build, struct layout **ret);

/* What the walker needs of it, but for addresses. version: 36 of 5.36. */
struct perl_vm perl_vm_of(const struct perl_layout *l, u32 version);

/* xcv_gv_u, whatever this version calls it. */
static inline struct layout_member perl_cv_gv(const struct perl_layout *l)
{
	return l->cv_gv.size ? l->cv_gv : l->cv_gv_only;
}

#endif
