/* SPDX-License-Identifier: Apache-2.0 */
/* `yrt cache`: how much the unwind tables on disk take, and where; --clear removes them. */
#include <getopt.h>
#include <stdio.h>

#include "cli.h"
#include "manual.h"
#include "unwind/cfi/cfi.h"
#include "unwind/cfi/cfi_cache_dir.h"

enum { CACHE_CLEAR = 256 };

static const struct manual_option options[] = {
        {CACHE_CLEAR, "clear", NULL, "remove them; they are made again when needed", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"[--clear]", NULL};

static const struct manual_example examples[] = {
        {"yrt cache", "where it is, the number of files, and their size"},
        {"yrt cache --clear", "empty it"},
        {NULL, NULL},
};

const struct manual cache_manual = {
        .usage = usage,
        .text = "Unwind tables are compiled once per file and kept on disk: in $YRT_CACHE_DIR, $XDG_CACHE_HOME/yrt, "
                "/var/cache/yrt (root) or ~/.cache/yrt. The part of the kernel's BTF that the BPF programs need is "
                "kept there too. If the files exceed YRT_CACHE_MB MiB (64), the least recently used are removed. With "
                "--no-cache other commands neither read nor write them.",
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
			err = manual_bad_option();
	}
	if (!err && optind < argc)
		err = error_hint(error_new(ERROR_USAGE, "what is \"%s\"?", argv[optind]), "--clear is its only option");
	if (!err && !dir)
		err = error_hint(error_new(ERROR_INPUT, "there is no place for a cache"), "set YRT_CACHE_DIR or HOME");
	if (!err)
		err = remove ? clear(dir) : show(dir);
	return err ? report_error(err) : 0;
}
