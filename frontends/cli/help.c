/* SPDX-License-Identifier: Apache-2.0 */
/* help: the manuals of all commands, as text, man pages and shell completions. */
#include <stdio.h>

#include "cli.h"

enum { OPT_MAN = 256, OPT_COMPLETION, OPT_LIST };

static const struct manual_option options[] = {
        {OPT_MAN, "man", NULL, "print the man page, in man(7) macros", COMPLETE_NOTHING},
        {OPT_COMPLETION, "completion", "SHELL", "print the completions for bash, zsh or fish", COMPLETE_NOTHING},
        {OPT_LIST, "list", NULL, "print the names of the commands", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"[COMMAND] [options]", NULL};

static const struct manual_example examples[] = {
        {"yrt help flame", NULL},
        {"yrt help --man flame | man -l -", NULL},
        {"eval \"$(yrt help --completion bash)\"", "completions without installing yrt"},
        {NULL, NULL},
};

const struct manual help_manual = {
        .usage = usage,
        .options = options,
        .examples = examples,
        .operands = COMPLETE_COMMAND,
};

struct request {
	bool man, list, help;
	const char *shell;
};

static struct error *parse(const struct manual *m, int argc, char **argv, struct request *ret)
{
	struct manual_getopt g;
	int option;

	manual_getopt(m, &g);
	optind = 1;
	while ((option = getopt_long(argc, argv, g.shorts + 1, g.longs, NULL)) != -1) {
		if (option == OPT_MAN)
			ret->man = true;
		else if (option == OPT_LIST)
			ret->list = true;
		else if (option == OPT_COMPLETION)
			ret->shell = optarg;
		else if (option == 'h')
			ret->help = true;
		else
			return manual_bad_option();
	}
	return argc - optind > 1
	               ? error_new(ERROR_USAGE, "help takes one command; unexpected argument \"%s\"", argv[optind + 1])
	               : NULL;
}

static struct error *answer(const struct request *r, const struct command_line *c)
{
	if (r->list)
		for (c = commands; c->name; c++)
			puts(c->name);
	else if (r->shell && !manual_completion(stdout, r->shell))
		return error_new(ERROR_USAGE, "there are completions for bash, zsh and fish, not for \"%s\"", r->shell);
	else if (r->man)
		manual_page(stdout, c);
	else if (!r->shell && c)
		manual_help(stdout, c);
	else if (!r->shell)
		manual_overview(stdout);
	return NULL;
}

int help_main(const struct command_line *self, int argc, char **argv)
{
	struct request r = {0};
	const struct command_line *c = NULL;
	struct error *err = parse(self->manual, argc, argv, &r);

	if (!err && r.help)
		c = self;
	else if (!err && optind < argc && !(c = find_command(argv[optind])))
		err = no_command(argv[optind]);
	if (!err)
		err = answer(&r, c);
	return err ? report_error(err) : 0;
}
