/* SPDX-License-Identifier: Apache-2.0 */
/* The file into which dwz has moved what several debug files have in common (.gnu_debugaltlink). */
#ifndef YRT_DWARF_ALTERNATE_H
#define YRT_DWARF_ALTERNATE_H

#include "file.h"
#include "error.h"

/*
 * Opens f's alternate: by its name, relative to f's own directory, in the root that f is in (the target's, or the
 * host's); then by its build-id below /usr/lib/debug, in root, then on the host. Its build-id must be the one that f
 * names. If there is none, f->alternate stays NULL, and names in it are missing.
 */
struct error *dwarf_open_alternate(struct dwarf_file *f, const char *root);

#endif
