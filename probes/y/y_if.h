/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Conditions of probe and latency: which calls count. A handler of a Y program (frontends/ylang/) evaluates one as the
 * call begins; instead of counting stacks it says by the map that it adds to what the answer is (y_if.bpf.h).
 */
#ifndef YRT_Y_IF_H
#define YRT_Y_IF_H

#include <types.h>

#include "y.h"

enum y_if_answer { Y_IF_YES, Y_IF_NO, Y_IF_FAILED /* its value is the enum y_status */ }; /* maps, by number */

#endif
