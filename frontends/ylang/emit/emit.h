/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as a script of a debugger, which needs neither yrt nor debug information: offsets and addresses are in it.
 * It checks the build-ids of the files that it was made for. What it prints is what the VM prints.
 */
#ifndef YRT_YLANG_EMIT_H
#define YRT_YLANG_EMIT_H

#include "frontends/ylang/ir.h"

enum y_debugger { Y_GDB, Y_LLDB };

struct error *y_script_refuses(const struct y_program *p, enum y_debugger debugger);
/* ERROR_UNSUPPORTED: the program has something that the debugger cannot do, by name and place. */
struct error *y_emit_script(const struct y_program *p, enum y_debugger debugger, FILE *out);

#endif
