/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const struct command_line commands[] = {
	{ "flame", "on-CPU time of everything in a process, full stacks", flame_main },
	{ "lua-flame", "the same for Lua: the VM's own frames give way to Lua's", flame_main },
	{ "c-flame", "the same for native code alone", flame_main },
	{ "doctor", "what this machine permits, and which way yrt will use", doctor_main },
	{ "runtimes", "language runtimes that are supported", runtimes_main },
	{ "inspect", "what yrt recognises in a process, and how it knows", inspect_main },
	{ "layout", "a data file for the layout library, from a build of a runtime", layout_main },
};

int report_error(struct error *err)
{
	int code = err->kind;

	fprintf(stderr, "yrt: %s\n", err->message);
	if (err->hint)
		fprintf(stderr, "     %s\n", err->hint);
	error_free(err);
	return code;
}

static void usage(FILE *out)
{
	fprintf(out, "yrt shows where a process spends its time, from the kernel to the line of script.\n\n"
		     "usage: yrt COMMAND [options]     yrt COMMAND --help\n\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fprintf(out, "\nexamples:\n"
		     "  yrt lua-flame -p 4242 -d 10 -o flame.html\n"
		     "  yrt flame -p $(pgrep -o nginx) -s -o flame.html\n"
		     "  yrt flame -o - -- ./program args | head\n");
}

int main(int argc, char **argv)
{
	/* tables that were only needed to load (the kernel's BTF, /proc/kallsyms) go back to the system */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(argc < 2 ? stderr : stdout);
		return argc < 2 ? ERROR_USAGE : 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("yrt " YRT_VERSION);
		return 0;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(&commands[i], argc - 1, argv + 1);
	return report_error(error_hint(error_new(ERROR_USAGE, "there is no command \"%s\"", argv[1]), "`yrt --help` lists them"));
}
