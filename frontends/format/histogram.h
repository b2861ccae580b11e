/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_HISTOGRAM_H
#define YRT_HISTOGRAM_H

#include <stdio.h>

/*
 * How many calls took how long, out of what --stats says (profile_meta.stats, which a recording keeps): as
 * [[from, to, calls], ...] in ns, by time. Nothing is written if stats is NULL or has no such list; what
 * makes no sense is left out.
 */
void histogram_put(const char *stats, FILE *out);

/*
 * The longest calls of the same: as [[ns, at, thread, call, reason, ns, ...], ...], each with what it waited for.
 */
void longest_put(const char *stats, FILE *out);

#endif
