/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: one file per command, found by name in main.c's table. */
#ifndef YRT_CLI_H
#define YRT_CLI_H

#include <jansson.h>

#include "manual.h"
#include "probes/loss.h"
#include "probes/run.h"
#include "probes/select.h"
#include "send.h"
#include "probes/setting.h"
#include "unwind/error.h"

/* What a command is about: `yrt --help` lists commands by it. Those of events come first (enum event_topic). */
enum command_group {
	GROUP_CPU = TOPIC_CPU,
	GROUP_WAITING = TOPIC_WAITING,
	GROUP_CALLS = TOPIC_CALLS,
	GROUP_MEMORY = TOPIC_MEMORY,
	GROUP_PROFILES,
	GROUP_PROGRAM,
	COMMAND_GROUPS,
};

struct command_line {
	const char *name; /* of the command, as "lua-flame" */
	const char *summary;
	int (*run)(const struct command_line *self, int argc, char **argv); /* exit code; argv[0] is the command */
	const struct manual *manual;
	const struct event_ops *event; /* that it takes stacks of; NULL: the first one, or it takes none */
	enum command_group group;
	const char
	        *general; /* the command that does this for everything, as "flame"; NULL: it is no view of a language */
};

/* All, up to name NULL: those of main.c, and those of each language's view (unwind/process/view.h). */
extern const struct command_line *commands;
const struct command_line *find_command(const char *name); /* NULL: none of this name */
struct error *no_command(const char *name);                /* that says so, and what was probably meant */

extern const struct manual flame_manual, java_alloc_manual, symbolize_manual, top_manual, dump_manual, record_manual,
        render_manual, diff_manual;
extern const struct manual heap_manual, push_manual, watch_manual, report_manual, y_manual;
extern const struct manual cache_manual, functions_manual, inspect_manual, layout_manual, doctor_manual,
        runtimes_manual, help_manual;

int flame_main(const struct command_line *self, int argc, char **argv);
int snapshot_main(const struct command_line *self, int argc, char **argv);
int objects_main(const struct command_line *self, int argc, char **argv);
int java_alloc_main(const struct command_line *self, int argc, char **argv);
int symbolize_main(const struct command_line *self, int argc, char **argv);
int render_main(const struct command_line *self, int argc, char **argv);
int diff_main(const struct command_line *self, int argc, char **argv);
int heap_main(const struct command_line *self, int argc, char **argv);
int dump_main(const struct command_line *self, int argc, char **argv);
int push_main(const struct command_line *self, int argc, char **argv);
int report_main(const struct command_line *self, int argc, char **argv);
int watch_main(const struct command_line *self, int argc, char **argv);
int top_main(const struct command_line *self, int argc, char **argv);
int cache_main(const struct command_line *self, int argc, char **argv);
int doctor_main(const struct command_line *self, int argc, char **argv);
int runtimes_main(const struct command_line *self, int argc, char **argv);
int functions_main(const struct command_line *self, int argc, char **argv);
int inspect_main(const struct command_line *self, int argc, char **argv);
int y_main(const struct command_line *self, int argc, char **argv);
int layout_main(const struct command_line *self, int argc, char **argv);
int help_main(const struct command_line *self, int argc, char **argv);

/* The manual of an event's command, made of what it brings (event_command.h), and lives as long as yrt. NULL: out of
 * memory. In event_manual.c. */
const struct manual *event_manual(const struct event_ops *e);

/* The manual of <view>-<snapshot>, made of what the runtime says of it (runtime_snapshot.h); NULL: out of memory. In
 * snapshot.c. */
struct runtime_snapshot_ops;
const struct manual *snapshot_manual(const struct runtime_snapshot_ops *ops);

/*
 * The manual of <view>-heap or <view>-refs; *ret is NULL if no runtime of the view can be read so. False: out of
 * memory. In objects.c.
 */
struct view;
bool objects_manual(const struct view *view, bool refs, const struct manual **ret);

/* Prints "yrt: message" and the hint on stderr, frees err, returns its exit code. In say.c. */
int report_error(struct error *err);

/* What a flame command was asked for. */
struct flame_options {
	const char *output;
	const char *format;
	const char *stats_file;
	const char *title;
	bool annotate; /* as profile_meta.annotate */
	bool source;   /* as profile_meta.source */
	enum processes processes;
	bool quiet;
	u32 *tids;  /* of --tid */
	u32 denied; /* files of targets that yrt may not read */
	bool help;
	bool awaits; /* a process that is selected */
	struct selection selection;
	struct send_options send;
	bool named;           /* -o was given */
	char *replaces;       /* the file that is there already, while it runs; NULL: none, or -o names it */
	char *labels;         /* of labels.h, while it runs */
	const char *service;  /* what several programs are to a store: the selection, the command */
	bool async, no_async; /* as given */
	const char *event;    /* -e of record and top */
	struct run_request run;
};

enum flame_key { /* long options without a letter */
	FLAME_DEPTH = 256,
	FLAME_LINES,
	FLAME_SOURCE,
	FLAME_ADDRESSES,
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
	FLAME_CREATORS,
	FLAME_LABELS,
	FLAME_ANNOTATE,
	FLAME_PROCESSES,
	FLAME_EVENT,
	FLAME_AS_ALWAYS,
	FLAME_SELECT,
	FLAME_WAIT,
	FLAME_TIMELINE,
	FLAME_TID,
	FLAME_TITLE,
};

/* For the tables of all commands that look into processes; SELECT_OPTIONS where processes may join later. */
/* clang-format off */
#define PID_OPTIONS \
	{ 'p', "pid", "LIST", \
		"pids, separated by commas; or the name of a process, if no other has it", COMPLETE_PID }, \
	{ FLAME_SELECT, "select", "RULE", \
		"all processes with this exe=, comm=, cgroup=, pod=, container= or unit=. A RULE with commas, as " \
		"pod=UID,exe=nginx, takes those that match all of it; --select may be given several times", \
		COMPLETE_NOTHING }
/* Of commands that look into one: one_process() takes both. */
#define ONE_PROCESS_OPTIONS \
	{ 'p', "pid", "PID", "the process: its pid, or its name, if no other has it", COMPLETE_PID }, \
	{ FLAME_SELECT, "select", "RULE", \
		"the only process with this exe=, comm=, cgroup=, pod=, container= or unit=; a RULE with commas must " \
		"match as a whole", COMPLETE_NOTHING }
#define AWAIT_OPTIONS \
	PID_OPTIONS, \
	{ FLAME_WAIT, "wait", NULL, \
		"if no process matches --select yet, wait for one; --duration counts from then on", COMPLETE_NOTHING }
#define SELECT_OPTIONS \
	AWAIT_OPTIONS, \
	{ 'a', "all", NULL, "the whole machine: every process that runs (experimental)", COMPLETE_NOTHING }
/* clang-format on */

/* What a view of a language shows, by the name of the command. */
void flame_set_view(const struct command_line *self, struct flame_options *o);
/* A usage error names the option. Free it with flame_free(). */
struct error *flame_parse(const struct command_line *self, int argc, char **argv, struct flame_options *ret);
/* The parts of it, for commands with options of their own: optarg and optind are getopt's. */
void flame_defaults(struct flame_options *ret);
struct error *flame_option(int option, struct flame_options *o);
struct error *flame_operands(int argc, char **argv, struct flame_options *o);
struct error *flame_check(struct flame_options *o); /* targets and output */
/* The event that -e names, and its options. */
struct error *flame_set_event(struct flame_options *o);
struct error *flame_check_targets(struct flame_options *o);
/* Of the processes of -p, those that have ended are left out with a note. Fails if all have and none is selected. */
struct error *flame_leave_out_gone(struct flame_options *o);
/* That, and adds all processes that match o->selection. Fails if none does, unless o->awaits. */
struct error *flame_select(struct flame_options *o);
/* The same for a command that needs a process now: fails if none was given by -p either. */
struct error *flame_select_now(struct flame_options *o);
/* Says that none does yet, and what comes close. */
void flame_note_waiting(const struct flame_options *o);
void flame_free(struct flame_options *o);

/* Samples as o says, or prints --help; frees o. Returns the exit code. */
int flame_run(const struct command_line *self, struct flame_options *o, int argc, char **argv);
/* The same, and o stays: it may be done again. */
int flame_once(const struct command_line *self, struct flame_options *o, int argc, char **argv);
/* A dump of the processes of o, as text; output: a file. Returns the exit code. */
int dump_once(const struct flame_options *o, const char *output);
/* "yrt" and the arguments, as typed; malloc'd. NULL: out of memory. */
char *join_arguments(int argc, char **argv);

/* Set by SIGINT and SIGTERM once they are caught: ends sampling. */
extern volatile sig_atomic_t stop_sampling;
extern volatile sig_atomic_t interrupted; /* the same, and stays so */
void catch_signals(void);
void sleep_s(double seconds); /* or until stop_sampling is set */
/* For what can give no part of its result: SIGINT and SIGTERM end yrt at once, */
void release_signals(void);
/* but end only this sleep. */
void sleep_released_s(double seconds);
/* Adds those of a list "1,nginx". */
struct error *flame_add_pids(struct flame_options *o, const char *list);
/* The process that -p or --select (key) gives; fails if there are several. */
struct error *one_process(int key, const char *text, int *ret);
/*
 * The arguments of a command that looks into one: of these settings and ONE_PROCESS_OPTIONS; no operands, unless *help
 * is set, which is one of the settings.
 */
struct error *one_process_parse(const struct manual *manual, const struct setting *settings, int argc, char **argv,
        void *request, int *pid, const bool *help);

#endif
