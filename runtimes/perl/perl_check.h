/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a layout on a live process (runtime_check.h): stacks of contexts are linked both ways, contexts have valid
 * kinds, subs in them are CVs, and statements are statements.
 */
#ifndef YRT_PERL_CHECK_H
#define YRT_PERL_CHECK_H

#include "perl_objects.h"
#include "runtime_check.h"

struct perl_checked {
	struct perl_reader r;
	const struct perl_layout *l;
	u64 curstackinfo, curcop; /* where the pointers are; 0: it has no interpreter yet */
};

struct perl_checked perl_checked_of(const struct perl_image *image, u64 bias, struct memory *mem);
extern const struct runtime_checks perl_checks; /* of such a one */

#endif
