/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions that a compiler translated into C or C++ from another language (Cython, from Python): what the
 * linker's symbol means in that language. The runtime translates (runtime_ops.translated), so the caller need not know
 * the language.
 */
#ifndef YRT_TRANSLATED_H
#define YRT_TRANSLATED_H

#include <stddef.h>
#include <types.h>

#include "binary/image.h"

/* How far a function is from the one that does the work: of functions with one name, each calls the one below it. */
enum translated_layer {
	TRANSLATED_NONE, /* not such a name */
	TRANSLATED_C,    /* called from C only */
	TRANSLATED_BODY, /* of what the language calls */
	TRANSLATED_WRAPPER,
};

struct translated_ops {
	bool (*is_symbol)(const char *symbol); /* by how it begins, where C++ does not mangle it */
	/*
	 * name as it is in the file, or as C++'s demangler gives it. Writes the language's name to ret. False, with
	 * nothing written: it is no such name, can be read in two ways, or does not fit.
	 */
	bool (*demangle)(const char *name, char *ret, size_t size);
	/* The same for a symbol of img that only other symbols explain, such as a generator's body. */
	bool (*resolve)(struct image *img, const char *symbol, char *ret, size_t size);
	enum translated_layer (*layer)(const char *symbol);
	/* Is it a function by which such code calls? A language's view hides it, as it does the interpreter's own. */
	bool (*is_glue)(const char *symbol);
};

/* Of whichever language: as the operations above. */
bool translated_is_symbol(const char *symbol);
bool translated_demangle(const char *name, char *ret, size_t size);
bool translated_resolve(struct image *img, const char *symbol, char *ret, size_t size);
enum translated_layer translated_layer(const char *symbol);
bool translated_is_glue(const char *symbol);

#endif
