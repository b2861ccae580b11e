/* SPDX-License-Identifier: Apache-2.0 */
/* From frames of HotSpot to names of methods, classes and stubs. Caches: a name is read once. */
#ifndef YRT_HOTSPOT_NAMES_H
#define YRT_HOTSPOT_NAMES_H

#include "runtimes/hotspot/walk/hotspot.h"
#include "runtimes/hotspot/code/hotspot_code.h"
#include "runtime.h"

struct hotspot_names;

struct error *hotspot_names_create(const struct vmstructs *v, const struct hotspot_layout *l,
        const struct hotspot_code *code, struct hotspot_names **ret);
void hotspot_names_destroy(struct hotspot_names *n); /* NULL is fine */

/* Where the JVM keeps StubCodeDesc::_list, which vmStructs do not give; without it fewer stubs have a name of their
 * own. */
void hotspot_names_stub_list(struct hotspot_names *n, u64 address);

/* As runtime_ops.name_frame, for all kinds of frames (HOTSPOT_NMETHOD: one that could not be expanded, by its root
 * method). */
bool hotspot_name_frame(struct hotspot_names *n, struct memory *m, const struct frame *f, struct frame_name *ret);

/*
 * Which stack the next calls of hotspot_expand() are for; 0, as at first: each is for another. All nmethods of a stack
 * were in use when its expansion began, so what was read for one of them is recent enough for the next.
 */
void hotspot_names_stack(struct hotspot_names *n, u64 stack);

/*
 * As runtime_ops.expand: a HOTSPOT_NMETHOD frame becomes its methods, innermost first, by the PcDescs and scopes of the
 * nmethod (hotspot_scopes.h). Callers (return addresses) are exact. At the leaf the root method and the prefix that the
 * neighbouring PcDescs share are certain; what is drawn beyond that is FRAME_APPROX, as is the innermost method of a
 * frame that is.
 */
u32 hotspot_expand(struct hotspot_names *n, struct memory *m, const struct frame *frames, u32 i, u32 count, u32 flags,
        struct frame *ret, u32 max, u32 *eaten);

/*
 * As runtime_ops.is_runtime_internal: functions that lead into Java code, and those that start a Java thread. The JVM's
 * work for Java code stays visible: allocation, linking, locks, collectors, compilers.
 */
bool hotspot_is_internal(const char *symbol);

/* As runtime_ops.is_thread_entry: functions by which libjvm starts its threads, and the launcher that of main(). */
bool hotspot_is_thread_entry(const char *symbol);

/*
 * Is this, such as "java.lang.invoke.LambdaForm$MH.invoke", made by the JVM for a method handle, between the caller and
 * the handle's method? The JVM leaves it out of stack traces too (-XX:-ShowHiddenFrames).
 */
bool hotspot_is_handle(const char *method);

/* As runtime_alloc_ops.is_runtime_internal: the VM's slow path from a method to its new object. */
bool hotspot_alloc_is_internal(const char *symbol);

/* Has an nmethod this method inlined? *into: what was compiled. */
bool hotspot_has_inlined(struct hotspot_names *n, struct memory *m, u64 nmethod, u64 method, u64 *into);

#endif
