/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that mypyc gives its functions in C (mypyc/namegen.py of 0.9 to 2.4; mypy, Black and others are made by it):
 *
 *	CPyDef_checker___TypeChecker___visit_assert	checker.TypeChecker.visit_assert
 *	CPyPy_checker___TypeChecker___visit_assert	the same: it takes the arguments from Python
 *	CPyDef_types___AnyType___accept__Type_glue	types.AnyType.accept, as its class's base calls it
 *	CPyDef_nodes___walk_Tree_gen_____mypyc_generator_helper__	the body of the generator nodes.Tree.walk
 *
 * "___" is a dot, "___3_" is "___". A module is named by as many of its last parts as are needed in what was compiled
 * together. A name that begins with an underscore is preferred to a class or module that ends with one.
 */
#ifndef YRT_MYPYC_NAME_H
#define YRT_MYPYC_NAME_H

#include "symbols/translated.h"

bool mypyc_is_symbol(const char *symbol);
/* As translated_ops.demangle. Of a generator: "nodes.walk_Tree_gen.__mypyc_generator_helper__". */
bool mypyc_demangle(const char *name, char *ret, size_t size);
/*
 * A generator's body, or what resumes it: the name of the function that makes it, which is in the same file. False,
 * with nothing written: symbol is not of a generator, its function is missing, or ret is too small.
 */
bool mypyc_resolve(struct image *img, const char *symbol, char *ret, size_t size);
enum translated_layer mypyc_layer(const char *symbol);

/* Is symbol the function that makes the generator whose class is called `local` + "_gen", in the same module? */
bool mypyc_makes(const char *symbol, const char *module, const char *local);

#endif
