/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pprof profile of any writer: the message perftools.profiles.Profile (google/pprof, proto/profile.proto). Of
 * several sample types CPU samples are used, else the default one, else the last. Labels that yrt writes
 * (process, pid, container, thread, thread_id) become processes and threads again. Everything in it is untrusted.
 */
#ifndef YRT_FORMAT_INPUT_PPROF_H
#define YRT_FORMAT_INPUT_PPROF_H

#include "filter.h"

#define INPUT_PPROF_FIRST 0x0a /* the byte that writers begin it with: the field sample_type, of a length */

/* bytes: unpacked. name: of the file, for messages. */
struct error *input_pprof_read(const u8 *bytes, size_t size, const char *name, struct filter *s);

#endif
