/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of a library that the program has in its own data. Its code addresses them without a look-up, so the
 * linker made room for them in the program (R_X86_64_COPY). There the dynamic linker copies them, and all code of the
 * process uses the copy, that of the library too. The library's own variable stays as it is in the file.
 */
#ifndef YRT_COPIES_H
#define YRT_COPIES_H

#include <stddef.h>

#include "runtime.h"

/* A variable, and where in a description of the library its address is: a u64, the file's own address. */
struct copies_variable {
	const char *name;
	size_t at;
};

/*
 * *ret: a copy of description (size bytes, whose library has this bias) in which variables that the program has are
 * where they are in the process, less the bias; release it by free(). NULL: the program has none of them.
 */
struct error *copies_apply(const struct runtime_process *p, u64 bias, const struct copies_variable *variables, u32 n,
        const void *description, size_t size, void **ret);

#endif
