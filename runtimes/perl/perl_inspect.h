/* SPDX-License-Identifier: Apache-2.0 */
/* What `yrt inspect` shows of Perl in a process. */
#ifndef YRT_PERL_INSPECT_H
#define YRT_PERL_INSPECT_H

#include "perl_image.h"
#include "report.h"
#include "runtime.h"

struct error *perl_inspect(const struct perl_image *image, u64 bias, const struct perl_vm *vm,
        const struct runtime_process *p, struct report *out);

#endif
