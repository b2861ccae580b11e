/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_REPORT_WATCH_H
#define YRT_REPORT_WATCH_H

#include "cli.h"

/*
 * Reports whenever the condition (when.h) holds, count times (0: until a signal ends it). argv: of the command, from
 * its name on. *code: the exit code of the last report.
 */
struct error *report_watch(struct flame_options *o, const char *condition, u32 count, int argc, char **argv, int *code);

#endif
