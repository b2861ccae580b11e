/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about a file that holds Perl: its build, its layout, its code. All addresses are the file's own. */
#ifndef YRT_PERL_IMAGE_H
#define YRT_PERL_IMAGE_H

#include "perl_layout.h"
#include "runtime.h"
#include "binary/image.h"

#define PERL_SITES_MAX 96

/* Code with a meaning. */
struct perl_site {
	u64 start, end;
	u8 part; /* enum perl_part */
};

struct perl_code {
	struct perl_site sites[PERL_SITES_MAX];
	u32 n;
	u32 nxs;                       /* of them: calls of functions in C */
	u64 entries[PERL_ENTRIES_MAX]; /* struct perl_vm's */
	u32 nentries;
	bool catches, pushes; /* docatch(), and where contexts are pushed, were found */
};

struct perl_image {
	struct perl_build build;
	const struct perl_layout *layout;
	struct layout *origins; /* owns it, and records where each member is from */
	struct perl_code code;
	struct perl_vm vm;            /* without addresses in a process */
	u64 key;                      /* PL_thr_key; 0 without MULTIPLICITY */
	u64 interpreter;              /* PL_curinterp */
	u64 op, curcop, curstackinfo; /* without MULTIPLICITY */
	u64 runops;                   /* PL_runops, the same; 0: unknown */
	u64 compiling;                /* PL_compiling, the same */
	u64 cop_seqmax;               /* PL_cop_seqmax, the same; 0: unknown */
	u64 nextstate, dbstate, null; /* what ppaddr of a COP is; of one that is not run any more */
	u32 type, dbtype;             /* OP_NEXTSTATE, in op_targ then; OP_DBSTATE */
	u64 ppaddr;                   /* PL_ppaddr; 0: unknown */
	u32 scope, subst;             /* OP_SCOPE, OP_SUBST */
	u64 calls[8];                 /* a bit for each type of op that a caller goes on behind */
	u64 start, end;               /* Perl_runops_standard, for people */
};

/* Operations of the runtime: is the file Perl, and of a build that is understood? */
struct error *perl_image_probe(struct image *img, void **ret);
void perl_image_destroy(void *image);
/*
 * A program that is linked with libperl may have some of its variables (process/copies.h). *ret: the image with these
 * where they are in this process, less the bias; it lives at most as long as image, and is released by free(). NULL:
 * the program has none of them.
 */
struct error *perl_image_copied(
        const struct perl_image *image, u64 bias, const struct runtime_process *p, struct perl_image **ret);

/* The same from the cache (cfi_search_cache.h), where it is kept by file and layout. False: it is not there. */
bool perl_code_load(struct image *img, const struct perl_layout *l, struct perl_code *ret);
void perl_code_store(struct image *img, const struct perl_layout *l, const struct perl_code *code);

/*
 * Functions of ops, which from 5.38 on have no symbols, by the tables PL_op_name and PL_ppaddr (opcode.h). Calls is()
 * with each until it returns true. In perl_ops.c.
 */
struct error *perl_ops(struct image *img, bool (*is)(void *ctx, u32 type, const char *op, u64 function), void *ctx);
/* Operation of the runtime: "Perl_pp_padsv" and so on for functions that have no symbols. */
struct c_names;
struct error *perl_op_names(struct image *img, struct c_names *ret);

#endif
