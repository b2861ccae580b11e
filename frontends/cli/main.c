/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "colour.h"

const struct command_line commands[] = {
	{ "flame", "on-CPU time of everything in a process, full stacks", flame_main, &flame_manual },
	{ "lua-flame", "on-CPU time of Lua: the VM's own frames give way to Lua's", flame_main, &flame_manual },
	{ "python-flame", "on-CPU time of Python: the interpreter's loop gives way to Python's", flame_main, &flame_manual },
	{ "java-flame", "on-CPU time of Java: the JVM's own glue gives way to methods", flame_main, &flame_manual },
	{ "java-alloc", "where Java allocates memory: stacks down to the class, in bytes or objects", java_alloc_main,
		&java_alloc_manual },
	{ "c-flame", "on-CPU time of native code alone", flame_main, &flame_manual },
	{ "symbolize", "functions, files and lines of addresses in a file", symbolize_main, &symbolize_manual },
	{ "record", "on-CPU time kept in a file, to be drawn and compared later", flame_main, &record_manual },
	{ "render", "draws a recording in any format, on any machine", render_main, &render_manual },
	{ "diff", "what changed between two recordings", diff_main, &diff_manual },
	{ "top", "on-CPU time as a live table, a row a function", top_main, &top_manual },
	{ "inspect", "what yrt recognises in a process, and how it knows", inspect_main, &inspect_manual },
	{ "layout", "a data file for the layout library, from a build of a runtime", layout_main, &layout_manual },
	{ "doctor", "what this machine permits, and which way yrt will use", doctor_main, &doctor_manual },
	{ "runtimes", "language runtimes that are supported", runtimes_main, &runtimes_manual },
	{ "help", "this text, that of a command, man pages and completions", help_main, &help_manual },
	{ NULL, NULL, NULL, NULL },
};

const struct command_line *find_command(const char *name)
{
	for (const struct command_line *c = commands; c->name; c++)
		if (!strcmp(name, c->name))
			return c;
	return NULL;
}

int report_error(struct error *err)
{
	int code = err->kind;

	fprintf(stderr, "%syrt:%s %s\n", colour(stderr, COLOUR_RED), colour(stderr, COLOUR_NONE), err->message);
	if (err->hint)
		fprintf(stderr, "     %s\n", err->hint);
	error_free(err);
	return code;
}

int main(int argc, char **argv)
{
	const struct command_line *c;

	/* tables that were only needed to load (the kernel's BTF, /proc/kallsyms) go back to the system */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		manual_overview(argc < 2 ? stderr : stdout);
		return argc < 2 ? ERROR_USAGE : 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("yrt " YRT_VERSION);
		return 0;
	}
	c = find_command(argv[1]);
	if (c)
		return c->run(c, argc - 1, argv + 1);
	return report_error(error_hint(error_new(ERROR_USAGE, "there is no command \"%s\"", argv[1]), "`yrt --help` lists them"));
}
