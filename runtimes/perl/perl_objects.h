/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of a Perl interpreter, read from the target. All of it is untrusted: texts are cut, and links are followed a
 * bounded number of times.
 */
#ifndef YRT_PERL_OBJECTS_H
#define YRT_PERL_OBJECTS_H

#include "perl_image.h"
#include "binary/memory.h"

#define PERL_OP_TYPE 0x1ff /* op_type among the bits behind op_targ */

struct perl_reader {
	struct memory *mem;
	const struct perl_image *image;
	u64 bias;
	u64 interpreter; /* with MULTIPLICITY: one that shares code with all others; 0: not known */
};

struct perl_cv {
	u64 body;
	u64 stash, start, root, gv; /* gv: or HEK */
	u32 flags;
};

/* Is there a CV? Not if it was freed. */
bool perl_is_cv(const struct perl_reader *r, u64 sv);
/* False: it cannot be read, or is no CV. */
bool perl_read_cv(const struct perl_reader *r, u64 cv, struct perl_cv *ret);
/* "Package::name", "name" of a lexical sub; false: it has no name that can be read. */
bool perl_cv_name(const struct perl_reader *r, const struct perl_cv *cv, char *ret, size_t size);
/* The same of a glob. */
bool perl_gv_name(const struct perl_reader *r, u64 gv, char *ret, size_t size);
/* The name of a package. */
bool perl_stash_name(const struct perl_reader *r, u64 stash, char *ret, size_t size);
/* The package that a statement is in. */
bool perl_cop_package(const struct perl_reader *r, u64 cop, char *ret, size_t size);
/* The text of an SV that has one. */
bool perl_sv_text(const struct perl_reader *r, u64 sv, char *ret, size_t size);
/* Is there a COP: nextstate, dbstate, or one that was optimised away, which still says where a block of a pattern is?
 */
bool perl_is_cop(const struct perl_reader *r, u64 op);
/*
 * Does an op with this function, of this type (op_type), begin a statement? The function is the file's own, or a
 * module's (Devel::NYTProf, Devel::Cover), which PL_ppaddr has in its place.
 */
bool perl_is_state(const struct perl_reader *r, u64 ppaddr, u32 type);
/* The first COP of code that begins at op; 0: none near. */
u64 perl_first_cop(const struct perl_reader *r, u64 op);
/* Where a statement is. False: it is none any more. */
bool perl_cop_place(const struct perl_reader *r, u64 cop, u32 *line, char *file, size_t size);

#endif
