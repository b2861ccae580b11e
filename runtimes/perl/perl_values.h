/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts in arguments of Perl's subs, as keys of requests: as the first op of a sub is run, its arguments are @_, the
 * array of the glob *main::_ (pp_hot.c, pp_entersub()).
 */
#ifndef YRT_PERL_VALUES_H
#define YRT_PERL_VALUES_H

#include "perl_objects.h"
#include "runtime_calls.h"

/* As runtime_calls_ops.field, of any sub. way: "[req][url]", keys of hashes that lie in one another; "": a text. */
bool perl_field(const struct perl_reader *r, u32 i, const char *way, struct value_places *v, u32 slot);
/* runtime_calls_ops.value. */
void perl_value(void *instance, const struct runtime_process *p, const struct runtime_value *v, FILE *out);

#endif
