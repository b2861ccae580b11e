/* SPDX-License-Identifier: Apache-2.0 */
#include "request_table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/stack_text.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

#define OTHERS   "other routes"
#define ID_LEAST 8 /* letters of a hexadecimal word that may be an identifier */

const char *const request_times[REQUEST_TIMES] = {"cpu", "queue", "blocked", "idle", "others"};

/* Is this part of a path the identifier of something: a number, a hash, a UUID? */
static bool is_id(const char *part, size_t len)
{
	size_t digits = 0, letters = 0;

	for (size_t i = 0; i < len; i++) {
		digits += isdigit((unsigned char)part[i]) != 0;
		if (!isxdigit((unsigned char)part[i]) && part[i] != '-')
			return false;
		letters += isalpha((unsigned char)part[i]) != 0;
	}
	return digits && (!letters || len >= ID_LEAST);
}

/* Without a query, and of a whole line of HTTP without its version. */
static size_t path_length(const char *path)
{
	const char *version = strstr(path, " HTTP/");
	size_t len = strcspn(path, "?#");

	return version && (size_t)(version - path) < len ? (size_t)(version - path) : len;
}

char *request_route_text(const char *method, const char *path)
{
	char *text = NULL;
	size_t size, len = path_length(path);
	bool of_parts = memchr(path, '/', len) != NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (*method)
		fprintf(out, "%s%s", method, len ? " " : "");
	if (!len && !*method)
		fputs("(requests)", out);
	for (size_t i = 0; i < len;) {
		size_t part = strcspn(path + i, "/?#");

		part = part < len - i ? part : len - i;
		if (of_parts && is_id(path + i, part))
			fputs(":id", out);
		else
			fwrite(path + i, 1, part, out);
		i += part;
		if (i < len)
			putc(path[i++], out);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static u32 bucket_of(u64 ns)
{
	u32 power = ns ? 63 - (u32)__builtin_clzll(ns) : 0, i;

	if (ns < REQUEST_SPLIT)
		return (u32)ns;
	i = REQUEST_SPLIT * (power - 3) + (u32)(ns >> (power - 4) & (REQUEST_SPLIT - 1));
	return i < REQUEST_BUCKETS ? i : REQUEST_BUCKETS - 1;
}

/* The least that is in it. */
static u64 least_of(u32 bucket)
{
	return bucket < REQUEST_SPLIT ? bucket
	                              : (REQUEST_SPLIT + (u64)bucket % REQUEST_SPLIT) << (bucket / REQUEST_SPLIT - 1);
}

u64 request_quantile(const struct request_route *r, double part)
{
	u64 rank = (u64)(part * (double)r->n), seen = 0, ns;
	u32 i = 0;

	while (i < REQUEST_BUCKETS - 1 && (seen += r->bucket[i]) <= rank)
		i++;
	ns = (least_of(i) + least_of(i + 1)) / 2;
	return ns < r->max_ns ? ns : r->max_ns;
}

static void count(struct request_route *r, const struct request_record *record)
{
	const u64 times[REQUEST_TIMES] = {record->cpu, record->queue, record->blocked, record->idle, record->others};
	u32 class = record->status / 100;

	r->n++;
	r->sum_ns += record->ns;
	r->max_ns = record->ns > r->max_ns ? record->ns : r->max_ns;
	for (u32 i = 0; i < REQUEST_TIMES; i++)
		r->time[i] += times[i];
	r->status[class < REQUEST_CLASSES ? class : 0]++;
	r->bucket[bucket_of(record->ns)]++;
}

static struct request_route *known_route(const struct request_table *t, const char *text)
{
	for (u32 i = 0; i < t->nroutes; i++)
		if (!strcmp(t->routes[i]->text, text))
			return t->routes[i];
	return NULL;
}

/* If there are too many, the last one is for all others. */
static struct error *find_route(struct request_table *t, const char *text, struct request_route **ret)
{
	struct error *err;

	*ret = known_route(t, text);
	if (!*ret && t->nroutes >= REQUEST_ROUTES_MAX - 1)
		*ret = known_route(t, text = OTHERS);
	if (*ret)
		return NULL;
	err = grow(&t->routes, t->nroutes, sizeof(struct request_route *));
	if (err)
		return err;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	(*ret)->text = strdup(text);
	if (!(*ret)->text) {
		free(*ret);
		return &error_no_memory;
	}
	t->routes[t->nroutes++] = *ret;
	return NULL;
}

static void free_slow(struct request_slow *s)
{
	for (u32 i = 0; s && i < REQUEST_STACKS; i++)
		free(s->stack[i]);
	for (u32 i = 0; s && i < REQUEST_PHASES; i++)
		free(s->phase[i]);
	if (s)
		free(s->text);
	free(s);
}

void request_slow_order(struct request_slow *s)
{
	s->nstacks = 0;
	for (u32 i = 0; i < REQUEST_STACKS; i++) {
		u32 at = s->nstacks;

		if (!s->record.stack[i].ns)
			continue;
		for (; at && s->record.stack[s->order[at - 1]].ns < s->record.stack[i].ns; at--)
			s->order[at] = s->order[at - 1];
		s->order[at] = i;
		s->nstacks++;
	}
}

void request_slow_name(struct request_slow *s, u32 i, char *text)
{
	u32 k = 0;

	while (text && k < REQUEST_STACKS && (!s->stack[k] || strcmp(s->stack[k], text)))
		k++;
	if (!text || k == REQUEST_STACKS) {
		s->stack[i] = text;
		return;
	}
	s->record.stack[k].ns += s->record.stack[i].ns;
	s->record.stack[i].ns = 0;
	free(text);
	request_slow_order(s);
}

void request_table_name(struct request_table *t, struct collector *c)
{
	u32 node;

	for (u32 i = 0; i < t->nslow; i++)
		for (u32 k = 0; k < REQUEST_STACKS; k++) {
			struct request_slow *s = t->slow[i];

			if (!s->stack[k] && s->record.stack[k].ns && s->record.stack[k].hash &&
			        collector_find(c, s->record.stack[k].hash, &node))
				request_slow_name(s, k, stack_text(collector_profile(c), node));
		}
}

static struct error *make_slow(const struct request_record *record, const char *text, struct request_slow **ret)
{
	struct request_slow *s = calloc(1, sizeof(*s));

	if (!s)
		return &error_no_memory;
	s->record = *record;
	if (text)
		s->text = strdup(text);
	else if (asprintf(&s->text, "%s%s%s", record->method, *record->method ? " " : "", record->path) < 0)
		s->text = NULL;
	if (!s->text) {
		free(s);
		return &error_no_memory;
	}
	request_slow_order(s);
	*ret = s;
	return NULL;
}

static struct error *add_slow(
        struct request_table *t, const struct request_record *record, const char *text, struct request_slow **slow)
{
	struct request_slow *new;
	struct error *err;
	u32 at = t->nslow;

	if (record->ns < t->over_ns || (at == REQUEST_SLOW_MAX && record->ns <= t->slow[at - 1]->record.ns))
		return NULL;
	err = make_slow(record, text, &new);
	if (err)
		return err;
	if (at == REQUEST_SLOW_MAX)
		free_slow(t->slow[--at]);
	else
		t->nslow++;
	for (; at && t->slow[at - 1]->record.ns < record->ns; at--)
		t->slow[at] = t->slow[at - 1];
	t->slow[at] = new;
	if (slow)
		*slow = new;
	return NULL;
}

struct error *request_table_add(
        struct request_table *t, const struct request_record *sent, const char *called, struct request_slow **slow)
{
	struct request_record record = *sent;
	cleanup(free) char *text = NULL;
	struct request_route *route;
	struct error *err;

	if (slow)
		*slow = NULL;
	record.method[sizeof(record.method) - 1] = '\0';
	record.path[sizeof(record.path) - 1] = '\0';
	text = request_route_text(record.method, record.path);
	err = text ? find_route(t, text, &route) : &error_no_memory;
	if (err)
		return err;
	count(route, &record);
	count(&t->all, &record);
	return add_slow(t, &record, called, slow);
}

static int by_time(const void *a, const void *b)
{
	const struct request_route *x = *(struct request_route *const *)a, *y = *(struct request_route *const *)b;

	return x->sum_ns < y->sum_ns ? 1 : x->sum_ns > y->sum_ns ? -1 : strcmp(x->text, y->text);
}

void request_table_sort(struct request_table *t)
{
	if (t->nroutes)
		qsort(t->routes, t->nroutes, sizeof(struct request_route *), by_time);
}

void request_table_free(struct request_table *t)
{
	for (u32 i = 0; i < t->nroutes; i++) {
		free(t->routes[i]->text);
		free(t->routes[i]);
	}
	free(t->routes);
	for (u32 i = 0; i < t->nslow; i++)
		free_slow(t->slow[i]);
	*t = (struct request_table){0};
}
