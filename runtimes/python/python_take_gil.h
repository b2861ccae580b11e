/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name for the static function in which threads wait for the GIL, where the interpreter has no symbols for it
 * (Debian's): take_gil() of Python/ceval_gil.c (ceval_gil.h up to 3.11), from 3.13 on _PyThreadState_Attach() of
 * Python/pystate.c. The loop of the interpreter calls it, too, and by nothing else could its waits be recognised.
 */
#ifndef YRT_PYTHON_TAKE_GIL_H
#define YRT_PYTHON_TAKE_GIL_H

#include "symbols/c_names.h"

/*
 * It is the one function without a name that PyEval_RestoreThread() and PyEval_AcquireThread() both call and that leads
 * to pthread_cond_timedwait(). Adds nothing if there is none, or more. The symbols of img must be there.
 */
struct error *python_take_gil(struct image *img, struct c_names *ret);

#endif
