/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVM's heap as a dump that tools of Java read (hprof.h): classes with their static fields, roots, and each object
 * that it is given. Words of stacks that may be references are roots of no kind. Class, loader and
 * resolved constants of a class are told; its protection domain and signers are not.
 */
#ifndef YRT_HOTSPOT_HPROF_H
#define YRT_HOTSPOT_HPROF_H

#include <stdio.h>

#include "hotspot_refs.h"

struct hotspot_hprof;

/* Writes what there is before objects: r has its roots. contents: also of arrays of primitives, which else are 0. */
struct error *hotspot_hprof_begin(struct hotspot_refs *r, FILE *out, bool contents, struct hotspot_hprof **ret);
bool hotspot_hprof_object(struct hotspot_hprof *d, u64 object, u64 klass, u64 size); /* false: no memory */
/* Frees it. */
struct error *hotspot_hprof_end(struct hotspot_hprof *d);

#endif
