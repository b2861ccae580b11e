/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's names for functions in C, of the interpreter and of extension modules. Tables of PyMethodDef
 * (Include/methodobject.h) are in the data of a file, also of a stripped one. A PyModuleDef (Include/moduleobject.h) or
 * PyTypeObject (Include/cpython/object.h) that points to a table shows what it belongs to: "time.sleep", "list.append".
 */
#ifndef YRT_PYTHON_METHODS_H
#define YRT_PYTHON_METHODS_H

#include "symbols/c_names.h"
#include "binary/image.h"

/* The c_names operation of runtime.h. The file is untrusted. */
struct error *python_methods(struct image *img, struct c_names *ret);

#endif
