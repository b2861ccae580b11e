/* SPDX-License-Identifier: Apache-2.0 */
#include "input_perf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cleanup.h"

#define FRAMES_MOST 65536 /* of a sample */

#define EVENT_MOST 128

struct perf {
	struct filter *filter;
	const char *path;
	u64 number;     /* of the line */
	u32 *frames, n; /* functions of the sample, the leaf first */
	u32 capacity;
	bool open;   /* there is a sample whose stack is being read, */
	bool passed; /* which is of another event */
	u32 thread;
	char event[EVENT_MOST], other[EVENT_MOST]; /* the first one counts; another that there was, without that sort */
	u64 others, period; /* samples of other events; the first sample's period; 0: none is given */
	bool differ;        /* periods do */
};

static void cleanup_perf(struct perf *r)
{
	free(r->frames);
}

static struct error *bad(const struct perf *r, const char *what)
{
	return error_hint(error_new(ERROR_INPUT, "%s, line %lu: %s", r->path, (unsigned long)r->number, what),
	        "it looks like output of `perf script`, of which yrt needs the fields comm, tid, event, ip, sym and "
	        "dso");
}

/* A sample's own line, all of it within the line. */
struct head {
	char *ids;     /* "pid/tid" or "tid" */
	long tid;      /* -1: of none */
	u64 period;    /* 0: not given */
	char *event;   /* without its colon, */
	size_t nevent; /* so long */
	char *rest;    /* behind it: the event's fields, or the only frame; at the end: none */
};

static const char digits[] = "0123456789";

static char *skip_number(char *at)
{
	return at + strspn(at, digits);
}

/* "[cpu]", which may be missing. */
static char *skip_cpu(char *at)
{
	char *end = *at == '[' ? skip_number(at + 1) : at;

	return *end == ']' && end > at + 1 ? end + 1 + strspn(end + 1, " ") : at;
}

/* Skips "seconds.micros:". NULL: this is no timestamp. */
static char *skip_time(char *at)
{
	char *point = skip_number(at), *end = *point == '.' ? skip_number(point + 1) : at;

	return point > at && end > at && *end == ':' ? end + 1 + strspn(end + 1, " ") : NULL;
}

/* "period event:", of which the period may be missing. Events may have colons of their own, but no spaces. */
static bool take_event(char *at, struct head *h)
{
	char *end = skip_number(at);

	h->period = 0;
	if (end > at && *end == ' ') {
		h->period = strtoull(at, NULL, 10);
		at = end + strspn(end, " ");
	}
	h->event = at;
	h->nevent = strcspn(at, " ");
	h->rest = at + h->nevent + strspn(at + h->nevent, " ");
	if (h->nevent < 2 || at[h->nevent - 1] != ':')
		return false;
	h->nevent--;
	return strcspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") < h->nevent;
}

static char *take_id(char *at, long *id)
{
	char *end = skip_number(at + (*at == '-'));

	*id = strtol(at, NULL, 10);
	return end > at + (*at == '-') ? end : NULL;
}

/* A command may have numbers of its own: the thread's are in front of what only a sample has. */
static bool find_head(char *line, bool timed, struct head *h)
{
	for (char *at = line + 1; *line && *at; at++) {
		char *end = at[-1] == ' ' && *at != ' ' ? take_id(at, &h->tid) : NULL;

		if (end && *end == '/')
			end = take_id(end + 1, &h->tid);
		if (!end || *end != ' ')
			continue;
		h->ids = at;
		end = skip_cpu(end + strspn(end, " "));
		if (timed)
			end = skip_time(end);
		if (end && take_event(end, h))
			return true;
	}
	return false;
}

/* The time may be left out (-F). */
static bool find_any_head(char *line, struct head *h)
{
	return find_head(line, true, h) || (find_head(line, false, h) && (!*h->rest || strchr(h->rest, '(')));
}

bool input_perf_is(const char *line)
{
	cleanup(free) char *copy = strdup(line);
	struct head h;

	return copy && (find_head(copy, true, &h) || (find_head(copy, false, &h) && !*h.rest));
}

static struct error *end_sample(struct perf *r)
{
	struct error *err;

	if (!r->open)
		return NULL;
	r->open = false;
	if (r->passed)
		return NULL;
	err = filter_node(r->filter, 1, r->thread, r->n ? 0 : 1);
	for (u32 i = r->n; !err && i-- > 0;)
		err = filter_node(r->filter, 1 + r->n - i, r->frames[i], i ? 0 : 1);
	return err;
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

/* Bracketed names are many things: modules, but also what programs call their memory. The kernel has the upper half. */
static bool is_kernel(u64 addr, const char *file)
{
	return addr >> 63 || (file && (!strncmp(file, "[kernel", 7) || !strncmp(file, "[guest.kernel", 13)));
}

static struct error *add_frame(struct perf *r, char *line)
{
	struct profile_function f = {.module = "", .file = "", .kind = KIND_NATIVE};
	char *name, *file, *base;
	u64 addr = strtoull(line, &name, 16);

	if (name == line || (*name && *name != ' '))
		return bad(r, "no frame's address");
	name += strspn(name, " ");
	file = take_file(name);
	drop_offset(name);
	if (file && !strcmp(file, "inlined"))
		f.flags = FRAME_INLINED;
	if (is_kernel(addr, file))
		f.kind = KIND_KERNEL;
	base = file ? strrchr(file, '/') : NULL;
	f.module = f.kind == KIND_KERNEL ? "kernel" : !file || f.flags ? "" : base && base[1] ? base + 1 : file;
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

/* Only samples of the first event count: those of two are unlike things. */
static void take_kind(struct perf *r, const struct head *h)
{
	if (!*r->event) {
		snprintf(r->event, sizeof(r->event), "%.*s", (int)h->nevent, h->event);
		r->period = h->period;
	}
	r->passed = strlen(r->event) != (h->nevent < EVENT_MOST ? h->nevent : EVENT_MOST - 1) ||
	            strncmp(r->event, h->event, strlen(r->event)) != 0;
	if (r->passed && !*r->other)
		snprintf(r->other, sizeof(r->other), "%.*s", (int)h->nevent, h->event);
	r->others += r->passed;
	r->differ |= !r->passed && h->period != r->period;
}

/* Is this a frame, of a sample that has no call chain? Tracepoints ("sched:sched_switch") have their fields there. */
static bool is_frame(const struct head *h)
{
	size_t n = strspn(h->rest, "0123456789abcdef"), last = strlen(h->rest);

	return n && h->rest[n] == ' ' && h->rest[last - 1] == ')';
}

static struct error *begin_sample(struct perf *r, char *line)
{
	struct profile_function f = {.module = "", .file = "", .kind = KIND_THREAD};
	cleanup(free) char *name = NULL;
	struct error *err;
	struct head h;
	char *comm;

	if (!find_any_head(line, &h))
		return bad(r, "no command and thread, or no event");
	take_kind(r, &h);
	for (comm = h.ids; comm > line && comm[-1] == ' ';)
		*--comm = 0;
	if (asprintf(&name, "%s (tid %ld)", line + strspn(line, " "), h.tid) < 0) {
		name = NULL;
		return &error_no_memory;
	}
	f.name = name;
	r->open = true;
	r->n = 0;
	err = r->passed ? NULL : filter_function(r->filter, 0, &f, &r->thread);
	return err || r->passed || !*h.rest || !is_frame(&h) ? err : add_frame(r, h.rest);
}

/* Frames are behind a tab; in front of a command there may be spaces. */
static bool is_sample(char *line)
{
	struct head h;

	return *line != '\t' && (*line != ' ' || find_head(line, true, &h));
}

static struct error *read_line(struct perf *r, char *line)
{
	struct error *err;

	if (!*line)
		return end_sample(r);
	if (*line == '#')
		return NULL;
	if (r->open && !is_sample(line)) {
		line += strspn(line, " \t");
		return !*line ? end_sample(r) : r->passed ? NULL : add_frame(r, line);
	}
	err = end_sample(r);
	return err ? err : begin_sample(r, line);
}

/* What the reader of the profile has to know. */
static struct error *tell(const struct perf *r)
{
	struct profile_meta *m = &r->filter->profile->meta;
	char text[3 * EVENT_MOST + 256];

	if (r->others)
		snprintf(text, sizeof(text),
		        "only samples of %s, the first event, are counted: %lu are of others, such as %s (perf script "
		        "-e "
		        "chooses)",
		        r->event, (unsigned long)r->others, r->other);
	else if (r->differ)
		snprintf(text, sizeof(text),
		        "each sample of %s counts 1, though their periods differ (perf report weighs them)", r->event);
	else
		return NULL;
	return profile_string(r->filter->profile, text, &m->loss);
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
	if (!err)
		err = end_sample(&r);
	return err ? err : tell(&r);
}
