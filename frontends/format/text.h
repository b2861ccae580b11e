/* SPDX-License-Identifier: Apache-2.0 */
/* What formats share: untrusted names as they want them (unwind/clean_text.h), and the end of a stream. */
#ifndef YRT_FORMAT_TEXT_H
#define YRT_FORMAT_TEXT_H

#include <stdio.h>

#include "unwind/clean_text.h"
#include "unwind/profile/profile.h"

/* s as a JSON string that, inside HTML, neither ends a script element nor opens a comment in it. */
void text_json(FILE *out, const char *s);
/* s as text or an attribute's value of XML. */
void text_xml(FILE *out, const char *s);
/* Cleaned, at most this many characters of it. */
void text_put_clean(FILE *out, const char *s, int most);
/* The name to show: "[unknown]" if there is none. */
const char *text_name(const struct profile_function *fn);
/* The same without the line that is executed: "read" of "read:26" (--lines). Cut at size; returns ret. */
const char *text_plain_name(const struct profile_function *fn, char *ret, size_t size);
/* A name without the arguments of templates and, of C++, the types of parameters, which may take lines. */
void text_put_short(FILE *out, const char *name, enum profile_kind kind);
/* Prints n in decimal; fprintf() takes too long for millions of them. */
void text_number(FILE *out, u64 n);
/* What is not certain of a frame, in front of its name: "? " a guess, "~ " approximate. */
#define TEXT_MARKS_MAX 4
const char *text_marks(u32 flags);
/* The word of a kind. */
const char *text_kind(enum profile_kind kind);
/* What a function is (words.h), or "C2 83 %, C1 10 %, interpreted 7 %" of one that was compiled in several ways. */
#define TEXT_TIERS 96
const char *text_tiers(const struct profile_function *fn, char ret[TEXT_TIERS]);
/* What it is called for people; if nobody says, otherwise. */
const char *text_title(const struct profile_meta *m, const char *otherwise);
/* What was counted; "samples" if nobody says. */
const char *text_unit(const struct profile_meta *m);
/* Are they nanoseconds? */
bool text_is_time(const struct profile_meta *m);
/* Is it shown beside the unit what else was counted: of bytes, how many objects, blocks or calls have them? */
bool text_more(const struct profile_meta *m, bool compared);
/* n of them for people: "1 samples", "1.50 GiB", "20.4 ms". */
#define TEXT_AMOUNT 64
const char *text_amount(const struct profile_meta *m, u64 n, char ret[TEXT_AMOUNT]);
/* The CPU time that one count stands for. 0: no CPU samples were counted, or nobody says how often. */
double text_period_ns(const struct profile_meta *m);
/* count times factor, of which readers take no more than 63 bits. */
u64 text_scaled(u64 count, double factor);
/* Flushes out. If anything written to it failed, the error says that WHAT could not be written. */
struct error *text_finish(FILE *out, const char *what);

#endif
