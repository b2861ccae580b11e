/* SPDX-License-Identifier: Apache-2.0 */
/* Demangled names, each made once, for names whose address stays the same, such as those of inlines.h and symbols.h. */
#ifndef YRT_DEMANGLED_H
#define YRT_DEMANGLED_H

#include "error.h"
#include "table.h"

struct demangled_names {    /* starts as zero */
	struct table shown; /* by the hash of the mangled name's address */
};

/* name itself if it is not mangled; else it lives as long as names. */
struct error *demangled_name(struct demangled_names *names, const char *name, const char **ret);
void demangled_free(struct demangled_names *names);

#endif
