/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an event brings to its command, as data beside the event: options, help, and what its last line says. What
 * stores call its values is in frontends/format/values.c; nothing else in frontends/ names an event.
 *
 * A new event NAME with an option --least BYTES:
 *
 *	struct NAME_options { u64 least; };			NAME.h; BPF and NAME.c read sampler_options.of_event
 *	enum { NAME_LEAST = EVENT_KEY };			NAME_command.c, from here on
 *	static const struct event_option options[] = {
 *		{NAME_LEAST, "least", "TIME", "only what takes at least TIME"}, {0}};
 *	static const struct setting own[] = {
 *		{NAME_LEAST, SETTING_OF(struct NAME_options, least), .name = "--least"}, {0}};
 *	const struct event_command NAME_command = {
 *		.size = sizeof(struct NAME_options), .options = options, .own = own};
 *
 * and .command_line = &NAME_command in its event_ops. An option that sets something of every run (the second value)
 * has a row in .run, for struct run_request; one that no row can express is taken by .option().
 */
#ifndef YRT_EVENT_COMMAND_H
#define YRT_EVENT_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "setting.h"

struct run_request;
struct sampler_stats;

#define EVENT_KEY 0x1000 /* keys of an event's long options begin here; a letter is a short option, too */

struct event_option {
	int key;
	const char *name;     /* the long option without its dashes; NULL: text is a heading */
	const char *argument; /* "TIME"; NULL: it takes none */
	const char *text;     /* what it does, its default */
};

struct event_example {
	const char *command; /* '@' stands for the name of the command */
	const char *text;
};

struct event_command {
	size_t size;                          /* of its options, sampler_options.of_event; zeroed at first */
	const char *const *usage;             /* up to NULL; NULL: as flame */
	const char *text;                     /* what --help says of it; NULL: what it says of every event */
	const struct event_example *examples; /* up to command NULL; NULL: those of every event */
	const struct event_option *first;   /* options that --help names first: it does nothing without; may be NULL */
	const struct event_option *options; /* up to key 0; may be NULL */
	const struct setting *own;          /* options that set members of its own options; may be NULL */
	const struct setting *run;          /* and members of struct run_request; may be NULL */
	/* Any other option. *taken: it is one of the event's. May be NULL. */
	struct error *(*option)(struct run_request *r, int key, const char *argument, bool *taken);
	/* Before options are read, where the event has the command: not by `record -e`. May be NULL. */
	void (*defaults)(struct run_request *r);
	/* When they were. recorded: by `record -e`, which keeps all. May be NULL. */
	struct error *(*check)(struct run_request *r, bool recorded);
	/*
	 * The conditions of --if as a program in Y, which the caller compiles (probes/y/y_condition.h) and frees.
	 * NULL if there are none, or no memory. own: begins with struct hit_options. The operation may be NULL.
	 */
	char *(*asks)(const void *own);
	/* Lines on why nothing was seen, besides those of every event. May be NULL. */
	void (*explain)(FILE *out, const struct run_request *r, const struct sampler_stats *st);
	/* How what waits without a thread is seen; NULL: it is shown. May be NULL. */
	const char *(*tasks_hint)(const void *own);
	/* The unit of its second value with these options; NULL: event_ops.more. May be NULL. */
	const char *(*more)(const void *own);
	const char *lister; /* the command that does the work of its first option --list; NULL: it has none */
	bool no_kernel;     /* kernel frames say nothing: they are the same for all */
};

/* What only one event has to say of a run, of sampler_stats.of_event. What it does not define is as for all events. */
struct event_words {
	const char *key;                                           /* in the statistics */
	void (*head)(FILE *out, const struct sampler_stats *st);   /* how much was seen, and how well */
	void (*losses)(FILE *out, const struct sampler_stats *st); /* what was lost in ways of its own */
	json_t *(*json)(const struct sampler_stats *st);
	void (*print)(FILE *out, const struct sampler_stats *st); /* for people, above the last line */
	bool says_idle;                                           /* head or losses say what was hidden as idle */
};

#endif
