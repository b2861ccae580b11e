/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: a file each command, found by name in main.c's table. */
#ifndef YRT_CLI_H
#define YRT_CLI_H

#include "manual.h"
#include "probes/sampler.h"
#include "setting.h"
#include "unwind/error.h"

struct command_line {
	const char *name; /* of the command, as "lua-flame" */
	const char *summary;
	int (*run)(const struct command_line *self, int argc, char **argv); /* exit code; argv[0] is the command */
	const struct manual *manual;
};

/* All, up to name NULL. */
extern const struct command_line commands[];
const struct command_line *find_command(const char *name); /* NULL: none of this name */

extern const struct manual flame_manual, java_alloc_manual, symbolize_manual, top_manual, record_manual, render_manual, diff_manual;
extern const struct manual inspect_manual, layout_manual, doctor_manual, runtimes_manual, help_manual;

int flame_main(const struct command_line *self, int argc, char **argv);
int java_alloc_main(const struct command_line *self, int argc, char **argv);
int symbolize_main(const struct command_line *self, int argc, char **argv);
int render_main(const struct command_line *self, int argc, char **argv);
int diff_main(const struct command_line *self, int argc, char **argv);
int top_main(const struct command_line *self, int argc, char **argv);
int doctor_main(const struct command_line *self, int argc, char **argv);
int runtimes_main(const struct command_line *self, int argc, char **argv);
int inspect_main(const struct command_line *self, int argc, char **argv);
int layout_main(const struct command_line *self, int argc, char **argv);
int help_main(const struct command_line *self, int argc, char **argv);

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
	bool annotate; /* as profile_meta.annotate */
	bool quiet;
	bool help;
	bool async, no_async; /* as given */
	bool objects; /* java-alloc: they are drawn, not bytes */
	struct sampler_options sampler;
};

enum flame_key { /* long options without a letter */
	FLAME_DEPTH = 256,
	FLAME_LINES,
	FLAME_STATS,
	FLAME_CPU,
	FLAME_NO_CACHE,
	FLAME_TRACES,
	FLAME_NO_JIT_INLINE,
	FLAME_NO_INLINE,
	FLAME_NO_DEMANGLE,
	FLAME_ASYNC,
	FLAME_NO_ASYNC,
	FLAME_SIGNATURES,
	FLAME_CARRIERS,
	FLAME_ANNOTATE,
};

/* A usage error names the option. Free pids with free(). */
struct error *flame_parse(int argc, char **argv, struct flame_options *ret);
/* The parts of it, for commands with options of their own: optarg and optind are getopt's. */
void flame_defaults(struct flame_options *ret);
struct error *flame_option(int option, struct flame_options *o);
struct error *flame_operands(int argc, char **argv, struct flame_options *o);
struct error *flame_check(const struct flame_options *o); /* targets and output */
struct error *flame_check_targets(const struct flame_options *o);

/* Samples as o says, or tells --help; frees o->pids. Returns the exit code. */
int flame_run(const struct command_line *self, struct flame_options *o, int argc, char **argv);

/* Set by SIGINT and SIGTERM once they are caught: ends sampling. */
extern volatile sig_atomic_t stop_sampling;
void catch_signals(void);
/* For -s (sampler.follow): adds the children that the processes have now, and theirs: those were not made under our eyes. */
struct error *flame_add_children(struct flame_options *o);
/* The targets, or the command. Of several, those that can be are attached; failed: exit code of one that was not. */
struct error *flame_attach(struct sampler *s, const struct flame_options *o, int *failed);

/* Adds a pid unless it is there already. False: out of memory. */
bool flame_add_pid(struct flame_options *o, int pid);
/* Adds those of a list "1,2". */
struct error *flame_add_pids(struct flame_options *o, const char *list);

/* Samples lost, of all causes. */
u64 total_lost(const struct sampler_stats *st);
/* The loss line, without newline. */
char *loss_line(const struct sampler_stats *st);
/* The statistics as one line of JSON. NULL: out of memory. */
char *stats_text(const struct sampler_stats *st);
struct error *stats_write(const struct sampler_stats *st, const char *path);

#endif
