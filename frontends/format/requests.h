/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_FORMAT_REQUESTS_H
#define YRT_FORMAT_REQUESTS_H

#include <stdio.h>

/*
 * Requests of a server, out of what --stats says (profile_meta.stats, which a recording keeps), as "requests":
 *
 *	times    words of the parts of time: ["cpu", ...]
 *	routes   [[route, requests, errors, p50, p95, p99, max, [sum of each part]], ...] in ns
 *	slowest  [[request, status, ns, pid, [each part], [[ns, reason, frames], ...]], ...]; frames from leaf to root
 *
 * Writes nothing if there are no requests or stats is NULL.
 */
void requests_put(const char *stats, FILE *out);

#endif
