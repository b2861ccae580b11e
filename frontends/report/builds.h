/* SPDX-License-Identifier: Apache-2.0 */
/* How the program of a process was built, by its debug information (DW_AT_producer, DWARF 5 3.1.1). */
#ifndef YRT_REPORT_BUILDS_H
#define YRT_REPORT_BUILDS_H

#include <sys/types.h>

#include "facts.h"

/* build.unoptimised: the part of its units that gcc compiled without -O; build.file. Nothing where nothing says so. */
void builds_facts(pid_t pid, struct facts *ret);

#endif
