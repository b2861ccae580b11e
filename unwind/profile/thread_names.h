/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread is called if each has a node of its own (-t): "name (tid 42)". A runtime's name is preferred to the
 * kernel's, but may come late: a thread runs before its language knows it.
 */
#ifndef YRT_THREAD_NAMES_H
#define YRT_THREAD_NAMES_H

#include "process/process.h"
#include "profile.h"
#include "shared/record.h"
#include "table.h"

/*
 * The function that stands for the thread of a stack. known: what is known of threads so far, empty at first, freed
 * with table_free(). p: its process; NULL: unknown, the kernel's name is taken. A name that a runtime gives later
 * replaces the kernel's in the profile.
 */
struct error *thread_function(struct table *known, struct profile *profile, const struct process *p,
        const struct stack_record *record, u32 *ret);
/* Is this function such a thread? Its number, and how long the name in front of it is. */
bool thread_of_function(const struct profile_function *fn, u32 *tid, size_t *len);
/* The same of what runs without a thread of its own: "name (task 3)". */
struct error *task_function(struct profile *profile, const char *name, u32 number, u32 *ret);
bool task_of_function(const struct profile_function *fn, u32 *number);

#endif
