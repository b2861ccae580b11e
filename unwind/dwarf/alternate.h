/* SPDX-License-Identifier: Apache-2.0 */
/* The file into which dwz has moved what several debug files have in common (.gnu_debugaltlink). */
#ifndef YRT_DWARF_ALTERNATE_H
#define YRT_DWARF_ALTERNATE_H

#include "file.h"
#include "error.h"

/*
 * Opens f's alternate: by its name, relative to f's own directory, in the root that f lies in (that of the target, or
 * the host's); then by its build-id below /usr/lib/debug, in root, then on the host. Its build-id must be the one that
 * f gives. f->alternate stays NULL if there is none: names that are in it are missing then.
 */
struct error *dwarf_open_alternate(struct dwarf_file *f, const char *root);

#endif
