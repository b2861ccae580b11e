/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mkprofile FORMAT [member=value...] < stacks > file: a profile from text, for tests of formats.
 *
 * A line of the input is "frame;frame;... count", a frame "name|kind|module|file|line|flags" of which all but the name
 * may be left out. %XX stands for a byte. A count "n~m" makes it a difference: m is the count in the profile compared
 * with. Members are those of struct profile_meta; times are in seconds.
 */
#include <stdlib.h>
#include <string.h>

#include "frontends/format/format.h"
#include "unwind/cleanup.h"

static void die(const char *what)
{
	fprintf(stderr, "mkprofile: %s\n", what);
	exit(2);
}

static void check(struct error *err)
{
	if (!err)
		return;
	fprintf(stderr, "mkprofile: %s\n", err->message);
	exit(err->kind);
}

/* In place. */
static char *decode(char *s)
{
	char *to = s;

	for (const char *from = s; *from;) {
		char hex[3] = {0};

		if (*from == '%' && from[1] && from[2]) {
			memcpy(hex, from + 1, 2);
			*to++ = (char)strtoul(hex, NULL, 16);
			from += 3;
		} else {
			*to++ = *from++;
		}
	}
	*to = 0;
	return s;
}

static enum profile_kind kind_of(const char *word)
{
	static const char *const words[] = {
#define X(id, text) text,
	        PROFILE_KINDS(X)
#undef X
	};

	for (u32 i = 0; i < KIND_MAX; i++)
		if (!strcmp(word, words[i]))
			return i;
	return *word ? KIND_UNKNOWN : KIND_NATIVE;
}

static u32 add_frame(struct profile *p, u32 node, char *frame)
{
	struct profile_function fn = {0};
	char *part[6], none[] = "";
	u32 function, child;

	for (u32 i = 0; i < 6; i++)
		part[i] = frame ? decode(strsep(&frame, "|")) : none;
	fn = (struct profile_function){.name = part[0],
	        .module = part[2],
	        .file = part[3],
	        .line = strtoul(part[4], NULL, 10),
	        .flags = strtoul(part[5], NULL, 0),
	        .kind = kind_of(part[1])};
	check(profile_function(p, 0, &fn, false, &function));
	check(profile_child(p, node, function, &child));
	return child;
}

/* Notes the count of a node in the profile compared with. */
static void add_base(struct profile *p, u32 node, u64 count)
{
	static u32 n;

	if (node >= n) {
		p->base = reallocarray(p->base, node + 1, sizeof(*p->base));
		if (!p->base)
			die("out of memory");
		memset(p->base + n, 0, (node + 1 - n) * sizeof(*p->base));
		n = node + 1;
	}
	p->base[node] += count;
}

static void add_line(struct profile *p, char *line)
{
	char *count = strrchr(line, ' '), *base;
	u32 node = 0;

	if (!count)
		die("a line without a count");
	*count++ = 0;
	while (line)
		node = add_frame(p, node, strsep(&line, ";"));
	profile_add(p, node, strtoull(count, &base, 10));
	if (*base == '~')
		add_base(p, node, strtoull(base + 1, NULL, 10));
}

/* Makes totals equal. */
static void finish(struct profile *p)
{
	u64 base = 0;

	if (p->base)
		add_base(p, p->nnodes - 1, 0);
	profile_finish(p);
	for (u32 i = 0; p->base && i < p->nnodes; i++)
		base += p->base[i];
	p->base_scale = base ? (double)p->nodes[0].total / (double)base : 1;
}

static void set_member(struct profile_meta *m, char *arg)
{
	const char *name = strsep(&arg, "=");
	const struct {
		const char *name, **text;
	} texts[] = {{"title", &m->title}, {"command", &m->command}, {"target", &m->target}, {"unit", &m->unit},
	        {"loss", &m->loss}, {"before", &m->before}, {"loss_before", &m->loss_before}, {"more", &m->more},
	        {"stats", &m->stats}};

	if (!arg)
		die("an argument that is not member=value");
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!strcmp(name, texts[i].name))
			*texts[i].text = decode(arg);
	if (!strcmp(name, "start"))
		m->start_unix_ns = strtoull(arg, NULL, 10) * 1000000000;
	if (!strcmp(name, "duration"))
		m->duration_ns = (u64)(strtod(arg, NULL) * 1e9);
	if (!strcmp(name, "frequency"))
		m->frequency = strtod(arg, NULL);
}

int main(int argc, char **argv)
{
	const struct format *format = argc > 1 ? format_find(argv[1], NULL) : NULL;
	cleanup(free) char *line = NULL;
	struct profile *p;
	size_t size = 0;
	ssize_t n;

	if (!format)
		die("usage: mkprofile FORMAT [member=value...] < stacks > file");
	check(profile_create(&p));
	for (int i = 2; i < argc; i++)
		set_member(&p->meta, argv[i]);
	while ((n = getline(&line, &size, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = 0;
		add_line(p, line);
	}
	finish(p);
	check(format_write(format, p, stdout));
	profile_destroy(p);
	return 0;
}
