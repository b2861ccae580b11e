/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Perl frames: of CVs and of statements, each read once as long as its cookie is the same. */
#ifndef YRT_PERL_NAMES_H
#define YRT_PERL_NAMES_H

#include "perl_objects.h"
#include "runtime.h"

struct perl_names;

struct perl_names *perl_names_create(const struct perl_image *image, u64 bias); /* NULL: out of memory */
void perl_names_destroy(struct perl_names *names);                              /* NULL is fine */
/* Subs of PL/Perl may be called by their SQL names from now on. top: perl_postgres_find() */
void perl_names_set_postgres(struct perl_names *names, u64 top);
/* Has the sub at frames[i], leaf first, not run its first statement yet? Then the current statement is its caller's. */
bool perl_is_entered(const struct frame *frames, u32 i, u32 n);
/* False: what it was of is not there any more. */
bool perl_name_frame(struct perl_names *names, struct memory *mem, const struct frame *frame, struct frame_name *ret);

#endif
