/* SPDX-License-Identifier: Apache-2.0 */
/* symbolize: addresses of a file to functions, files and lines, printed as llvm-symbolizer prints them. */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <types.h>
#include <unistd.h>

#include "cli.h"
#include "output.h"
#include "say.h"
#include "unwind/cleanup.h"
#include "unwind/error.h"
#include "unwind/grow.h"
#include "unwind/symbols/debuginfod.h"
#include "unwind/symbols/demangled.h"
#include "unwind/symbols/inlines.h"
#include "unwind/symbols/symbols.h"

/*
 * Lines of input in batches of as many as are available, so that a script gets its answer and a long list is one batch.
 */

#define BATCH (4u << 20)

static bool more_is_there(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Until the buffer is full, nothing is there at the moment (but something was), or the end. */
static struct error *fill(int fd, char *buf, size_t *have, bool *end)
{
	bool got = false;

	while (*have < BATCH && (!got || more_is_there(fd))) {
		ssize_t n = read(fd, buf + *have, BATCH - *have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(errno, "cannot read stdin");
		*end = !n;
		if (!n)
			return NULL;
		*have += n;
		got = true;
	}
	return NULL;
}

/* All whole lines; *used is where the first that is not whole starts. */
static struct error *split(
        char *buf, size_t have, bool end, size_t *used, struct error *(*line)(void *, const char *), void *ctx)
{
	struct error *err = NULL;
	char *newline;

	for (*used = 0; *used < have && !err; *used = newline + 1 - buf) {
		newline = memchr(buf + *used, '\n', have - *used);
		if (!newline && !end && (*used || have < BATCH))
			break;
		newline = newline ? newline : buf + have;
		*newline = 0;
		err = line(ctx, buf + *used);
	}
	return err;
}

/*
 * line() for each line (without its newline; it stays until pause() returns), pause() when nothing more is there at the
 * moment, and at the end. A batch is at most some MiB. The first error of any of them ends it.
 */
static struct error *lines_read(
        int fd, struct error *(*line)(void *ctx, const char *text), struct error *(*pause)(void *ctx), void *ctx)
{
	cleanup(free) char *buf = malloc(BATCH + 1);
	struct error *err = NULL;
	size_t have = 0, used = 0;
	bool end = false;

	if (!buf)
		return &error_no_memory;
	while (!end && !err) {
		err = fill(fd, buf, &have, &end);
		if (!err)
			err = split(buf, have, end, &used, line, ctx);
		if (!err)
			err = pause(ctx);
		used = used < have ? used : have;
		memmove(buf, buf + used, have - used);
		have -= used;
	}
	return err;
}

/* The number that text starts with, as llvm-symbolizer takes it: 0x, 0 and 0b give the base, "CODE" may be in front. */
static bool address_parse(const char *text, u64 *ret)
{
	int base = 10;
	char *end;

	text += strspn(text, " \t\r");
	if (!strncmp(text, "CODE ", 5))
		text += 5 + strspn(text + 5, " ");
	if (text[0] == '0' && (text[1] | 32) == 'x')
		base = 16;
	else if (text[0] == '0' && (text[1] | 32) == 'b')
		base = 2;
	else if (text[0] == '0' && text[1] == 'o')
		base = 8;
	else if (text[0] == '0' && text[1] >= '0' && text[1] <= '9')
		base = 8;
	text += base == 16 || base == 2 || text[1] == 'o' ? 2 : 0;
	if (!*text || strchr("+- \t", *text))
		return false;
	errno = 0;
	*ret = strtoull(text, &end, base);
	return !errno && end != text && (!*end || strchr(" \t\r", *end));
}

struct symbolize_options {
	const char *file;
	bool inlines, demangle, help;
};

/* What is printed of an address: frames in one array of all, or the input itself. */
struct answer {
	u64 addr;
	const char *echo; /* of a line that is no address; NULL: it is one */
	u32 first, n;
};

struct symbolizer {
	struct symbolize_options options;
	struct image *img;
	struct inlines *inlines; /* NULL: no debug information */
	struct demangled_names names;
	struct answer *answers;
	u32 nanswers;
	struct inline_frame *frames;
	u32 nframes;
};

enum { SYMBOLIZE_NO_INLINE = 256, SYMBOLIZE_NO_INLINES, SYMBOLIZE_EXE, SYMBOLIZE_NO_DEMANGLE };

static const struct manual_option options[] = {
        {'e', "obj", "FILE", "the program or library; its separate debug file is found by build-id or .gnu_debuglink",
                COMPLETE_FILE},
        {SYMBOLIZE_EXE, "exe", "FILE", "the same as --obj", COMPLETE_FILE},
        {'i', "inlines", NULL, "print inlined functions (the default)", COMPLETE_NOTHING},
        {SYMBOLIZE_NO_INLINE, "no-inline", NULL, "leave out inlined functions", COMPLETE_NOTHING},
        {SYMBOLIZE_NO_INLINES, "no-inlines", NULL, "the same as --no-inline", COMPLETE_NOTHING},
        {'C', "demangle", NULL, "demangle names of C++ and Rust (the default)", COMPLETE_NOTHING},
        {SYMBOLIZE_NO_DEMANGLE, "no-demangle", NULL, "show names as they are in the file", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"-e FILE [options] [ADDRESS...]", NULL};

static const struct manual_example examples[] = {
        {"yrt @ -e /usr/bin/nginx 0x4a1b0", "one address, with the functions inlined there"},
        {"yrt @ -e libz.so.1 < addresses", "many addresses, one per line; yrt reads the file in an efficient order"},
        {NULL, NULL},
};

const struct manual symbolize_manual = {
        .usage = usage,
        .text = "Prints functions, files and lines of addresses, innermost inlined function first, as llvm-symbolizer "
                "does. Without ADDRESS, addresses are read from stdin, one per line. An ADDRESS is an address in the "
                "file, as printed by nm, with 0x in front. Lines that are no address are printed unchanged; unknown "
                "names are ??. If debug information is not installed, the servers in DEBUGINFOD_URLS are asked, until "
                "none has sent anything for DEBUGINFOD_TIMEOUT seconds (10).",
        .options = options,
        .examples = examples,
        .operands = COMPLETE_NOTHING,
};

static struct error *parse_option(int option, struct symbolize_options *o)
{
	switch (option) {
	case 'e':
	case SYMBOLIZE_EXE:
		o->file = optarg;
		return NULL;
	case 'i':
	case SYMBOLIZE_NO_INLINE:
	case SYMBOLIZE_NO_INLINES:
		o->inlines = option == 'i';
		return NULL;
	case 'C':
	case SYMBOLIZE_NO_DEMANGLE:
		o->demangle = option == 'C';
		return NULL;
	case 'h':
		o->help = true;
		return NULL;
	default:
		return manual_bad_option();
	}
}

/* Options and addresses may be mixed, so the leading '+' of the table goes. */
static struct error *parse(int argc, char **argv, struct symbolize_options *o)
{
	struct manual_getopt table;
	struct error *err = NULL;
	int option;

	manual_getopt(&symbolize_manual, &table);
	optind = 1;
	while (!err && (option = getopt_long(argc, argv, table.shorts + 1, table.longs, NULL)) != -1)
		err = parse_option(option, o);
	if (!err && !o->help && !o->file)
		err = error_hint(error_new(ERROR_USAGE, "no file was given"), "give -e FILE");
	return err;
}

/* Answers without lines are no error, but nobody should wonder why. */
static void note_no_lines(struct symbolizer *s)
{
	cleanup(free) char *misfit = symbols_debug_misfit(s->img, "");

	if (misfit)
		say_note("%s belongs to another build than %s (build-id or CRC): not used", misfit, s->options.file);
	else
		fprintf(stderr,
		        "yrt: note: %s has no debug information, and no debug file of it is here: names are those of "
		        "its symbols\n",
		        s->options.file);
}

/* Ctrl-C ends the program while a server is asked, as at any time. *explained: why there are no lines was reported. */
static struct error *ask_servers(struct symbolizer *s, bool *explained)
{
	struct image *debug = NULL;
	struct debuginfod *d;
	struct error *err = debuginfod_create(&d);

	if (err)
		return err;
	err = debuginfod_find(d, s->img, NULL, &debug);
	if (err && err != &error_no_memory) {
		say_note_error(err);
		err = NULL;
		*explained = true;
	}
	if (debug) {
		symbols_use_debug(s->img, debug);
		err = inlines_open_debug(debug, "", &s->inlines);
	}
	image_put(debug);
	debuginfod_destroy(d);
	return err;
}

static struct error *unreadable(const char *name, const char *why)
{
	return error_hint(error_new(ERROR_INPUT, "cannot read %s: %s", name, why),
	        "give -e an ELF file: a program, a library, or its debug file");
}

/* Bytes that a whole file has at least, by its headers: what segments hold, and the table of sections. */
static u64 least_size(Elf *elf)
{
	GElf_Ehdr header;
	GElf_Phdr segment;
	u64 least = 0;

	if (!gelf_getehdr(elf, &header))
		return 0;
	if (header.e_shoff < INT64_MAX)
		least = header.e_shoff + (u64)header.e_shnum * header.e_shentsize;
	for (int i = 0; i < header.e_phnum && gelf_getphdr(elf, i, &segment); i++)
		if (segment.p_offset < INT64_MAX && segment.p_filesz < INT64_MAX)
			least = MAX(least, segment.p_offset + segment.p_filesz);
	return least;
}

/* False: the file ends early, which was reported. */
static bool is_whole(const struct symbolizer *s)
{
	u64 least = s->img->elf ? least_size(s->img->elf) : 0;

	if (least <= s->img->size)
		return true;
	say_note("%s is cut off: it has %lu bytes, its headers describe %lu. What is missing is ??", s->options.file,
	        s->img->size, least);
	return false;
}

static struct error *open_file(struct symbolizer *s)
{
	const char *name = s->options.file;
	cleanup(free) char *path = realpath(name, NULL);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1; /* of a FIFO it would wait */
	struct stat st;
	struct error *err;
	bool explained;

	if (fd < 0)
		return unreadable(name, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return unreadable(name, "it is no regular file");
	}
	err = image_open(fd, path, &s->img);
	explained = !err && !is_whole(s);
	if (!err)
		err = symbols_load(s->img, "");
	if (!err)
		err = inlines_open(s->img, "", &s->inlines);
	if (!err && !s->inlines && debuginfod_serves(s->img))
		err = ask_servers(s, &explained);
	if (!err && !s->inlines && !explained)
		note_no_lines(s);
	return err;
}

static struct error *add_answer(struct symbolizer *s, const char *text)
{
	struct answer a = {.echo = NULL};

	if (grow(&s->answers, s->nanswers, sizeof(*s->answers)))
		return &error_no_memory;
	if (!address_parse(text, &a.addr))
		a.echo = text;
	s->answers[s->nanswers++] = a;
	return NULL;
}

static struct error *add_frame(struct symbolizer *s, struct answer *a, const struct inline_frame *frame)
{
	if (grow(&s->frames, s->nframes, sizeof(*s->frames)))
		return &error_no_memory;
	s->frames[s->nframes++] = *frame;
	a->n++;
	return NULL;
}

/*
 * The function that is not inlined goes by the file's own symbol, as with llvm-symbolizer: that distinguishes a clone
 * (".cold") from what it is a clone of. Of several symbols the one that the debug information names.
 */
static void name_outermost(struct symbolizer *s, u64 addr, struct inline_frame *frame)
{
	struct symbol sym;

	if (frame->name && (!symbols_own(s->img) || symbols_has_alias(s->img, addr, frame->name)))
		return;
	if (symbols_find(s->img, addr, &sym))
		frame->name = sym.name;
}

struct resolving {
	struct symbolizer *s;
	const u32 *asked; /* answers */
};

static struct error *resolve(void *ctx, u32 index, const struct inline_frame *frames, u32 n)
{
	struct resolving *r = ctx;
	struct symbolizer *s = r->s;
	struct answer *a = &s->answers[r->asked[index]];
	struct inline_frame outermost = {0};
	struct error *err = NULL;

	a->first = s->nframes;
	for (u32 i = 0; !err && s->options.inlines && i + 1 < n; i++)
		err = add_frame(s, a, &frames[i]);
	if (err)
		return err;
	if (n) {
		outermost = frames[s->options.inlines ? n - 1 : 0];
		outermost.name = frames[n - 1].name;
	}
	name_outermost(s, a->addr, &outermost);
	if (!outermost.file)
		outermost.file = symbols_file(s->img, a->addr);
	return add_frame(s, a, &outermost);
}

static struct error *resolve_all(struct symbolizer *s)
{
	cleanup(free) u64 *addrs = calloc(s->nanswers + 1, sizeof(*addrs));
	cleanup(free) u32 *asked = calloc(s->nanswers + 1, sizeof(*asked));
	struct resolving r = {s, asked};
	struct error *err = NULL;
	u32 n = 0;

	if (!addrs || !asked)
		return &error_no_memory;
	for (u32 i = 0; i < s->nanswers; i++) {
		if (s->answers[i].echo)
			continue;
		addrs[n] = s->answers[i].addr;
		asked[n++] = i;
	}
	if (s->inlines)
		return inlines_find_all(s->inlines, addrs, n, resolve, &r);
	for (u32 i = 0; i < n && !err; i++)
		err = resolve(&r, i, NULL, 0);
	return err;
}

static struct error *print_answer(struct symbolizer *s, const struct answer *a)
{
	struct error *err = NULL;

	for (u32 i = a->first; i < a->first + a->n && !err; i++) {
		const struct inline_frame *f = &s->frames[i];
		const char *name = "??";

		if (f->name)
			name = f->name;
		if (f->name && s->options.demangle)
			err = demangled_name(&s->names, f->name, &name);
		if (!err)
			printf("%s\n%s:%u:%u\n", name, f->file ? f->file : "??", f->line, f->column);
	}
	if (a->echo)
		puts(a->echo);
	else
		putchar('\n');
	return err;
}

static struct error *answer_all(struct symbolizer *s)
{
	struct error *err = resolve_all(s);

	for (u32 i = 0; i < s->nanswers && !err; i++)
		err = print_answer(s, &s->answers[i]);
	s->nanswers = s->nframes = 0;
	if (!err && fflush(stdout))
		err = error_new(ERROR_OUTPUT, "cannot write stdout: %s", strerror(errno));
	return err;
}

static struct error *on_line(void *ctx, const char *line)
{
	return add_answer(ctx, line);
}

static struct error *on_pause(void *ctx)
{
	return answer_all(ctx);
}

static struct error *run(struct symbolizer *s, int argc, char **argv)
{
	struct error *err = open_file(s);

	if (err || optind == argc)
		return err ? err : lines_read(STDIN_FILENO, on_line, on_pause, s);
	for (int i = optind; i < argc && !err; i++)
		err = add_answer(s, argv[i]);
	return err ? err : answer_all(s);
}

static void destroy(struct symbolizer *s)
{
	demangled_free(&s->names);
	inlines_close(s->inlines);
	image_put(s->img);
	free(s->answers);
	free(s->frames);
}

int symbolize_main(const struct command_line *self, int argc, char **argv)
{
	struct symbolizer s = {.options = {.inlines = true, .demangle = true}};
	struct error *err = parse(argc, argv, &s.options);

	if (!err && s.options.help)
		manual_help(stdout, self);
	else if (!err)
		err = output_unread(stdout, run(&s, argc, argv));
	destroy(&s);
	return err ? report_error(err) : 0;
}
