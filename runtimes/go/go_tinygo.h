/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises programs of TinyGo, another compiler with its own runtime. */
#ifndef YRT_GO_TINYGO_H
#define YRT_GO_TINYGO_H

#include "binary/image.h"

/*
 * By its symbols: assembly of its runtime (tinygo_startTask, tinygo_scanCurrentStack …) beside functions of a package
 * "runtime". A stripped program cannot be distinguished from one in C.
 */
bool go_is_tinygo(struct image *img);

#endif
