/* SPDX-License-Identifier: Apache-2.0 */
/* What was seen in a run, and what was lost: a line of text, and JSON for programs. */
#ifndef YRT_LOSS_H
#define YRT_LOSS_H

#include <jansson.h>
#include <stdio.h>

#include "sampler.h"

/* Samples lost, of all causes. */
u64 total_lost(const struct sampler_stats *st);
/* ": N % complete"; nothing where nothing was counted. */
void loss_complete(FILE *out, const struct sampler_stats *st);
/* Bytes for people: "1.50 MiB". Returns ret. */
#define LOSS_AMOUNT 32
const char *loss_amount(double bytes, char ret[LOSS_AMOUNT]);
void loss_bytes(FILE *out, double bytes);
/* A time for people: "19 us", "1.50 s". Returns ret. */
#define LOSS_TIME 32
const char *loss_time(double ns, char ret[LOSS_TIME]);
/* An estimate of a count, to be printed with %.0f: three digits of it are worth something. */
double loss_estimate(double count);
/* The loss line, without newline. NULL: out of memory. */
char *loss_line(const struct sampler_stats *st);
/* The statistics. NULL: out of memory. */
json_t *stats_json(const struct sampler_stats *st);
/* The same as a line. */
char *stats_text(const struct sampler_stats *st);

#endif
