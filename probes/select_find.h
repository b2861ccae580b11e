/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that a selection matches at this moment, or why it matches none. yrt itself is never among them. */
#ifndef YRT_SELECT_FIND_H
#define YRT_SELECT_FIND_H

#include "select.h"

/* Calls found for each process of proc until it returns an error. */
struct error *each_process(const char *proc, struct error *(*found)(void *ctx, pid_t pid), void *ctx);

/* Those that match. *pids is the caller's; *n 0: none does. */
struct error *selection_find(const struct selection *s, const char *proc, pid_t **pids, u32 *n);
/* An error if yrt is not permitted to look at a process that may match: waiting for one would never end. */
struct error *selection_hidden(const struct selection *s, const char *proc);
/* Nothing matches: what was looked for, and what comes close, or that it is hidden. */
struct error *selection_missed(const struct selection *s, const char *proc);
/* The same, after waiting for one. */
struct error *selection_never_matched(const struct selection *s, const char *proc);
/* The process that matches. None, or several, is an error that lists similar ones, or all. */
struct error *selection_find_one(const struct selection *selection, const char *proc, pid_t *ret);
/* The same for the one whose program or comm is name. one: --select is no way to have them all. */
struct error *find_by_name(const char *name, const char *proc, bool one, pid_t *ret);

#endif
