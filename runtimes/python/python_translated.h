/* SPDX-License-Identifier: Apache-2.0 */
/* What compilers made of Python: Cython (cython_name.h) and mypyc (mypyc_name.h). */
#ifndef YRT_PYTHON_TRANSLATED_H
#define YRT_PYTHON_TRANSLATED_H

#include "symbols/translated.h"

extern const struct translated_ops python_translated;

#endif
