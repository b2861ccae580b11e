/* SPDX-License-Identifier: Apache-2.0 */
/* `yrt layout`: makes a data file of the layout library from a build with debug information. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "output.h"
#include "manual.h"
#include "unwind/cleanup.h"
#include "unwind/layout/layout.h"
#include "unwind/runtime.h"

static const struct manual_option options[] = {
        {'r', "runtime", "NAME", "the runtime in FILE (luajit)", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"FILE [--runtime NAME]", NULL};

static const struct manual_example examples[] = {
        {"yrt layout libluajit-5.1.so.2 > layouts/mine.layout",
                "a build with debug information, or whose debug file is installed"},
        {"YRT_LAYOUTS=layouts yrt lua-flame -p 4242", "profiles programs with a stripped copy of that build"},
        {NULL, NULL},
};

const struct manual layout_manual = {
        .usage = usage,
        .text = "Prints where the members of a runtime's structures are, from the debug information in FILE (a "
                "program, a library, or a separate debug file) or in the debug file that belongs to FILE. Write the "
                "output to DIRECTORY/ANYTHING.layout and set YRT_LAYOUTS=DIRECTORY. yrt then recognises stripped files "
                "with that build-id, and others of the same layout if their code agrees.",
        .options = options,
        .examples = examples,
        .operands = COMPLETE_FILE,
};

/* name NULL: the first that has layouts. */
static const struct layout_schema *find_schema(const char *name)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if ((*r)->layout && (!name || !strcmp((*r)->name, name)))
			return (*r)->layout;
	return NULL;
}

static void print_origin(const struct image *img, const struct layout *l, FILE *out)
{
	const char *debug = l->details[LAYOUT_DEBUG_FILE], *path = debug ? debug : img->path,
	           *slash = strrchr(path, '/');
	char id[IMAGE_ID_TEXT];

	fprintf(out, "# made by yrt " YRT_VERSION " from the DWARF of %s\nruntime %s\n", slash ? slash + 1 : path,
	        l->schema->runtime);
	if (!img->build_id_len)
		return;
	image_id_text(img, id);
	fprintf(out, "build-id %s\n", id);
}

static struct error *no_layout(struct error *err, const char *path)
{
	if (err == &error_no_memory)
		return err;
	return error_hint(err,
	        "build it with -g (and -fno-eliminate-unused-debug-types), or install the debug package of %s", path);
}

static struct error *print_image(struct image *img, const struct layout_schema *schema)
{
	struct layout *l;
	struct error *err = layout_create(schema, &l);

	if (err)
		return err;
	err = layout_from_debug(img, "", l);
	if (!err && (err = layout_complete(l, img->path)))
		err = no_layout(err, img->path);
	if (!err) {
		print_origin(img, l, stdout);
		layout_print(l, stdout);
	}
	layout_destroy(l);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = error_new(ERROR_OUTPUT, "cannot write stdout: %s", strerror(errno));
	return output_unread(stdout, err);
}

static struct error *print_path(const char *path, const struct layout_schema *schema)
{
	cleanup(free) char *full = realpath(path, NULL);
	int fd = full ? open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	struct image *img;
	struct error *err;

	if (fd < 0)
		return error_errno(errno, "%s", path);
	err = image_open(fd, full, &img);
	if (err)
		return err;
	err = print_image(img, schema);
	image_put(img);
	return err;
}

int layout_main(const struct command_line *self, int argc, char **argv)
{
	struct manual_getopt table;
	const char *runtime = NULL;
	const struct layout_schema *schema;
	struct error *err;
	int c;

	manual_getopt(&layout_manual, &table);
	optind = 1;
	while ((c = getopt_long(argc, argv, table.shorts + 1, table.longs, NULL)) != -1) {
		if (c == 'h') {
			manual_help(stdout, self);
			return 0;
		}
		if (c != 'r')
			return report_error(manual_bad_option());
		runtime = optarg;
	}
	if (argc - optind != 1)
		return report_error(error_hint(error_new(ERROR_USAGE, "one FILE is needed"), "--help describes it"));
	schema = find_schema(runtime);
	if (!schema)
		err = error_hint(error_new(ERROR_USAGE, "no runtime \"%s\" has layouts", runtime ? runtime : ""),
		        "`yrt %s --help` lists the runtimes with layouts", self->name);
	else
		err = print_path(argv[optind], schema);
	return err ? report_error(err) : 0;
}
