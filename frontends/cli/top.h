/* SPDX-License-Identifier: Apache-2.0 */
/* What top keeps (top.c), and how it is drawn (top_table.c). */
#ifndef YRT_CLI_TOP_H
#define YRT_CLI_TOP_H

#include "cli.h"
#include "frontends/format/rows.h"

struct top {
	struct flame_options o;
	struct rows rows;
	enum rows_order order;
	bool reversed, all, held, live, json, help;
	bool processes; /* a row for each, not for each function */
	bool typing;    /* of the filter */
	char filter[48];
	u32 max_rows, skip, drawn, count;
	u64 *since; /* self of each node at the last period */
	u32 nsince;
	double period_s, elapsed_s, span_s;
	char *loss;
	char *target;       /* clean */
	int columns, lines; /* of the terminal when last drawn */
};

/* Names of enum rows_order. */
#define TOP_ORDERS 4
extern const char *const top_orders[TOP_ORDERS];

/* CPUs that ran the targets on average, by the samples. */
double top_cpus(const struct top *t);
/* The table with its head, room rows at most; eol ends each line. */
void top_put_table(FILE *out, struct top *t, u32 room, const char *eol);
/* What the keys do, in place of the table. */
void top_put_help(FILE *out, const char *eol);
/* The last line of the terminal; the letter of each word is its key. */
void top_put_keys(FILE *out, const struct top *t, int line);

#endif
