/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many files yrt may have open (RLIMIT_NOFILE). BPF maps, programs, links and the events of each CPU are files:
 * libbpf takes a refusal of one for a kernel that lacks something, so the limit is looked at before.
 */
#ifndef YRT_OPEN_FILES_H
#define YRT_OPEN_FILES_H

#include <types.h>

#include "error.h"

/* For sampling: maps, programs, links of the largest view, what is read meanwhile; buffers and a timer. */
#define OPEN_FILES_SAMPLING 128
#define OPEN_FILES_EACH_CPU 3

/* Raises the limit to the hard one. An error that names it: it is below fixed files and some for each CPU. */
struct error *open_files_need(u32 fixed, u32 per_cpu);
/* In a child that is to run another program: the limit that yrt was started with. */
void open_files_restore(void);
/* A hint for an error; NULL: errnum has nothing to do with the limit. The text is overwritten by the next call. */
const char *open_files_hint(int errnum);

#endif
