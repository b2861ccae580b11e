/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a program adds to the collection that keeps more and more: the place to change, which is seldom where the
 * elements are made. Found in the program's source, by the collection's name: lines that store into it, or call what
 * adds, as languages write that. Names are not unique, so what cannot be told apart is not said.
 */
#ifndef YRT_REPORT_ADDED_H
#define YRT_REPORT_ADDED_H

#include "evidence.h"
#include "findings.h"
#include "rule.h"

#define ADDED_MOST 3

/*
 * Of the facts kept.by and kept.path; files are those of the functions of the views that are the program's own, as the
 * process sees them, and their neighbours. The facts kept.added.N.file, .line, .function ("": not known), N from 1 to
 * ADDED_MOST, and kept.added: ", added in F (FILE:LINE)", for texts; "" if it is not known.
 */
struct error *added_find(const struct libraries *l, pid_t pid, struct evidence *e);
/* Those places. On failure *n are whole. */
struct error *added_sites(const struct evidence *e, struct finding_site ret[ADDED_MOST], u32 *n);

#endif
