/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of `perf script`: a line per sample ("comm pid/tid [cpu] time: period event: fields"), below it a line per
 * frame, the leaf first ("address symbol+0xoffset (file)"), and an empty line. Processor, time and period may be
 * missing, and a sample without a call chain has its only frame in its own line. Each sample of the first event counts
 * 1, as in stackcollapse-perf; of other events, and of periods that differ, the profile's meta.loss tells.
 * Format: tools/perf/builtin-script.c, perf_sample__fprintf_start() and sample__fprintf_callchain(), Linux 6.1.
 */
#ifndef YRT_FORMAT_INPUT_PERF_H
#define YRT_FORMAT_INPUT_PERF_H

#include <stdio.h>

#include "filter.h"

/* Whether this line, of those that are not empty or comments the first, is of such a text. */
bool input_perf_is(const char *line);
/* Reads the rest of in; first: the line that was read already, without its newline, which is changed. path: for
 * messages. */
struct error *input_perf_read(FILE *in, const char *path, char *first, u64 number, struct filter *s);

#endif
