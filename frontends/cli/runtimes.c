/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const char *const usage[] = {"", NULL};
static const struct manual_example examples[] = {
        {"yrt runtimes", "each runtime, the command for its view, and its versions"},
        {NULL, NULL},
};

const struct manual runtimes_manual = {.usage = usage, .examples = examples};

int runtimes_main(const struct command_line *self, int argc, char **argv)
{
	int code;

	if (manual_only_help(self, argc, argv, &code))
		return code;
	printf("%-8s %-12s %s\n", "runtime", "command", "supported");
	printf("%-8s %-12s %s\n", "native", "c-flame",
	        "C, C++, Rust: x86-64, with or without frame pointers, .eh_frame or .debug_frame");
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		printf("%-8s %s-flame%*s %s\n", (*r)->name, (*r)->view,
		        (int)(strlen((*r)->view) < 6 ? 6 - strlen((*r)->view) : 0), "", (*r)->supported);
	return 0;
}
