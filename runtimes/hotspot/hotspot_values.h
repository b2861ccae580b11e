/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of Java methods (unwind/runtime_calls.h), by the types that their descriptors declare.
 *
 * Interpreted: r14 points to the local variables as the first bytecode is read; each is 8 bytes below the one before. A
 * long or double takes two, and is in the second (register_x86.hpp, templateInterpreterGenerator.cpp, interp_masm_x86).
 * Compiled: the first six that are no floating point numbers are in rsi, rdx, rcx, r8, r9, rdi at the verified entry
 * (SharedRuntime::java_calling_convention() in sharedRuntime_x86_64.cpp; JDK 8 to 25). Others are not read.
 *
 * A box, such as Integer, has its number as its first field.
 */
#ifndef YRT_HOTSPOT_VALUES_H
#define YRT_HOTSPOT_VALUES_H

#include "hotspot_instance.h"
#include "runtime_calls.h"

/* What it returns: compiled code has that in rax as its frame is gone, but for floating point. */
void hotspot_result(
        struct hotspot_instance *instance, struct memory *mem, u64 klass, u64 constants, struct runtime_callee *c);
/* signature: "(int, java.lang.String)". klass, constants: the method's. c->executed says in which form. */
void hotspot_places(struct hotspot_instance *instance, struct memory *mem, u64 klass, u64 constants, bool is_static,
        const char *signature, struct runtime_callee *c);
/* As runtime_calls_ops.field, of a method with this signature. */
bool hotspot_fields(struct hotspot_instance *instance, struct memory *mem, u64 klass, bool is_static,
        const char *signature, u32 i, const char *fields, struct value_places *v, u32 slot);
/* runtime_calls_ops.value. */
void hotspot_value(void *instance, const struct runtime_process *p, const struct runtime_value *v, FILE *out);

#endif
