/* SPDX-License-Identifier: Apache-2.0 */
/* perf's page-faults-min and page-faults-maj of each CPU with a period of 1, for a program that wants each fault. */
#ifndef YRT_FAULT_EVENTS_H
#define YRT_FAULT_EVENTS_H

#include <types.h>

#include "probes/object.h"
#include "unwind/error.h"

struct fault_events {
	int *fds; /* two of each CPU that is online */
	u32 n;
};

/* The program's descriptor. Free with fault_events_close() also after an error. */
struct error *fault_events_open(int program, struct fault_events *ret);
void fault_events_close(struct fault_events *f);

#endif
