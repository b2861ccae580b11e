/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perl's values (SVs), for perl-heap and perl-refs: all that are alive lie in the arenas of the interpreter, so that
 * they can be counted by type; packages, the lexicals of subs and what the interpreter points to are the roots.
 *
 * Facts about values are those of sv.h, av.h, hv.h, cv.h, gv.h, pad.h, mg.h and of Perl_sv_add_arena() in sv.c, Perl
 * 5.22 to 5.44, with MULTIPLICITY. Where the interpreter keeps its arenas no layout says: it is found by what they look
 * like (perl_heap_values.c).
 */
#ifndef YRT_PERL_HEAP_H
#define YRT_PERL_HEAP_H

#include "perl_objects.h"
#include "runtime.h"
#include "runtime_heap.h"

/* Operations of runtime_heap.h. interpreter: its address. */
struct error *perl_heap_open(const struct perl_image *image, u64 bias, u64 interpreter, const struct runtime_process *p,
        struct heap *h, void **ret);
void perl_heap_close(void *reader);
struct error *perl_heap_roots(void *reader);
enum heap_seen perl_heap_object(void *reader, u64 addr, u32 label, struct heap_object *ret);
struct error *perl_heap_blocks(void *reader);
struct error *perl_heap_all(void *reader);
bool perl_heap_leaks(void *reader);

#endif
