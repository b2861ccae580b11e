/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pprof profile of any writer: the message perftools.profiles.Profile (google/pprof, proto/profile.proto), packed by
 * gzip. Of several sample types CPU samples are used, else the default one, else the last. Labels that yrt writes
 * (process, pid, container, thread, thread_id) become processes and threads again. Everything in it is untrusted.
 */
#ifndef YRT_FORMAT_INPUT_PPROF_H
#define YRT_FORMAT_INPUT_PPROF_H

#include "filter.h"

#define INPUT_PPROF_FIRST 0x1f /* the byte that gzip files begin with */

/* Reads all of in. name: of the file, for messages. */
struct error *input_pprof_read(FILE *in, const char *name, struct filter *s);

#endif
