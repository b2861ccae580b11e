/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of one stack of a profile, leaf first. */
#ifndef YRT_REPORT_STACK_PATH_H
#define YRT_REPORT_STACK_PATH_H

#include "unwind/profile/profile.h"

#define STACK_PATH_MAX 1024

/* Nodes from this one up to the root, STACK_PATH_MAX at most: the outermost of what is longer are left out. */
u32 stack_path(const struct profile *p, u32 node, u32 *ret);
const struct profile_function *stack_path_function(const struct profile *p, u32 node);
/* Is a function of this name, without a line, among path[from] to path[n - 1]? "": yes. */
bool stack_path_has(const struct profile *p, const u32 *path, u32 from, u32 n, const char *name);
/* The first whose name begins so; n: there is none. */
u32 stack_path_find(const struct profile *p, const u32 *path, u32 n, const char *start);

#endif
