/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a layout on a live process, by what must hold in every CPython: links that must close, types of the objects
 * that members point to, instance sizes that types give. A wrong offset makes a check fail that uses its member, except
 * for co_firstlineno, which is a number like others, and links that happen to read as none.
 */
#ifndef YRT_PYTHON_CHECK_H
#define YRT_PYTHON_CHECK_H

#include "python_image.h"
#include "runtime.h"

enum python_check_result {
	PYTHON_CHECK_SILENT, /* the process has nothing to check: it has just been started */
	PYTHON_CHECK_HOLDS,
	PYTHON_CHECK_FAILS,
};

struct python_check {
	const char *name, *what; /* static */
	enum python_check_result result;
};

#define PYTHON_CHECKS 3

/* Runs all checks. The process keeps running, so a failing check is repeated before it counts. */
void python_check(const struct python_image *image, const struct python_layout *l, u64 bias, struct memory *mem,
        struct python_check ret[PYTHON_CHECKS]);
/* An error if one fails. */
struct error *python_check_process(const struct python_image *image, u64 bias, const struct runtime_process *p);

#endif
