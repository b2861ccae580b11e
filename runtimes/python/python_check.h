/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a layout on a live process (runtime_check.h): links, types of the objects that members point to, instance
 * sizes that types give. Only co_firstlineno, which is a number like others, and links that happen to read as none go
 * unnoticed.
 */
#ifndef YRT_PYTHON_CHECK_H
#define YRT_PYTHON_CHECK_H

#include "python_image.h"
#include "runtime_check.h"

struct python_checked {
	const struct python_image *image;
	const struct python_layout *l;
	struct memory *mem;
	u64 bias;
};

extern const struct runtime_checks python_checks; /* of a struct python_checked */

#endif
