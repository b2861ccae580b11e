/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files within a target's root. A container's files are untrusted: symbolic links are resolved within its root, and
 * absolute ones start there. Kernels before 5.6 cannot guarantee that, so the opened file must be checked.
 */
#ifndef YRT_ROOT_H
#define YRT_ROOT_H

#include <dirent.h>

/* A directory to look in, to be closed. -1: root is "", the host's, or gone. */
int root_open(const char *root);
/*
 * Opens an absolute path for reading, without waiting for a FIFO; flags: more of open()'s. root: -1: the host's.
 * Negative: errno says why.
 */
int root_open_file(int root, const char *path, int flags);
/* A regular file; -1: none. Of what else is there nothing is opened, as that alone moves devices, and FIFOs. */
int root_open_regular(int root, const char *path);
/* A folder, to be closed with closedir(). NULL: there is none. */
DIR *root_open_folder(int root, const char *path);

#endif
