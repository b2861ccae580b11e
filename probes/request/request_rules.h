/* SPDX-License-Identifier: Apache-2.0 */
/* Servers in languages whose requests yrt knows: by the function of a framework that handles one. */
#ifndef YRT_REQUEST_RULES_H
#define YRT_REQUEST_RULES_H

#include <sys/types.h>

#include "probes/hit/hit.h"
#include "unwind/error.h"

/*
 * Functions of frameworks become specs of calls, each once, by what a process maps (runtime_calls_ops.servers). None:
 * it is not of a language that has some, or nginx or Envoy is in it: *native is set then.
 */
struct error *request_rules_add(pid_t pid, struct hit_options *calls, bool *native);
/* Those of all languages: what the targets will be is not known yet. */
struct error *request_rules_add_all(struct hit_options *calls);
/* That no target is a server that is known. */
struct error *request_rules_none(void);

#endif
