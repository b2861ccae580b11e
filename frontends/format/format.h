/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output formats, one file each. A writer gets a finished profile and an open stream, and returns an error if the
 * stream does (disk full). The result must be valid whatever bytes the names hold.
 */
#ifndef YRT_FORMAT_H
#define YRT_FORMAT_H

#include <stdio.h>

#include "unwind/profile/profile.h"

struct format {
	const char *name;         /* for -f */
	const char *extension;    /* for -o x.EXT, with the dot */
	const char *description;  /* for --help */
	bool threads;             /* wants a node a thread at the root, and distinguishes them in its own way */
	enum processes processes; /* the level of processes, if nobody asks for another */
	bool compares;            /* can show a difference (profile.base) */
	bool binary;              /* not for a terminal */
	bool keeps;               /* keeps what is merged to be drawn: the tiers of a function */
	struct error *(*write)(const struct profile *p, FILE *out);
};

extern const struct format format_folded; /* "root;…;leaf N" a line; ';' and newlines in names are replaced */
extern const struct format format_html;   /* one self-contained page */
extern const struct format format_svg;    /* one static picture */
extern const struct format format_pprof;
extern const struct format format_pprof_series; /* without pids, threads and kinds: not in the list of formats */
extern const struct format format_pprof_coroot; /* Coroot's types and time: not in the list either */
extern const struct format format_speedscope;
extern const struct format format_otlp;
extern const struct format format_firefox; /* these show time, if the profile has it */
extern const struct format format_chrome;
extern const struct format format_perf;
extern const struct format format_jfr;
extern const struct format format_txt;       /* a tree for terminals */
extern const struct format format_recording; /* recording.h */

/* Writes p as people want to see it: a function once, whatever compiled it, unless p->meta.annotate or f->keeps says
 * otherwise. */
struct error *format_write(const struct format *f, struct profile *p, FILE *out);
/* By name (may be NULL), else by the extension of path; "-" and "/dev/null" are folded. NULL: unknown. */
const struct format *format_find(const char *name, const char *path);
/* The same for a command whose own text is a format, too: NULL without a name, and a path that has no extension. */
const struct format *format_or_text(const char *name, const char *path);
/* NULL-terminated list of all. */
extern const struct format *const formats[];

#endif
