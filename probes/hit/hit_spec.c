/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_spec.h"

#include <bpf/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "hit_callee_match.h"
#include "hit_name.h"
#include "unwind/edit_distance.h"
#include "unwind/process/view.h"

#define TYPEDEF "btf_trace_" /* the kernel has such a type for each tracepoint */
#define FAR     3u           /* edits from which on a name is not a near one */

static u32 min(u32 a, u32 b)
{
	return a < b ? a : b;
}

static u32 close_letters(const char *wanted, const char *name)
{
	u32 distance = edit_distance(wanted, name);

	return distance >= FAR || 2 * distance >= strlen(wanted) ? FAR : distance;
}

/* Before those that only contain what is wanted come those whose last component is like its. ~0: it is another name. */
static u32 distance_of(const char *wanted, const char *name)
{
	char last[HIT_NAME_MAX], last_wanted[HIT_NAME_MAX];
	u32 distance = close_letters(wanted, name);

	if (distance < FAR)
		return distance;
	if (strstr(wanted, "::") || strstr(name, "::") || strchr(wanted, '(')) {
		hit_name_last(wanted, last_wanted);
		hit_name_last(name, last);
		distance = close_letters(last_wanted, last);
		if (distance < FAR)
			return FAR + distance;
	}
	return strlen(wanted) > 2 && strcasestr(name, wanted) ? 2 * FAR + min((u32)strlen(name), 1000) : ~0u;
}

static void last_part(const char *name, char ret[HIT_NAME_MAX])
{
	const char *last = name;

	for (const char *at = name; *at && *at != '('; at++)
		if (strchr(".:", *at) && at[1] && at[1] != '(')
			last = at + 1;
	snprintf(ret, HIT_NAME_MAX, "%.*s", (int)strcspn(last, "("), last);
}

static void insert_near(struct hit_near *near, const char *name, u32 distance)
{
	u32 at = near->n;

	for (u32 i = 0; i < near->n; i++)
		if (!strcmp(near->name[i], name))
			return;
	while (at && near->distance[at - 1] > distance)
		at--;
	if (distance == ~0u || at == HIT_NEAR)
		return;
	for (u32 i = min(near->n, HIT_NEAR - 1); i > at; i--) {
		near->distance[i] = near->distance[i - 1];
		memcpy(near->name[i], near->name[i - 1], sizeof(near->name[i]));
	}
	near->distance[at] = distance;
	snprintf(near->name[at], sizeof(near->name[at]), "%s", name);
	near->n = min(near->n + 1, HIT_NEAR);
}

void hit_near(struct hit_near *near, const char *wanted, const char *name)
{
	insert_near(near, name, distance_of(wanted, name));
}

void hit_near_dotted(struct hit_near *near, const char *wanted, const char *name)
{
	char last_wanted[HIT_NAME_MAX], last[HIT_NAME_MAX];
	u32 distance = distance_of(wanted, name), of_last;

	last_part(wanted, last_wanted);
	last_part(name, last);
	of_last = FAR + close_letters(last_wanted, last);
	insert_near(near, name, of_last < 2 * FAR && of_last < distance ? of_last : distance);
}

void hit_near_text(const struct hit_near *near, char *ret)
{
	size_t len = 0;

	*ret = '\0';
	for (u32 i = 0; i < near->n; i++)
		len += (size_t)snprintf(ret + len, HIT_NEAR_TEXT - len, "%s%s", i ? ", " : "", near->name[i]);
}

bool hit_is_pattern(const struct hit_spec *s)
{
	return strchr(s->name, '*') && !strpbrk(s->name, "(<") && !strstr(s->name, "operator");
}

void hit_each_tracepoint(void (*each)(void *ctx, const char *name), void *ctx)
{
	struct btf *btf = btf__load_vmlinux_btf();

	for (u32 i = 1; btf && i < btf__type_cnt(btf); i++) {
		const struct btf_type *t = btf__type_by_id(btf, i);
		const char *type = btf_is_typedef(t) ? btf__name_by_offset(btf, t->name_off) : NULL;

		if (type && !strncmp(type, TYPEDEF, strlen(TYPEDEF)))
			each(ctx, type + strlen(TYPEDEF));
	}
	btf__free(btf);
}

struct tracepoint_search {
	const char *name;
	struct hit_near *near;
	bool found;
};

static void look_at_tracepoint(void *ctx, const char *name)
{
	struct tracepoint_search *s = ctx;

	s->found |= !strcmp(name, s->name);
	hit_near(s->near, s->name, name);
}

/* Is there such a tracepoint? near: those with a name like that. */
static bool is_tracepoint(const char *name, struct hit_near *near)
{
	struct tracepoint_search s = {name, near, false};

	hit_each_tracepoint(look_at_tracepoint, &s);
	return s.found;
}

static struct error *no_tracepoint(const struct hit_spec *s, const struct hit_near *near)
{
	char text[HIT_NEAR_TEXT];
	struct error *err = error_new(ERROR_USAGE, "-e %s: this kernel has no tracepoint \"%s\"", s->text, s->name);

	hit_near_text(near, text);
	if (near->n)
		return error_hint(err, "near: %s", text);
	return strcmp(s->file, "syscalls") != 0 ? err
	                                        : error_hint(err, "raw_syscalls:sys_enter covers all system calls");
}

static bool number(const char *text, u64 *ret)
{
	char *end;

	if (strncmp(text, "0x", 2) != 0)
		return false;
	*ret = strtoull(text, &end, 16);
	return end > text + 2 && !*end;
}

static enum hit_kind take_kind(const char **text)
{
	static const struct {
		const char *word;
		enum hit_kind kind;
	} kinds[] = {{"uprobe:", HIT_FUNCTION}, {"usdt:", HIT_USDT}, {"tracepoint:", HIT_TRACEPOINT}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t len = strlen(kinds[i].word);

		if (!strncmp(*text, kinds[i].word, len)) {
			*text += len;
			return kinds[i].kind;
		}
	}
	return HIT_ANY;
}

/* Where the file's name ends: at a ':' that is not C++'s, or before an address. */
static const char *behind_file(const char *text)
{
	const char *colon = strchr(text, ':'), *plus = strstr(text, "+0x");

	if (colon && colon[1] != ':')
		return colon;
	return plus;
}

/* The words of a view, which stay. */
static const char *view_of(const char *name)
{
	for (const struct view *v = views(); v->name; v++)
		if (!strcmp(v->name, name))
			return v->name;
	return NULL;
}

/* Is it a view of a runtime whose functions are in tables of files? */
static bool has_tables(const char *name)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (!strcmp((*r)->view, name) && (*r)->functions)
			return true;
	return false;
}

const char *hit_language(const char *text)
{
	const char *end = behind_file(text);
	char view[HIT_NAME_MAX];

	snprintf(view, sizeof(view), "%.*s", end ? (int)(end - text) : 0, text);
	return !has_tables(view) && callee_form(view) ? view_of(view) : NULL;
}

struct error *hit_parse(const char *text, struct hit_spec *ret)
{
	struct hit_spec s = {0};
	struct hit_near near = {0};
	const char *at = text, *end;

	snprintf(s.text, sizeof(s.text), "%s", text);
	s.kind = take_kind(&at);
	end = behind_file(at);
	if (strlen(at) >= HIT_NAME_MAX)
		return error_new(ERROR_USAGE, "-e takes at most %d letters", HIT_NAME_MAX - 1);
	if (end)
		snprintf(s.file, sizeof(s.file), "%.*s", (int)(end - at), at);
	snprintf(s.name, sizeof(s.name), "%s", end ? end + 1 : at);
	s.by_addr = end && number(s.name, &s.addr);
	if (end && has_tables(s.file)) { /* "go:main.f": in whatever file */
		*s.file = '\0';
		end = NULL;
	} else if (s.kind == HIT_ANY && (s.language = hit_language(at))) {
		*ret = s;
		return NULL;
	}
	if (!*s.name || (end && !*s.file))
		return error_hint(error_new(ERROR_USAGE, "-e %s: a name is missing", text),
		        "libc:malloc is a function of a file, sched:sched_process_exec a tracepoint");
	if (s.kind == HIT_TRACEPOINT || (s.kind == HIT_ANY && end && !s.by_addr)) {
		bool found = is_tracepoint(s.name, &near);

		if (!found && (s.kind == HIT_TRACEPOINT || !strcmp(s.file, "syscalls")))
			return no_tracepoint(&s, &near);
		s.kind = found ? HIT_TRACEPOINT : HIT_ANY;
		s.near = near;
	}
	*ret = s;
	return NULL;
}

bool hit_is_file(const struct hit_spec *s, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t len = strlen(s->file), all = strlen(path);

	if (!len)
		return true;
	if (strchr(s->file, '/'))
		return all >= len && !strcmp(path + all - len, s->file);
	return !strncmp(base, s->file, len) && (!base[len] || strchr(".-0123456789", base[len]));
}
