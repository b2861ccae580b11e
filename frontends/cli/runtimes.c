/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

int runtimes_main(const struct command_line *self, int argc, char **argv)
{
	if (argc > 1) {
		printf("usage: yrt %s\n\n%s.\n", self->name, self->summary);
		return argv[1][0] == '-' && (argv[1][1] == 'h' || argv[1][1] == '-') ? 0 : ERROR_USAGE;
	}
	printf("%-8s %-12s %s\n", "runtime", "command", "supported");
	printf("%-8s %-12s %s\n", "native", "c-flame", "C, C++, Rust: x86-64, with or without frame pointers, .eh_frame or .debug_frame");
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		printf("%-8s %s-flame%*s %s\n", (*r)->name, (*r)->view, (int)(6 - strlen((*r)->view)), "", (*r)->supported);
	return 0;
}
