/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop of a module. PL_runops says which function runs ops, and a module may put its own there (Devel::Cover). It
 * does what Perl_runops_standard() does, and something more for each op.
 */
#ifndef YRT_PERL_RUNOPS_H
#define YRT_PERL_RUNOPS_H

#include "perl_image.h"
#include "runtime.h"

/* Where it is in the process. False: it is Perl's own, or its bounds are not known. */
bool perl_runops_find(const struct perl_image *image, u64 bias, const struct runtime_process *p, u64 *start, u64 *end);

#endif
