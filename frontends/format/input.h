/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles from files: recordings, folded stacks as yrt and other profilers write them, text of perf script, pprof.
 * Text and pprof may be packed by gzip. perf.data and JFR files are refused by name.
 */
#ifndef YRT_FORMAT_INPUT_H
#define YRT_FORMAT_INPUT_H

#include "recording.h"
#include "filter.h"

/*
 * Loads path ("-" is stdin) into a finished profile of one's own. Of folded stacks "frame;frame;… count" a frame may
 * end in _[k], _[0], _[1], _[j] or _[i] (kernel, interpreted, baseline, JIT, inlined). Corrupt files are an error; one
 * that is cut gives what is whole.
 */
struct error *input_load(
        const char *path, const struct filter_options *options, struct profile **ret, struct recording *cut);

/* in: what path is open as; for tests. */
struct error *input_read(
        FILE *in, const char *path, const struct filter_options *options, struct profile **ret, struct recording *cut);

#endif
