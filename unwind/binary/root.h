/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files within a target's root. A container's files are untrusted: its symbolic links lead within it, and absolute ones
 * mean its own root. Kernels before 5.6 cannot promise that: check what was opened.
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
