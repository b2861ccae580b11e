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

enum hotspot_check_result {
	HOTSPOT_CHECK_SILENT, /* nothing there to check: no nmethod yet */
	HOTSPOT_CHECK_HOLDS,
	HOTSPOT_CHECK_FAILS,
};

struct hotspot_check {
	const char *name; /* static: "code heaps", "segment map" … */
	const char *what; /* static: what must hold */
	enum hotspot_check_result result;
	u32 looked_at; /* how many heaps, blobs, threads … */
};

#define HOTSPOT_CHECKS 8

/* Runs all checks; returns their number. The JVM keeps running, so a failing check is repeated before it counts. */
u32 hotspot_check(const struct vmstructs *v, const struct hotspot_layout *l, const struct hotspot_code *code,
        struct memory *m, struct hotspot_check ret[HOTSPOT_CHECKS]);

/*
 * NULL if none fails, or the JVM is gone by now; else an error that names the first one that fails. *conclusive: all
 * checks hold; if not, and there is no error, try again.
 */
struct error *hotspot_check_process(const struct vmstructs *v, const struct hotspot_layout *l,
        const struct hotspot_code *code, struct memory *m, bool *conclusive);

#endif
