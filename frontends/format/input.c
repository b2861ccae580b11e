/* SPDX-License-Identifier: Apache-2.0 */
#include "input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <types.h>
#include <zlib.h>

#include "input_perf.h"
#include "input_pprof.h"
#include "unwind/cleanup.h"
#include "unwind/error.h"

/* A whole gzip file into memory. */

#define PACKED_MOST   (256u << 20)
#define UNPACKED_MOST (1u << 30)

static struct error *read_all(FILE *in, const char *name, u8 **ret, size_t *size)
{
	size_t room = 0, n = 0, got;
	u8 *bytes = NULL;

	do {
		u8 *more = realloc(bytes, room = 2 * room + (64 << 10));

		if (!more) {
			free(bytes);
			return &error_no_memory;
		}
		bytes = more;
		n += got = fread(bytes + n, 1, room - n, in);
	} while (got && n < PACKED_MOST);
	*ret = bytes;
	*size = n;
	if (n >= PACKED_MOST || ferror(in)) /* bytes are the caller's */
		return error_new(
		        ERROR_INPUT, "cannot read %s: %s", name, ferror(in) ? strerror(errno) : "it is too large");
	return NULL;
}

/* False: it is not a gzip file, ends early, or is too large. */
static bool inflate_all(z_stream *z, u8 **ret, size_t *size)
{
	size_t room = 0;
	int code = Z_OK;

	while (code == Z_OK && room < UNPACKED_MOST) {
		u8 *more = realloc(*ret, room = 2 * room + (256 << 10));

		if (!more)
			return false;
		*ret = more;
		z->next_out = more + *size;
		z->avail_out = (unsigned)(room - *size);
		code = inflate(z, Z_NO_FLUSH);
		*size = room - z->avail_out;
		if (code == Z_OK && z->avail_out)
			return false;
	}
	return code == Z_STREAM_END;
}

static struct error *unpack(u8 *packed, size_t n, const char *name, u8 **ret, size_t *size)
{
	z_stream z = {.next_in = packed, .avail_in = (unsigned)n};
	bool good;

	if (inflateInit2(&z, MAX_WBITS + 16) != Z_OK)
		return &error_no_memory;
	good = inflate_all(&z, ret, size);
	inflateEnd(&z);
	return good ? NULL : error_new(ERROR_INPUT, "%s is not a complete gzip file", name);
}

/* At most 256 MiB of in, which unpack to about 1 GiB at most. *ret is the caller's to free, after an error, too. name:
 * for errors. */
static struct error *gunzip_all(FILE *in, const char *name, u8 **ret, size_t *size)
{
	cleanup(free) u8 *packed = NULL;
	size_t n = 0;
	struct error *err = read_all(in, name, &packed, &n);

	*ret = NULL;
	*size = 0;
	return err ? err : unpack(packed, n, name, ret, size);
}

#define LINE_LONGEST (64u << 20)
#define WHOLE_MOST   (1ul << 30)
#define GZIP_FIRST   0x1f

static struct error *bad_line(const char *path, u64 number, const char *what)
{
	return error_hint(error_new(ERROR_INPUT, "%s, line %lu: %s", path, (unsigned long)number, what),
	        "it is neither a recording, nor folded stacks (\"frame;frame count\"), nor output of `perf script`");
}

static bool is_script(enum profile_kind kind)
{
	return kind == KIND_SCRIPT || kind == KIND_SCRIPT_BASELINE || kind == KIND_SCRIPT_JIT;
}

/* The marks in front of a name (text_marks()). */
static u32 take_marks(char **name)
{
	static const struct {
		const char *mark;
		u32 flag;
	} marks[] = {{"? ", FRAME_GUESS}, {"~ ", FRAME_APPROX}};
	u32 flags = 0;

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (!strncmp(*name, marks[i].mark, 2) && (*name)[2]) {
			flags |= marks[i].flag;
			*name += 2;
		}
	return flags;
}

/* What the ending of a name says, which it loses. What was inlined was compiled with its caller. */
static void classify(char *name, enum profile_kind caller, struct profile_function *f)
{
	size_t n = strlen(name);

	f->kind = *name == '[' ? KIND_UNKNOWN : KIND_NATIVE;
	if (n < 5 || name[n - 4] != '_' || name[n - 3] != '[' || name[n - 1] != ']')
		return;
	switch (name[n - 2]) {
	case 'k':
		f->kind = KIND_KERNEL;
		break;
	case 'j':
		f->kind = KIND_SCRIPT_JIT;
		break;
	case '1':
		f->kind = KIND_SCRIPT_BASELINE;
		break;
	case '0':
		f->kind = KIND_SCRIPT;
		break;
	case 'i':
		f->flags |= FRAME_INLINED;
		f->kind = is_script(caller) ? caller : KIND_NATIVE;
		break;
	default:
		return;
	}
	name[n - 4] = 0;
}

static struct error *read_stack(struct filter *s, char *stack, u64 count)
{
	enum profile_kind caller = KIND_NATIVE;
	struct error *err = NULL;

	for (u32 depth = 1; !err && stack; depth++) {
		struct profile_function f = {.module = "", .file = ""};
		char *name = strsep(&stack, ";");
		u32 function;

		f.flags = take_marks(&name);
		classify(name, caller, &f);
		caller = f.kind;
		f.name = name;
		if (depth == FILTER_DEEPEST)
			return error_new(ERROR_INPUT, "a stack is deeper than %u frames", FILTER_DEEPEST);
		err = filter_function(s, 0, &f, &function);
		if (!err)
			err = filter_node(s, depth, function, stack ? 0 : count);
	}
	return err;
}

/* Takes the count from the end of the line. */
static bool take_count(char *line, u64 *count)
{
	char *space = strrchr(line, ' '), *end;

	if (!space || space == line || space[1] < '0' || space[1] > '9')
		return false;
	errno = 0;
	*count = strtoull(space + 1, &end, 10);
	if (*end || errno || *count > RECORDING_COUNT)
		return false;
	*space = 0;
	return true;
}

static bool has_fraction(const char *line)
{
	const char *space = strrchr(line, ' '), *end = space ? space + 1 : "";

	end += strspn(end, "0123456789");
	return space && *end == '.' && end[1] && !end[1 + strspn(end + 1, "0123456789")];
}

/* Splits "stack count", or "stack before after" of a difference, in place. */
static bool split(char *line, bool pairs, u64 *count)
{
	u64 before;

	return take_count(line, count) && (!pairs || take_count(line, &before));
}

struct line {
	char *text; /* without its end; a NUL behind it */
	size_t n, size;
	bool there; /* false: no more lines */
};

static void cleanup_line(struct line *line)
{
	free(line->text);
}

/* What is no text ends a line early, so that no more of it is read: behind a NUL, or LINE_LONGEST + 1 bytes. */
static struct error *read_line(FILE *in, struct line *line)
{
	int c;

	line->n = 0;
	while ((c = getc_unlocked(in)) != EOF && c != '\n' && line->n <= LINE_LONGEST) {
		if (line->n + 2 > line->size) {
			char *more = realloc(line->text, line->size = 2 * line->size + 256);

			if (!more)
				return &error_no_memory;
			line->text = more;
		}
		line->text[line->n++] = (char)c;
		if (!c)
			break;
	}
	line->there = line->n || c != EOF;
	if (line->text)
		line->text[line->n] = 0;
	return NULL;
}

static void drop_returns(struct line *line)
{
	while (line->n && line->text[line->n - 1] == '\r')
		line->text[--line->n] = 0;
}

/*
 * Does each line end in two counts, as differences do (difffolded.pl, yrt diff)? Then none of them is a name's end. Of
 * what cannot be read twice the answer is no.
 */
static bool has_pairs(FILE *in)
{
	cleanup(line) struct line line = {0};
	long at = ftell(in);
	u64 lines = 0, count;
	bool ret = at >= 0;

	while (ret && !read_line(in, &line) && line.there) {
		drop_returns(&line);
		if (!line.n || *line.text == '#')
			continue;
		ret = strlen(line.text) == line.n && take_count(line.text, &count) && take_count(line.text, &count);
		lines++;
	}
	if (at >= 0 && fseek(in, at, SEEK_SET))
		return false;
	return ret && lines;
}

static struct error *no_count(const char *path, u64 number, const char *line)
{
	if (!has_fraction(line))
		return bad_line(path, number, "no count at its end");
	return error_hint(error_new(ERROR_INPUT, "%s, line %lu: a count with a fraction", path, (unsigned long)number),
	        "counts have to be whole numbers: multiply all of them, by 1000 for example");
}

static struct error *read_folded(FILE *in, const char *path, struct filter *s)
{
	cleanup(line) struct line line = {0};
	bool pairs = has_pairs(in);
	struct error *err = read_line(in, &line);
	u64 count, total = 0;

	for (u64 number = 1; !err && line.there; number++) {
		drop_returns(&line);
		if (line.n && *line.text != '#') {
			if (line.n > LINE_LONGEST || strlen(line.text) != line.n)
				return bad_line(path, number, "this is no text");
			if (!total && input_perf_is(line.text))
				return input_perf_read(in, path, line.text, number, s);
			if (!split(line.text, pairs, &count) || count > RECORDING_COUNT - total)
				return no_count(path, number, line.text);
			total += count;
			err = count || !pairs ? read_stack(s, line.text, count) : NULL;
		}
		if (!err)
			err = read_line(in, &line);
	}
	if (!err && ferror(in))
		err = error_new(ERROR_INPUT, "cannot read %s: %s", path, strerror(errno));
	if (!err && pairs)
		err = profile_string(
		        s->profile, "of each stack's two counts the second is shown", &s->profile->meta.loss);
	return err;
}

/* What came by a pipe has a name that the user knows. */
static const char *given_name(const char *path, const char *other)
{
	return strcmp(path, "stdin") ? path : other;
}

/* Files of other tools that are recognised, but not read. */
static struct error *refuse_known(const char *path, const u8 *bytes, size_t n)
{
	if (n >= 8 && (!memcmp(bytes, "PERFILE2", 8) || !memcmp(bytes, "2ELIFREP", 8)))
		return error_hint(
		        error_new(ERROR_INPUT, "%s is a perf.data file, which only perf itself can read", path),
		        "perf script -i %s | yrt render - -o out.html", given_name(path, "perf.data"));
	if (n >= 4 && !memcmp(bytes, "FLR", 4))
		return error_hint(error_new(ERROR_INPUT, "%s is a JFR file, of a flight recorder", path),
		        "async-profiler's converter makes folded stacks of it: jfrconv -o collapsed %s out.folded",
		        given_name(path, "FILE.jfr"));
	return NULL;
}

/* pprof has bytes that no text has; both may begin with a newline. */
static bool is_text(const u8 *bytes, size_t n)
{
	for (size_t i = 0; i < n && i < 512; i++)
		if (bytes[i] < ' ' && !strchr("\t\n\r", bytes[i]))
			return false;
	return !n || memchr("\t\n\r", *bytes, 3) || *bytes >= ' ';
}

static struct error *read_bytes(u8 *bytes, size_t size, const char *path, struct filter *s)
{
	cleanup(fclose) FILE *text = NULL;
	struct error *err = refuse_known(path, bytes, size);

	if (err || !size || !is_text(bytes, size))
		return err ? err : input_pprof_read(bytes, size, path, s);
	text = fmemopen(bytes, size, "r");
	return text ? read_folded(text, path, s) : &error_no_memory;
}

static struct error *read_packed(FILE *in, const char *path, struct filter *s)
{
	cleanup(free) u8 *bytes = NULL;
	size_t size = 0;
	struct error *err = gunzip_all(in, path, &bytes, &size);

	return err ? err : read_bytes(bytes, size, path, s);
}

/* What begins with a newline: pprof that is not packed, or text. */
static struct error *read_whole(FILE *in, const char *path, struct filter *s)
{
	cleanup(free) char *bytes = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&bytes, &size);
	char part[65536];
	size_t n, all = 0;

	if (!out)
		return &error_no_memory;
	while (all <= WHOLE_MOST && (n = fread(part, 1, sizeof(part), in)) > 0)
		all += fwrite(part, 1, n, out);
	if (fclose(out))
		return &error_no_memory;
	if (all > WHOLE_MOST)
		return error_new(ERROR_INPUT, "%s is larger than 1 GiB", path);
	return ferror(in) ? error_new(ERROR_INPUT, "cannot read %s: %s", path, strerror(errno))
	                  : read_bytes((u8 *)bytes, size, path, s);
}

static struct error *read_any(FILE *in, const char *path, struct filter *s, struct recording *cut)
{
	u8 header[RECORDING_HEADER];
	bool recording = false;
	struct error *err = NULL;
	int first = getc(in);

	ungetc(first, in);
	*cut = (struct recording){0};
	if (first == GZIP_FIRST)
		return read_packed(in, path, s);
	if (first == INPUT_PPROF_FIRST || first == 'P' || first == 'F' || first == '2')
		return read_whole(in, path, s);
	if (first != (u8)RECORDING_MAGIC[0])
		return read_folded(in, path, s);
	if (fread(header, 1, sizeof(header), in) == sizeof(header))
		err = recording_check(header, path, &recording);
	if (!err && !recording)
		err = error_new(ERROR_INPUT, "%s is neither a recording nor folded stacks", path);
	return err ? err : recording_read(in, path, s, cut);
}

struct error *input_read(
        FILE *in, const char *path, const struct filter_options *options, struct profile **ret, struct recording *cut)
{
	struct filter s;
	struct error *err = filter_create(options, &s);

	if (err)
		return err;
	err = read_any(in, path, &s, cut);
	if (!err) {
		profile_finish(s.profile);
		profile_sort_times(s.profile);
		*ret = TAKE(s.profile);
	}
	filter_free(&s);
	return err;
}

struct error *input_load(
        const char *path, const struct filter_options *options, struct profile **ret, struct recording *cut)
{
	cleanup(fclose) FILE *file = NULL;

	if (!strcmp(path, "-"))
		return input_read(stdin, "stdin", options, ret, cut);
	file = fopen(path, "re");
	if (!file)
		return error_hint(error_new(ERROR_INPUT, "cannot read %s: %s", path, strerror(errno)),
		        "`yrt record -o FILE.yrt` makes a recording");
	return input_read(file, path, options, ret, cut);
}
