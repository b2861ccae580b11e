/* SPDX-License-Identifier: Apache-2.0 */
/* The manual of an event's command: rows that all share, and those that the event brings (probes/event_command.h). */
#include <stdlib.h>

#include "flame_rows.h"
#include "probes/event_command.h"

static const char *const event_usage[] = {
        "-p PID[,PID...] [options]", "--select RULE [options]", "[options] -- COMMAND [ARGS...]", NULL};
static const struct manual_option target_rows[] = {TARGET_ROWS(AWAIT_OPTIONS){0}};
static const struct manual_option rate_rows[] = {RATE_ROWS{0}};
static const struct manual_option output_rows[] = {OUTPUT_ROWS{0}};

static const struct manual_example event_examples[] = {
        {"yrt @ -p 4242 -d 10 -o event.html", "ten seconds of a process as a page for a browser"},
        {"yrt @ -p 4242 -s -t -f txt -o - | less", "with its children, by thread, as a tree in the terminal"},
        {"yrt @ -o event.html -- ./program args", "a program from start to end"},
        {NULL, NULL},
};

static const char event_text[] =
        "Ctrl-C ends sampling early and keeps the result. The last line on stderr counts the events and what was lost, "
        "by cause. -I and -X take POSIX extended regular expressions.";

static void add_rows(struct manual_option *to, u32 *n, const struct manual_option *rows)
{
	for (; rows->key && *n < MANUAL_OPTIONS_MAX; rows++)
		to[(*n)++] = *rows;
}

static void add_own(struct manual_option *to, u32 *n, const struct event_option *rows)
{
	for (; rows && rows->key && *n < MANUAL_OPTIONS_MAX; rows++)
		to[(*n)++] =
		        (struct manual_option){rows->key, rows->name, rows->argument, rows->text, COMPLETE_NOTHING};
}

/* Of what is not rated, the budget is kept by leaving out some. */
static void word_budget(struct manual_option *rows, const struct event_ops *e)
{
	for (; rows->key; rows++)
		if (rows->key == FLAME_CPU && !e->rated)
			rows->text = "how much of one CPU stacks may take; if all take more, some are taken at random "
			             "and stand for the others (10; 0: no limit, all are taken)";
}

static const struct manual_option *all_rows(const struct event_ops *e)
{
	static const struct event_command none;
	const struct event_command *c = e->command_line ? e->command_line : &none;
	struct manual_option *ret = calloc(MANUAL_OPTIONS_MAX + 1, sizeof(*ret));
	u32 n = 0;

	if (!ret)
		return NULL;
	add_own(ret, &n, c->first);
	add_rows(ret, &n, target_rows);
	if (e->rated)
		add_rows(ret, &n, rate_rows);
	add_own(ret, &n, c->options);
	add_rows(ret, &n, output_rows);
	word_budget(ret, e);
	return ret;
}

static const struct manual_example *all_examples(const struct event_command *c)
{
	struct manual_example *ret;
	u32 n = 0;

	if (!c || !c->examples)
		return event_examples;
	while (c->examples[n].command)
		n++;
	ret = calloc(n + 1, sizeof(*ret));
	for (u32 i = 0; ret && i < n; i++)
		ret[i] = (struct manual_example){c->examples[i].command, c->examples[i].text};
	return ret;
}

const struct manual *event_manual(const struct event_ops *e)
{
	const struct event_command *c = e->command_line;
	struct manual *ret = calloc(1, sizeof(*ret));

	if (!ret)
		return NULL;
	ret->usage = c && c->usage ? c->usage : event_usage;
	ret->text = c && c->text ? c->text : event_text;
	ret->options = all_rows(e);
	ret->examples = all_examples(c);
	return ret->options && ret->examples ? ret : NULL;
}
