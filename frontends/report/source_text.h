/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a program's source, as it stands in its file. */
#ifndef YRT_REPORT_SOURCE_TEXT_H
#define YRT_REPORT_SOURCE_TEXT_H

#include <types.h>

/*
 * Without what it is indented by, malloc'd; NULL: it cannot be read, or the file has changed since before_unix_ns (0:
 * any time). Targets say what their files are, and reports go to others: only files that all may read are read.
 */
char *source_text(const char *path, u32 line, u64 before_unix_ns);

#endif
