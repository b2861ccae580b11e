/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the interpreter by which Python calls Python, and which start a program. The frames beside them show the
 * same.
 */
#ifndef YRT_PYTHON_GLUE_H
#define YRT_PYTHON_GLUE_H

#include <stdbool.h>

/*
 * symbol: of a function of the interpreter in C. "" (none) counts as glue, because functions that users know have a
 * name in Python.
 */
bool python_is_glue(const char *symbol);

#endif
