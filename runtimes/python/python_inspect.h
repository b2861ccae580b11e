/* SPDX-License-Identifier: Apache-2.0 */
/* What `yrt inspect` reports about a Python. */
#ifndef YRT_PYTHON_INSPECT_H
#define YRT_PYTHON_INSPECT_H

#include "python_image.h"
#include "report.h"
#include "runtime.h"

struct error *python_inspect(const struct python_image *image, u64 bias, const struct python_vm *vm,
        const struct runtime_process *p, struct report *out);

#endif
