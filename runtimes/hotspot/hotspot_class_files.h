/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a process's classes: ZIP archives (APPNOTE.TXT 6.3, without ZIP64) that it has open, and folders. */
#ifndef YRT_HOTSPOT_CLASS_FILES_H
#define YRT_HOTSPOT_CLASS_FILES_H

#include <stddef.h>
#include <sys/types.h>
#include <types.h>

#include "error.h"

typedef struct error *class_file(void *ctx, const void *file, size_t size);

/* Those of a class ("com.acme.Store") and of the classes in it. All is hostile; what cannot be read is left out. */
struct error *hotspot_class_files(pid_t pid, const char *name, class_file *each, void *ctx);
/* Those of an archive. path: "com/acme/Store". */
struct error *hotspot_archive(int fd, const char *path, class_file *each, void *ctx);

#endif
