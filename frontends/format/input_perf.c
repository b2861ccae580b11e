/* SPDX-License-Identifier: Apache-2.0 */
#include "input_perf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cleanup.h"

#define FRAMES_MOST 65536 /* of a sample */

struct perf {
	struct filter *filter;
	const char *path;
	u64 number;     /* of the line */
	u32 *frames, n; /* functions of the sample, the leaf first */
	u32 capacity;
	bool open; /* there is a sample whose stack is being read */
	u32 thread;
};

static void cleanup_perf(struct perf *r)
{
	free(r->frames);
}

static struct error *bad(const struct perf *r, const char *what)
{
	return error_hint(error_new(ERROR_INPUT, "%s, line %lu: %s", r->path, (unsigned long)r->number, what),
	        "it looks like output of `perf script`; run perf script with its default fields");
}

/* Whether "[cpu] seconds.micros:" is here, of which the processor may be missing. */
static bool is_time(const char *at)
{
	static const char digits[] = "0123456789";
	size_t n;

	at += strspn(at, " ");
	if (*at == '[') {
		at += 1 + strspn(at + 1, digits);
		if (*at++ != ']')
			return false;
		at += strspn(at, " ");
	}
	n = strspn(at, digits);
	return n && at[n] == '.' && at[n + 1 + strspn(at + n + 1, digits)] == ':';
}

/* Where "pid/tid" or "tid" begins in a sample's line: the numbers in front of the time, as a command may have some;
 * NULL: nowhere. */
static char *find_ids(char *line, char **end, unsigned long *tid)
{
	for (char *at = line + 1; *at; at++) {
		char *tail;

		if (at[-1] != ' ' || *at < '0' || *at > '9')
			continue;
		*tid = strtoul(at, &tail, 10);
		if (*tail == '/' && tail[1] >= '0' && tail[1] <= '9')
			*tid = strtoul(tail + 1, &tail, 10);
		*end = tail;
		if (*tail == ' ' && is_time(tail))
			return at;
	}
	return NULL;
}

bool input_perf_is(const char *line)
{
	size_t n = strlen(line);
	unsigned long tid;
	char *copy, *end;
	bool ret;

	while (n && line[n - 1] == ' ')
		n--;
	if (!n || line[n - 1] != ':')
		return false;
	copy = strndup(line, n);
	ret = copy && find_ids(copy, &end, &tid);
	free(copy);
	return ret;
}

static struct error *end_sample(struct perf *r)
{
	struct error *err;

	if (!r->open)
		return NULL;
	r->open = false;
	err = filter_node(r->filter, 1, r->thread, r->n ? 0 : 1);
	for (u32 i = r->n; !err && i-- > 0;)
		err = filter_node(r->filter, 1 + r->n - i, r->frames[i], i ? 0 : 1);
	return err;
}

static struct error *begin_sample(struct perf *r, char *line)
{
	struct profile_function f = {.module = "", .file = "", .kind = KIND_THREAD};
	cleanup(free) char *name = NULL;
	char *end, *ids, *comm;
	unsigned long tid;

	if (!(ids = find_ids(line, &end, &tid)))
		return bad(r, "no command and thread");
	for (comm = ids; comm > line && comm[-1] == ' ';)
		*--comm = 0;
	if (asprintf(&name, "%s (tid %lu)", line + strspn(line, " "), tid) < 0) {
		name = NULL;
		return &error_no_memory;
	}
	f.name = name;
	r->open = true;
	r->n = 0;
	return filter_function(r->filter, 0, &f, &r->thread);
}

/* The file in brackets at the end, which the line loses. */
static char *take_file(char *line)
{
	size_t n = strlen(line);
	u32 depth = 0;

	if (!n || line[n - 1] != ')')
		return NULL;
	for (char *at = line + n - 1; at > line; at--) {
		depth += *at == ')';
		depth -= *at == '(';
		if (depth || at[-1] != ' ')
			continue;
		line[n - 1] = 0;
		at[-1] = 0;
		return at + 1;
	}
	return NULL;
}

static void drop_offset(char *name)
{
	char *plus = strrchr(name, '+');

	if (plus && !strncmp(plus, "+0x", 3) && plus[3] && plus[3 + strspn(plus + 3, "0123456789abcdef")] == 0)
		*plus = 0;
}

static struct error *add_frame(struct perf *r, char *line)
{
	struct profile_function f = {.module = "", .file = "", .kind = KIND_NATIVE};
	char *name, *file, *base;

	strtoull(line, &name, 16);
	if (name == line || (*name && *name != ' '))
		return bad(r, "no frame's address");
	name += strspn(name, " ");
	file = take_file(name);
	drop_offset(name);
	if (file && !strcmp(file, "inlined"))
		f.flags = FRAME_INLINED;
	else if (file &&
	         (!strncmp(file, "[kernel", 7) || strstr(file, ".ko") || strstr(file, "vmlinux") || file[0] == '['))
		f.kind = strstr(file, "[vdso]") || strstr(file, "[unknown]") || strstr(file, "[stack]") ||
		                         strstr(file, "[heap]")
		                 ? KIND_NATIVE
		                 : KIND_KERNEL;
	base = file ? strrchr(file, '/') : NULL;
	f.module = !file || f.flags ? "" : f.kind == KIND_KERNEL ? "kernel" : base && base[1] ? base + 1 : file;
	f.name = name;
	if (!*name || !strcmp(name, "[unknown]")) {
		f.name = "[unknown]";
		f.kind = f.kind == KIND_KERNEL ? KIND_KERNEL : KIND_UNKNOWN;
	}
	if (r->n == FRAMES_MOST)
		return bad(r, "a stack of more than 65536 frames");
	if (r->n == r->capacity) {
		u32 more = r->capacity * 2 + 128;
		u32 *frames = reallocarray(r->frames, more, sizeof(*frames));

		if (!frames)
			return &error_no_memory;
		r->frames = frames;
		r->capacity = more;
	}
	return filter_function(r->filter, 0, &f, &r->frames[r->n++]);
}

/* A sample without a call chain has its only frame in its own line, behind the event's colon, where no name can be
 * recognised. */
static struct error *read_line(struct perf *r, char *line)
{
	struct error *err;

	if (!*line)
		return end_sample(r);
	if (*line == '#')
		return NULL;
	if ((*line == '\t' || *line == ' ') && r->open) {
		line += strspn(line, " \t");
		return *line ? add_frame(r, line) : end_sample(r);
	}
	err = end_sample(r);
	return err ? err : begin_sample(r, line);
}

struct error *input_perf_read(FILE *in, const char *path, char *first, u64 number, struct filter *s)
{
	cleanup(perf) struct perf r = {.filter = s, .path = path, .number = number};
	cleanup(free) char *line = NULL;
	struct error *err = read_line(&r, first);
	size_t size = 0;
	ssize_t n;

	while (!err && (n = getline(&line, &size, in)) > 0) {
		r.number++;
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = 0;
		err = strlen(line) == (size_t)n ? read_line(&r, line) : bad(&r, "this is no text");
	}
	if (!err && ferror(in))
		err = error_new(ERROR_INPUT, "cannot read %s: %s", path, strerror(errno));
	return err ? err : end_sample(&r);
}
