/* SPDX-License-Identifier: Apache-2.0 */
/* push: sends recordings, or folded stacks, to a profile store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "curl_library.h"
#include "say.h"
#include "send.h"

enum { PUSH_REMOVE = 256 };

static const struct manual_option options[] = {
        SEND_OPTIONS,
        {PUSH_REMOVE, "remove", NULL, "delete each file once the store has accepted it", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"FILE... --push URL [options]", NULL};

static const struct manual_example examples[] = {
        {"yrt push x.yrt --push pyroscope+http://pyroscope:4040", "a recording"},
        {"yrt push *.yrt --remove --push otlp+https://collector:4318", "recordings that could not be sent before"},
        {"perf script | stackcollapse-perf.pl | yrt push - --push parca+http://parca:7070 --label service.name=app",
                "stacks from other tools"},
        {NULL, NULL},
};

const struct manual push_manual = {
        .usage = usage,
        .text = "FILE is a recording of yrt record, or folded stacks; - is stdin. It is sent by HTTP to Pyroscope, "
                "Parca, an OpenTelemetry Collector or Coroot; YRT_PUSH_URL replaces --push. Set YRT_PUSH_TOKEN to the "
                "token (Bearer; Coroot's API key), so that it appears in no list of processes, and YRT_PUSH_USER to "
                "the user if the store wants Basic authentication, as Grafana Cloud does. If a store is down, busy or "
                "slow, yrt tries again after 0.5, 1, 2, 4 s, or as long as the store asks. A file that the "
                "store does not accept is kept, and yrt prints its name; stdin is kept in unsent-TIME.yrt.",
        .options = options,
        .examples = examples,
        .operands = COMPLETE_FILE,
};

struct push {
	struct send_options send;
	bool help, remove;
};

static const struct setting settings[] = {
        {'h', SETTING_OF(struct push, help), .on = true},
        {PUSH_REMOVE, SETTING_OF(struct push, remove), .on = true},
        {0},
};

/* The files are moved to the front of argv, *n of them. */
static struct error *parse(int argc, char **argv, struct push *p, int *n)
{
	struct manual_getopt g;
	struct error *err = NULL;
	bool taken = true;
	int option;

	manual_getopt(&push_manual, &g);
	optind = 1;
	p->send.url = getenv("YRT_PUSH_URL");
	while (!err && (option = getopt_long(argc, argv, g.shorts + 1, g.longs, NULL)) != -1) {
		err = settings_apply(settings, option, optarg, p, &taken);
		if (!err && !taken)
			err = send_option(option, optarg, &p->send, &taken);
		if (!err && !taken)
			err = manual_bad_option();
	}
	*n = argc - optind;
	if (err || p->help)
		return err;
	if (!*n)
		return error_hint(error_new(ERROR_USAGE, "no file was given"), "give recordings, or - for stdin");
	if (!p->send.url)
		return error_hint(error_new(ERROR_USAGE, "no store was given"),
		        "give --push URL, or set YRT_PUSH_URL; --help lists the stores");
	err = send_check(&p->send);
	return err ? err : curl_load(); /* before stdin is read */
}

/* Returns the exit code. */
static int push_one(const struct push *p, const char *path)
{
	bool is_file = strcmp(path, "-");
	struct send_result result;
	struct error *err = send_file(&p->send, path, &stop_sampling, &result);
	int code = err ? report_error(err) : 0;

	if (code == ERROR_OUTPUT && is_file)
		say_note("%s is kept", path);
	if (!code && p->remove && is_file)
		unlink(path);
	return code;
}

int push_main(const struct command_line *self, int argc, char **argv)
{
	struct push p = {.send = SEND_DEFAULTS};
	int n = 0, code = 0;
	struct error *err = parse(argc, argv, &p, &n);

	if (!err && p.help) {
		manual_help(stdout, self);
	} else if (!err) {
		catch_signals();
		for (int i = 0; i < n && !stop_sampling; i++) {
			int one = push_one(&p, argv[optind + i]);

			code = one ? one : code;
		}
	}
	free(p.send.labels);
	return err ? report_error(err) : code;
}
