/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "probes/machine.h"

int doctor_main(const struct command_line *self, int argc, char **argv)
{
	static const char *const words[] = { [MACHINE_OK] = "ok", [MACHINE_LESS] = "less", [MACHINE_MISSING] = "MISSING" };
	struct machine_check checks[MACHINE_CHECKS_MAX];
	bool works = true;
	u32 n;

	if (argc > 1) {
		printf("usage: yrt %s\n\n%s. Exit code %d if sampling is not possible.\n", self->name, self->summary,
			ERROR_PERMISSION);
		return !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ? 0 : ERROR_USAGE;
	}
	n = machine_check(checks);
	for (u32 i = 0; i < n; i++) {
		printf("%-15s %-8s %s\n", checks[i].what, words[checks[i].state], checks[i].found);
		if (checks[i].state != MACHINE_OK && checks[i].remedy)
			printf("%-15s %-8s -> %s\n", "", "", checks[i].remedy);
		works = works && checks[i].state != MACHINE_MISSING;
	}
	puts(works ? "\nyrt samples by BPF, inside the kernel: targets are neither paused nor changed." :
		     "\nyrt can not sample here. What still works: yrt runtimes, yrt doctor.");
	return works ? 0 : ERROR_PERMISSION;
}
