/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a JVM's heap in the format that Java's tools read (hprof.h): classes, with static fields, loader, protection
 * domain, signers and resolved constants; roots; and each object that hotspot_hprof_object() gets. Words of stacks that
 * may be references are roots of unknown kind.
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
