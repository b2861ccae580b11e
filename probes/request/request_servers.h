/* SPDX-License-Identifier: Apache-2.0 */
/* Servers whose requests are known without being told: the functions that begin, serve and end them. */
#ifndef YRT_REQUEST_SERVERS_H
#define YRT_REQUEST_SERVERS_H

#include "request.h"

struct request_place {
	const char *function;
	u64 cookie;
	bool returns; /* the place is where it returns */
};

/* nginx and what is made of it (OpenResty, Tengine): places up to function NULL, those that begin requests last. */
extern const struct request_place request_nginx[];

struct process;

/* "access (ngx_http_access_handler)": a phase of a process's requests; malloc'd. NULL: out of memory. */
char *request_phase_text(const struct process *p, const struct request_phase *phase);

#endif
