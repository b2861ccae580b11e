/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that have ended, by route, and the slowest of them. A route is the method and the path that the client asked
 * for, without its arguments; parts of the path that are numbers or long hexadecimal words are ":id".
 */
#ifndef YRT_REQUEST_TABLE_H
#define YRT_REQUEST_TABLE_H

#include "request.h"
#include "unwind/error.h"
#include "unwind/profile/collect.h"

#define REQUEST_ROUTES_MAX 500 /* further ones are one route, "other routes" */
#define REQUEST_SLOW_MAX   50
#define REQUEST_SPLIT      16 /* buckets of each power of two: a quantile is at most 3 % off */
#define REQUEST_BUCKETS    (61 * REQUEST_SPLIT)
#define REQUEST_TIMES      5 /* cpu, queue, blocked, idle, others */
#define REQUEST_CLASSES    6 /* of statuses by their first digit; 0: not known */

struct request_route {
	char *text; /* "GET /orders/:id"; hostile. Owned */
	u64 n, sum_ns, max_ns;
	u64 time[REQUEST_TIMES];
	u64 status[REQUEST_CLASSES];
	u64 bucket[REQUEST_BUCKETS];
};

struct request_slow {
	struct request_record record;
	char *text;                         /* "GET /orders/12?x=1"; hostile. Owned */
	char *stack[REQUEST_STACKS];        /* frames from leaf to root, "; " between; NULL: not known (yet). Owned */
	char *phase[REQUEST_PHASES];        /* "access (HANDLER)" of record.phase; NULL: not known. Owned */
	u32 order[REQUEST_STACKS], nstacks; /* of record.stack, longest first */
};

struct request_table {                 /* all zero at first */
	struct request_route **routes; /* owned */
	u32 nroutes;
	struct request_route all;
	struct request_slow *slow[REQUEST_SLOW_MAX]; /* longest first; owned */
	u32 nslow;
	u64 over_ns; /* only requests that last so long are slow */
};

/* Takes the text of its stack i (NULL: no memory). Stacks that differ by addresses only become one. */
void request_slow_name(struct request_slow *s, u32 i, char *text);
/* After its stacks have got other times. */
void request_slow_order(struct request_slow *s);
/* Stacks of slow requests become text as soon as they are named: their hashes are forgotten later. */
void request_table_name(struct request_table *t, struct collector *c);

extern const char *const request_times[REQUEST_TIMES]; /* their words */

/*
 * text: of the request, where that is not its method and path; or NULL. *slow: it, valid until the next one; NULL: it
 * is not among the slowest. slow may be NULL.
 */
struct error *request_table_add(
        struct request_table *t, const struct request_record *record, const char *text, struct request_slow **slow);
void request_table_free(struct request_table *t);
/* The routes, those that took most time in all first. */
void request_table_sort(struct request_table *t);
/* So many of this route's requests (0.5: half) took at most: ns. */
u64 request_quantile(const struct request_route *r, double part);
/* The route of a method and a path, both maybe empty; malloc'd. NULL: out of memory. */
char *request_route_text(const char *method, const char *path);

#endif
