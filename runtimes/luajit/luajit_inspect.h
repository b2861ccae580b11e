/* SPDX-License-Identifier: Apache-2.0 */
/* What `yrt inspect` shows of LuaJIT in a process. */
#ifndef YRT_LUAJIT_INSPECT_H
#define YRT_LUAJIT_INSPECT_H

#include "luajit_image.h"
#include "report.h"
#include "runtime.h"

/*
 * Sections: "module", "code", "layout", "search"; for each VM a "vm" (its subject: address of the global_State), and
 * "checks" of it. Memory is read while the process runs: counts are those of a moment.
 */
struct error *luajit_inspect(
        const struct luajit_image *image, u64 bias, const struct runtime_process *p, struct report *out);

#endif
