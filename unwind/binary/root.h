/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files within a target's root. A container's files are untrusted: symbolic links are resolved within its root, and
 * absolute ones start there. Kernels before 5.6 cannot guarantee that, so the opened file must be checked.
 */
#ifndef YRT_ROOT_H
#define YRT_ROOT_H

/* A directory to look in, to be closed. -1: root is "", the host's, or gone. */
int root_open(const char *root);
/*
 * Opens an absolute path for reading, without waiting for a FIFO; flags: more of open()'s. root: -1: the host's.
 * Negative: errno says why.
 */
int root_open_file(int root, const char *path, int flags);

#endif
