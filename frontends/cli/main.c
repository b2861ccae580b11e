/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "unwind/process/module.h"
#include "unwind/runtime_snapshot.h"

static const struct command_line fixed[] = {
        {"c-flame", "CPU time of native code only", flame_main, &flame_manual, .group = GROUP_CPU},
        {"top", "CPU time by function, live", top_main, &top_manual, .group = GROUP_CPU},
        {"dump", "every thread's stack now, what it waits for, deadlocks", dump_main, &dump_manual,
                .group = GROUP_WAITING},
        {"heap", "what all memory of a process is used for: in use, free, by size", heap_main, &heap_manual,
                .group = GROUP_MEMORY},
        {"record", "records CPU time in a file, to render and compare later", flame_main, &record_manual,
                .group = GROUP_PROFILES},
        {"render", "converts a recording to any format, on any machine", render_main, &render_manual,
                .group = GROUP_PROFILES},
        {"diff", "compares recordings: what changed", diff_main, &diff_manual, .group = GROUP_PROFILES},
        {"watch", "records for a short time at intervals, or on a condition", watch_main, &watch_manual,
                .group = GROUP_PROFILES},
        {"push", "sends a recording to Pyroscope, Parca, OpenTelemetry or Coroot", push_main, &push_manual,
                .group = GROUP_PROFILES},
        {"report", "measures by itself, and says what is wrong and what to change", report_main, &report_manual,
                .group = GROUP_PROGRAM},
        {"inspect", "the runtimes that yrt recognises in a process, and how", inspect_main, &inspect_manual,
                .group = GROUP_PROGRAM},
        {"functions", "functions of Python, Lua, Perl and Java that `yrt probe` can be asked for", functions_main,
                &functions_manual, .group = GROUP_PROGRAM},
        {"y", "asks a process or a core file with a program in Y, C over its own types", y_main, &y_manual,
                .group = GROUP_PROGRAM},
        {"symbolize", "functions, files and lines of addresses in a file", symbolize_main, &symbolize_manual,
                .group = GROUP_PROGRAM},
        {"layout", "describes a build of a runtime for the layout library", layout_main, &layout_manual,
                .group = GROUP_PROGRAM},
        {"doctor", "what this machine permits, and what is missing", doctor_main, &doctor_manual,
                .group = GROUP_PROGRAM},
        {"runtimes", "the language runtimes that yrt supports", runtimes_main, &runtimes_manual,
                .group = GROUP_PROGRAM},
        {"cache", "unwind tables kept on disk: where, how large; --clear", cache_main, &cache_manual,
                .group = GROUP_PROGRAM},
        {"help", "help, man pages and completions", help_main, &help_manual, .group = GROUP_PROGRAM},
};

#define COMMANDS_MAX 128
#define FIXED        (sizeof(fixed) / sizeof(*fixed))
static struct command_line all_commands[COMMANDS_MAX + 1];
static u32 ncommands;
const struct command_line *commands = all_commands;

static void add(const struct command_line *c)
{
	if (ncommands < COMMANDS_MAX)
		all_commands[ncommands++] = *c;
}

/* The command of a language. summary: has its name in the place of %s; NULL: c's stays. */
static bool add_view(struct command_line c, const struct view *v, const char *command, const char *summary)
{
	char *name, *text = NULL;

	if (asprintf(&name, "%s-%s", v->name, command) < 0 || (summary && asprintf(&text, summary, v->language) < 0))
		return false;
	c.name = name;
	c.summary = text ? text : c.summary;
	add(&c);
	return true;
}

/* Those of an event for everything, and for each language. */
static bool add_event(const struct event_ops *e, const struct view *v)
{
	struct command_line c = {
	        e->command, e->summary, flame_main, &flame_manual, e, .group = (enum command_group)e->topic};

	if (e != events[0] && !(c.manual = event_manual(e)))
		return false;
	if (v) {
		c.general = e->has_view ? NULL : e->command; /* one of some languages has a row of its own */
		return add_view(c, v, e->command, e->view);
	}
	add(&c);
	return true;
}

/* What comes with the event of the clock. What allocates is asked of the language's runtime. */
static bool add_others(const struct view *v)
{
	const struct command_line top = {.run = top_main, .manual = &top_manual, .group = GROUP_CPU, .general = "top"};
	const struct command_line dump = {
	        .run = dump_main, .manual = &dump_manual, .group = GROUP_WAITING, .general = "dump"};
	const struct command_line alloc = {
	        .run = java_alloc_main, .manual = &java_alloc_manual, .event = &tlab_event, .group = GROUP_MEMORY};

	return add_view(top, v, "top", "CPU time of %s by function, live") &&
	       add_view(dump, v, "dump", "every thread's stack of %s now, what it waits for, deadlocks") &&
	       (!v->alloc || add_view(alloc, v, "alloc",
	                             "memory that %s allocates, by stack and class, in bytes or objects"));
}

static bool add_snapshot(const struct view *v, const struct runtime_snapshot_ops *ops)
{
	struct command_line c = {.summary = ops->summary,
	        .run = snapshot_main,
	        .manual = snapshot_manual(ops),
	        .group = ops->memory ? GROUP_MEMORY : GROUP_WAITING};

	return c.manual && add_view(c, v, ops->name, NULL);
}

static bool add_snapshots(const struct view *v)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		for (u32 i = 0; view_has(v, (*r)->id) && (*r)->snapshots && (*r)->snapshots[i]; i++)
			if (!add_snapshot(v, (*r)->snapshots[i]))
				return false;
	return true;
}

/* What is alive, and who keeps it alive, where a runtime tells. */
static bool add_heap(const struct view *v, bool refs)
{
	struct command_line c = {.run = objects_main, .group = GROUP_MEMORY};

	if (!objects_manual(v, refs, &c.manual))
		return false;
	return !c.manual || add_view(c, v, refs ? "refs" : "heap",
	                            refs ? "who keeps the memory of %s alive: a flame graph of references"
	                                 : "the objects of %s that are alive, by type");
}

/* An event's command comes first, then the views of languages. */
static bool list_commands(void)
{
	for (const struct event_ops *const *e = events; *e; e++) {
		if ((*e)->command && !add_event(*e, NULL))
			return false;
		for (const struct view *v = views(); v->name; v++)
			if (((*e)->view && (!(*e)->has_view || (*e)->has_view(v)) && !add_event(*e, v)) ||
			        (*e == events[0] && !add_others(v)))
				return false;
	}
	for (const struct view *v = views(); v->name; v++)
		if (!add_snapshots(v) || !add_heap(v, false) || !add_heap(v, true))
			return false;
	for (u32 i = 0; i < FIXED; i++)
		add(&fixed[i]);
	return true;
}

const struct command_line *find_command(const char *name)
{
	for (const struct command_line *c = commands; c->name; c++)
		if (!strcmp(name, c->name))
			return c;
	return NULL;
}

int main(int argc, char **argv)
{
	const struct command_line *c;

	/* tables that were only needed to load (the kernel's BTF) go back to the system */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	if (!list_commands())
		return report_error(&error_no_memory);
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		manual_overview(argc < 2 ? stderr : stdout);
		return argc < 2 ? ERROR_USAGE : 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("yrt " YRT_VERSION);
		return 0;
	}
	c = find_command(argv[1]);
	manual_arguments(argv + 1);
	if (c)
		return c->run(c, argc - 1, argv + 1);
	return report_error(no_command(argv[1]));
}
