/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What python_methods.c and python_slots.c share. Slots are the functions in C that a type has besides its methods
 * (Include/cpython/object.h, typeslots.h). They are found in PyTypeObjects in the file's data, whose first words are
 * the same in 3.6 to 3.15 and which are found by their methods, and in PyType_Specs. They have the names that Python
 * knows: "int.__add__".
 */
#ifndef YRT_PYTHON_METHODS_INTERNAL_H
#define YRT_PYTHON_METHODS_INTERNAL_H

#include "symbols/c_names.h"
#include "binary/image.h"
#include "binary/image_words.h"

#define PYTHON_C_NAME 96 /* bytes of a name */
#define SPEC_METHODS  64 /* Py_tp_methods */

/* An identifier, or several with dots between. */
bool python_c_name(struct image *img, u64 addr, char ret[PYTHON_C_NAME]);
bool python_is_code(const struct image *img, u64 addr);
/* The table of PyMethodDef at an address, of this module or type. */
struct error *python_methods_of(
        struct image *img, const struct image_words *all, u64 addr, const char *owner, struct c_names *ret);

/* If word i is the tp_methods of a type, or the slots of a spec: adds its slots, and attributes, to ret. */
struct error *python_slots_of_type(
        struct image *img, const struct image_words *all, const struct words *w, u64 i, struct c_names *ret);
struct error *python_slots_of_spec(
        struct image *img, const struct image_words *all, const struct words *w, u64 i, struct c_names *ret);
/* Adds to ret what was found: a function of several types by what they all call it, without a type. */
struct error *python_slots_settle(struct c_names *found, struct c_names *ret);

#endif
