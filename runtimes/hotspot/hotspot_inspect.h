/* SPDX-License-Identifier: Apache-2.0 */
/* What `yrt inspect` shows of a JVM: its version, flags, code, threads, layout, and the results of the checks. */
#ifndef YRT_HOTSPOT_INSPECT_H
#define YRT_HOTSPOT_INSPECT_H

#include "hotspot_instance.h"
#include "report.h"
#include "runtime.h"

/* As runtime_ops.inspect. */
struct error *hotspot_inspect(
        const struct hotspot_instance *instance, const struct runtime_process *p, struct report *out);

#endif
