/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: a file each command, found by name in main.c's table. */
#ifndef YRT_CLI_H
#define YRT_CLI_H

#include "probes/sampler.h"
#include "unwind/error.h"

struct command_line {
	const char *name; /* of the command, as "lua-flame" */
	const char *summary;
	int (*run)(const struct command_line *self, int argc, char **argv); /* exit code; argv[0] is the command */
};

int flame_main(const struct command_line *self, int argc, char **argv);
int doctor_main(const struct command_line *self, int argc, char **argv);
int runtimes_main(const struct command_line *self, int argc, char **argv);
int inspect_main(const struct command_line *self, int argc, char **argv);
int layout_main(const struct command_line *self, int argc, char **argv);

/* Prints "yrt: message" and the hint on stderr, frees err, returns its exit code. */
int report_error(struct error *err);

/* What a flame command was asked for. */
struct flame_options {
	int *pids;
	int npids;
	char **command; /* behind --; NULL: none */
	const char *output;
	const char *format;
	const char *stats_file;
	bool quiet;
	bool help;
	struct sampler_options sampler;
};

/* A usage error names the option. Free pids with free(). */
struct error *flame_parse(int argc, char **argv, struct flame_options *ret);
void flame_help(const struct command_line *self);

/* Adds a pid unless it is there already. False: out of memory. */
bool flame_add_pid(struct flame_options *o, int pid);
/* Adds those of a list "1,2". */
struct error *flame_add_pids(struct flame_options *o, const char *list);
/* For -s (sampler.follow): adds the children that the processes have now, and theirs. */
struct error *flame_add_children(struct flame_options *o);

/* "%p" and "%t" in a file name become the pid and the time; "%%" a percent sign. */
char *expand_name(const char *pattern, int pid);

/* Samples lost, of all causes. */
u64 total_lost(const struct sampler_stats *st);
/* The loss line, without newline. */
char *loss_line(const struct sampler_stats *st);
struct error *stats_write(const struct sampler_stats *st, const char *path);

#endif
