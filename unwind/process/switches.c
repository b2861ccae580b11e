/* SPDX-License-Identifier: Apache-2.0 */
#include "switches.h"

#include <stdio.h>

#include "unwind/cleanup.h"

bool switches_read(u32 tgid, u32 tid, struct switches *ret)
{
	cleanup(fclose) FILE *file = NULL;
	char text[256];
	int found = 0;

	snprintf(text, sizeof(text), "/proc/%u/task/%u/status", tgid, tid);
	file = fopen(text, "re");
	while (file && found < 2 && fgets(text, sizeof(text), file))
		found += sscanf(text, "voluntary_ctxt_switches: %lu", &ret->voluntary) == 1 ||
		         sscanf(text, "nonvoluntary_ctxt_switches: %lu", &ret->others) == 1;
	return found == 2;
}
