/* SPDX-License-Identifier: Apache-2.0 */
/* What yrt itself, with the processes that it waited for, used of a CPU, by what it was for. */
#ifndef YRT_REPORT_COST_H
#define YRT_REPORT_COST_H

#include <stddef.h>
#include <types.h>

#define COST_PARTS 24

struct cost_part {
	char name[48];
	double cpu_s;
};

struct cost {
	struct cost_part part[COST_PARTS];
	u32 nparts;
	double began_s, used_s; /* up to the last part */
};

void cost_begin(struct cost *c);
/* What was used since the last part was for this. */
void cost_add(struct cost *c, const char *name);
/* "flame 0.31 s, go-refs 0.20 s": the parts that used most. */
void cost_most(struct cost *c, char *ret, size_t size);

#endif
