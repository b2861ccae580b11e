/* SPDX-License-Identifier: Apache-2.0 */
/* `yrt cache`: how much the unwind tables on disk take, and where; and away with them. */
#include <getopt.h>
#include <stdio.h>

#include "cli.h"
#include "manual.h"
#include "unwind/cfi/cfi.h"
#include "unwind/cfi/cfi_cache_dir.h"

enum { CACHE_CLEAR = 256 };

static const struct manual_option options[] = {
        {CACHE_CLEAR, "clear", NULL, "remove them: they are made again when they are needed", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"[--clear]", NULL};

static const struct manual_example examples[] = {
        {"yrt cache", "where it is, how many files, how much they take of how much"},
        {"yrt cache --clear", "away with them"},
        {NULL, NULL},
};

const struct manual cache_manual = {
        .usage = usage,
        .text = "Unwind tables are compiled from a file once and kept on disk: in $YRT_CACHE_DIR, $XDG_CACHE_HOME/yrt, "
                "/var/cache/yrt\n"
                "(root) or ~/.cache/yrt. So is the part of the kernel's BTF that the BPF programs need. At most "
                "YRT_CACHE_MB MiB\n"
                "(64): beyond that what was used least recently goes. --no-cache does without.",
        .options = options,
        .examples = examples,
};

static struct error *show(const char *dir)
{
	struct cache_use use;
	struct error *err = cache_use(dir, &use);

	if (!err)
		printf("%s: %u files, %.1f of %.0f MiB\n", dir, use.files, (double)use.bytes / (1 << 20),
		        (double)cache_limit() / (1 << 20));
	return err;
}

static struct error *clear(const char *dir)
{
	struct cache_use removed;
	struct error *err = cache_shrink(dir, 0, &removed);

	if (!err)
		printf("%s: removed %u files, %.1f MiB\n", dir, removed.files, (double)removed.bytes / (1 << 20));
	return err;
}

int cache_main(const struct command_line *self, int argc, char **argv)
{
	struct manual_getopt table;
	const char *dir = cfi_default_cache();
	bool remove = false;
	struct error *err = NULL;
	int c;

	manual_getopt(&cache_manual, &table);
	optind = 1;
	while (!err && (c = getopt_long(argc, argv, table.shorts + 1, table.longs, NULL)) != -1) {
		if (c == 'h') {
			manual_help(stdout, self);
			return 0;
		}
		remove = c == CACHE_CLEAR;
		if (!remove)
			err = error_hint(error_new(ERROR_USAGE, "see the line above"), "--help lists all options");
	}
	if (!err && optind < argc)
		err = error_hint(error_new(ERROR_USAGE, "what is \"%s\"?", argv[optind]), "--clear is all it takes");
	if (!err && !dir)
		err = error_hint(error_new(ERROR_INPUT, "there is no place for a cache"), "set YRT_CACHE_DIR or HOME");
	if (!err)
		err = remove ? clear(dir) : show(dir);
	return err ? report_error(err) : 0;
}
