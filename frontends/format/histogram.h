/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_HISTOGRAM_H
#define YRT_HISTOGRAM_H

#include <stdio.h>

/*
 * Of calls (latency), out of what --stats says (profile_meta.stats, which a recording keeps): how many took how
 * long, as "histograms": [[function, [from, to, calls], ...], ...] in ns, by time; and the longest of each function,
 * with what they waited for, as "longest": [[ns, at, thread, call, reason, ns, ...], ...]. A list that is not there is
 * not written, nor anything if stats is NULL; buckets that make no sense are left out.
 */
void histogram_put(const char *stats, FILE *out);

#endif
