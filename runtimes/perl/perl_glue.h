/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_PERL_GLUE_H
#define YRT_PERL_GLUE_H

#include <types.h>

/*
 * Does this function of the interpreter only lead from one Perl frame to another, so that Perl's view should hide it?
 */
bool perl_is_glue(const char *symbol);

#endif
