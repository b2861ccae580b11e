/* SPDX-License-Identifier: Apache-2.0 */
/* The argument of --processes. */
#ifndef YRT_PROCESSES_H
#define YRT_PROCESSES_H

#include "unwind/profile/profile.h"

struct error *processes_parse(const char *text, enum processes *ret);

#endif
