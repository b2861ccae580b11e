/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of the flame commands. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "frontends/format/format.h"
#include "unwind/cfi.h"

#define FREQUENCY_MAX 20000
#define DEPTH_MAX     8192
#define PIDS_MAX      1024

enum { OPT_DEPTH = 256, OPT_LINES, OPT_TRACES, OPT_NO_INLINE, OPT_STATS, OPT_CPU, OPT_NO_CACHE, OPT_HELP };

static const struct option long_options[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "duration", required_argument, NULL, 'd' },
	{ "freq", required_argument, NULL, 'F' },
	{ "rate", required_argument, NULL, 'r' },
	{ "output", required_argument, NULL, 'o' },
	{ "format", required_argument, NULL, 'f' },
	{ "threads", no_argument, NULL, 't' },
	{ "subprocesses", no_argument, NULL, 's' },
	{ "user", no_argument, NULL, 'U' },
	{ "kernel", no_argument, NULL, 'K' },
	{ "include", required_argument, NULL, 'I' },
	{ "exclude", required_argument, NULL, 'X' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "lines", no_argument, NULL, OPT_LINES },
	{ "traces", no_argument, NULL, OPT_TRACES },
	{ "no-jit-inline", no_argument, NULL, OPT_NO_INLINE },
	{ "stats", required_argument, NULL, OPT_STATS },
	{ "max-cpu", required_argument, NULL, OPT_CPU },
	{ "no-cache", no_argument, NULL, OPT_NO_CACHE },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

void flame_help(const struct command_line *self)
{
	printf("usage: yrt %s -p PID[,PID…] [options]\n       yrt %s [options] -- COMMAND [ARGS…]\n\n%s.\n\n", self->name,
		self->name, self->summary);
	printf("  -p, --pid LIST         processes to look into\n"
	       "  -s, --subprocesses     their children too, present and future\n"
	       "  -d, --duration SECS    how long (30; 0: until Ctrl-C; a command: until it ends)\n"
	       "  -F, --freq HZ          samples a second of CPU time (99); also -r, --rate\n"
	       "  -o, --output FILE      %s.html by default; - is stdout; %%p pid, %%t time\n"
	       "  -f, --format NAME      overrides the extension of FILE:\n",
		self->name);
	for (const struct format *const *f = formats; *f; f++)
		printf("                           %-8s %s\n", (*f)->name, (*f)->description);
	printf("  -t, --threads          a stack of its own for each thread\n"
	       "  -U, --user             leave out kernel frames\n"
	       "  -K, --kernel           leave out user frames\n"
	       "  -I, --include REGEX    only stacks with a frame that matches\n"
	       "  -X, --exclude REGEX    no stacks with a frame that matches\n"
	       "      --lines            split functions of scripts by the line being executed\n"
	       "      --traces           a frame for each piece of a JIT's machine code: its number and where it starts\n"
	       "      --no-jit-inline    only the function that was entered, not those inlined into a JIT's code\n"
	       "      --depth N          frames of a stack at most (1024; up to %d)\n"
	       "      --max-cpu PERCENT  of one CPU that yrt may take before it halves its rate (10; 0: no limit)\n"
	       "      --stats FILE       write what was seen and lost as JSON (- is stdout)\n"
	       "      --no-cache         do not keep compiled unwind tables on disk\n"
	       "  -q, --quiet            no progress\n\n"
	       "examples:\n"
	       "  yrt %s -p 4242 -d 10 -o flame.html\n"
	       "  yrt %s -p 4242 -F 999 -o - | sort -t' ' -k2 -n | tail\n",
		DEPTH_MAX, self->name, self->name);
}

static struct error *parse_number(const char *what, const char *text, double min, double max, double *ret)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= min) || !(value <= max))
		return error_new(ERROR_USAGE, "%s takes a number from %g to %g, not \"%s\"", what, min, max, text);
	*ret = value;
	return NULL;
}

bool flame_add_pid(struct flame_options *o, int pid)
{
	int *grown;

	for (int i = 0; i < o->npids; i++)
		if (o->pids[i] == pid)
			return true;
	grown = realloc(o->pids, (o->npids + 1) * sizeof(*grown));
	if (!grown)
		return false;
	o->pids = grown;
	o->pids[o->npids++] = pid;
	return true;
}

struct error *flame_add_pids(struct flame_options *o, const char *list)
{
	while (*list) {
		char *end;
		long pid = strtol(list, &end, 10);

		if (end == list || pid <= 0 || pid > 1 << 30 || (*end && *end != ',') || o->npids == PIDS_MAX)
			return error_new(ERROR_USAGE, "--pid takes pids separated by commas, not \"%s\"", list);
		if (!flame_add_pid(o, (int)pid))
			return &error_no_memory;
		list = *end ? end + 1 : end;
	}
	return NULL;
}

static struct error *parse_option(int option, struct flame_options *o)
{
	struct sampler_options *s = &o->sampler;
	struct error *err = NULL;
	double number;

	switch (option) {
	case 'p':
		return flame_add_pids(o, optarg);
	case 'd':
		return parse_number("--duration", optarg, 0, 1e7, &s->duration_s);
	case 'F':
	case 'r':
		return parse_number("--freq", optarg, 0.1, FREQUENCY_MAX, &s->frequency);
	case OPT_CPU:
		return parse_number("--max-cpu", optarg, 0, 1e6, &s->cpu_percent);
	case OPT_DEPTH:
		err = parse_number("--depth", optarg, 1, DEPTH_MAX, &number);
		if (!err)
			s->depth = (u32)number;
		return err;
	case 'o':
		o->output = optarg;
		break;
	case 'f':
		o->format = optarg;
		break;
	case 't':
		s->collect.threads = true;
		break;
	case 's':
		s->follow = true;
		break;
	case 'U':
		s->no_kernel = s->collect.no_kernel = true;
		break;
	case 'K':
		s->no_user = true;
		break;
	case 'I':
		s->collect.include = optarg;
		break;
	case 'X':
		s->collect.exclude = optarg;
		break;
	case 'q':
		o->quiet = true;
		break;
	case OPT_LINES:
		s->collect.names.lines = true;
		break;
	case OPT_TRACES:
		s->collect.names.expand |= EXPAND_TRACES;
		break;
	case OPT_NO_INLINE:
		s->collect.names.expand |= EXPAND_MERGE;
		break;
	case OPT_STATS:
		o->stats_file = optarg;
		break;
	case OPT_NO_CACHE:
		s->cache_dir = NULL;
		break;
	case 'h':
		o->help = true;
		break;
	default:
		return error_hint(error_new(ERROR_USAGE, "see the line above"), "--help tells all options");
	}
	return NULL;
}

static struct error *check(struct flame_options *o)
{
	if (o->sampler.no_user && o->sampler.no_kernel)
		return error_new(ERROR_USAGE, "-U and -K together leave nothing to show");
	if (!o->npids && !o->command)
		return error_hint(error_new(ERROR_USAGE, "no process was given"), "give -p PID, or a command behind --");
	if (o->npids && o->command)
		return error_new(ERROR_USAGE, "-p and a command behind -- exclude each other");
	if (!format_find(o->format, o->output))
		return error_hint(error_new(ERROR_USAGE, "no output format for %s", o->format ? o->format : o->output),
			"--help lists the formats and their extensions");
	return NULL;
}

struct error *flame_parse(int argc, char **argv, struct flame_options *ret)
{
	struct flame_options o = { .sampler = { .frequency = 99, .duration_s = -1, .depth = 1024, .cpu_percent = 10,
		.cache_dir = cfi_default_cache() } };
	static char name[64];
	struct error *err = NULL;
	int option;

	optind = 1;
	snprintf(name, sizeof(name), "%s.html", argv[0]);
	o.output = name;
	while (!err && (option = getopt_long(argc, argv, "+p:d:F:r:o:f:tsUKI:X:qh", long_options, NULL)) != -1)
		err = parse_option(option, &o);
	if (!err && optind < argc) {
		if (strcmp(argv[optind - 1], "--"))
			err = error_hint(error_new(ERROR_USAGE, "what is \"%s\"?", argv[optind]), "a command to run goes behind --");
		o.command = argv + optind;
	}
	if (o.sampler.duration_s < 0)
		o.sampler.duration_s = o.command ? 0 : 30;
	if (!err && !o.help)
		err = check(&o);
	if (err) {
		free(o.pids);
		return err;
	}
	*ret = o;
	return NULL;
}
