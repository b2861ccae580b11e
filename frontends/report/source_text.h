/* SPDX-License-Identifier: Apache-2.0 */
/* A program's source: lines as they stand in its file. */
#ifndef YRT_REPORT_SOURCE_TEXT_H
#define YRT_REPORT_SOURCE_TEXT_H

#include <stdio.h>
#include <sys/types.h>
#include <types.h>

#include "evidence.h"

/* Where the files of these processes are: e->root, e->elsewhere, and the fact "root.other", which is kept. */
void source_where(const pid_t *pids, u32 n, struct evidence *e);

/*
 * Within a root (unwind/binary/root.h; -1: the host's). NULL: it cannot be read, or has changed since before_unix_ns
 * (0: any time). Targets say what their files are, and reports go to others: only files that all may read are read.
 */
FILE *source_open(int root, const char *path, u64 before_unix_ns);
/* Without what it is indented by, malloc'd; NULL: its file is not read, or has no such line. */
char *source_text(const struct evidence *e, const char *path, u32 line);

#endif
