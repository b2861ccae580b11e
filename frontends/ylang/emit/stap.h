/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as a script of SystemTap (4.8 and later, x86-64), which runs it where yrt is not. Addresses are those of
 * the process that it was compiled for: `stap -x PID`. Differences from what the VM prints stand at the script's head.
 *
 * Facts: man stap (language), stapprobes (probe points), stapfuncs and its tapset uconversions.stp (user_uint64() and
 * its kin raise an error for what cannot be read).
 */
#ifndef YRT_YLANG_STAP_H
#define YRT_YLANG_STAP_H

#include "frontends/ylang/ir.h"
#include "frontends/ylang/target.h"

/* ERROR_UNSUPPORTED: the program has something that the script cannot do, by name and place. */
struct error *y_stap_refuses(const struct y_program *p, struct y_target *t);
struct error *y_emit_stap(const struct y_program *p, struct y_target *t, FILE *out);

#endif
