/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the layout on a live JVM, by what its structures must fulfil (memory/heap.hpp, code/codeBlob.hpp,
 * code/nmethod.hpp, code/pcDesc.hpp, oops/method.hpp, runtime/threads.hpp): blocks of a heap follow each other, the
 * segment map leads back to them, an nmethod's method has a name and points back, PcDescs ascend. A wrong offset makes
 * the check fail that uses its member.
 */
#ifndef YRT_HOTSPOT_CHECK_H
#define YRT_HOTSPOT_CHECK_H

#include "runtimes/hotspot/code/hotspot_code.h"
#include "runtimes/hotspot/layout/hotspot_layout.h"
#include "runtimes/hotspot/layout/hotspot_vmstructs.h"
#include "binary/memory.h"
#include "runtime_check.h"

extern const struct runtime_checks hotspot_checks;

/* Runs them all; ret: as of runtime_check(). */
void hotspot_check(const struct vmstructs *v, const struct hotspot_layout *l, const struct hotspot_code *code,
        struct memory *m, int ret[RUNTIME_CHECKS_MAX]);

/*
 * NULL if none fails, or the JVM is gone by now; else an error that names the first one that fails. *conclusive: all
 * checks hold; if not, and there is no error, try again.
 */
struct error *hotspot_check_process(const struct vmstructs *v, const struct hotspot_layout *l,
        const struct hotspot_code *code, struct memory *m, bool *conclusive);

#endif
