/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where calls of Java methods can be seen (unwind/runtime_calls.h).
 *
 * Interpreted: the entry of a method ends with the dispatch of its first bytecode, which it reads at ConstMethod + its
 * size (templateInterpreterGenerator.cpp: generate_normal_entry()). A jump back to that bytecode reads it too, but
 * elsewhere: only reads from the codelets "method entry point" begin a call. ConstMethods do not move; a class that is
 * redefined gets new ones.
 *
 * Compiled: at the verified entry of the nmethod that Method._code has, which callers reach directly, by an inline
 * cache, or from the interpreter by an adapter. Code that is entered within a loop (OSR) is no call, and another
 * nmethod. That entry is in nmethod::_verified_entry_point up to 22, then at _verified_entry_offset of its code.
 *
 * Classes are those of all loaders; JDK 8 does not say which those have, so there they are those below Object.
 */
#ifndef YRT_HOTSPOT_CALLS_H
#define YRT_HOTSPOT_CALLS_H

#include "hotspot_instance.h"
#include "runtime_calls.h"

/* runtime_calls_ops. */
extern const struct runtime_calls_ops hotspot_calls;

#endif
