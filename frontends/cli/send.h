/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a profile to a store by HTTP (libcurl), and tries again later if that may help. */
#ifndef YRT_SEND_H
#define YRT_SEND_H

#include <signal.h>

#include "probes/setting.h"
#include "store.h"

struct send_options {       /* what --push and its kin say */
	const char *url;    /* NULL: nothing is pushed */
	const char *tenant; /* X-Scope-OrgID */
	const char *ca;     /* file of certificates that are believed; NULL: the system's */
	double timeout_s;   /* of a try */
	u32 tries;
	u64 until_ns; /* 0: no such time; tries but the first are not begun if they might last longer than that */
	char *labels; /* --label: lines "key=value"; owned */
};

/* What else is known of a profile that was not taken. */
struct send_result {
	bool refused;   /* it is this one that the store does not take, such as one that is too large */
	double pause_s; /* for which the store wants no other one; 0: it does not say */
};

enum { SEND_PUSH = 0x400, SEND_TENANT, SEND_CA, SEND_TIMEOUT, SEND_TRIES, SEND_LABEL };

/* clang-format off */
#define SEND_OPTIONS \
	{ SEND_PUSH, "push", "URL", \
		"send it to a store: pyroscope+http://HOST:4040, parca+…:7070, otlp+…:4318 or coroot+…", \
		COMPLETE_NOTHING }, \
	{ SEND_LABEL, "label", "KEY=VALUE", \
		"a label to send with it, besides host, service, pod, container and build; several may be given", \
		COMPLETE_NOTHING }, \
	{ SEND_TENANT, "tenant", "ID", "the tenant at the store: the header X-Scope-OrgID", COMPLETE_NOTHING }, \
	{ SEND_CA, "ca", "FILE", "certificates by which the store is verified (those of the system)", COMPLETE_FILE }, \
	{ SEND_TIMEOUT, "push-timeout", "SECS", "how long an attempt may take (10)", COMPLETE_NOTHING }, \
	{ SEND_TRIES, "push-tries", "N", \
		"how often to try if the store is down or busy (5); each pause is twice as long as the one before", \
		COMPLETE_NOTHING }
/* clang-format on */

#define SEND_DEFAULTS                                                                                                  \
	{                                                                                                              \
		.timeout_s = 10, .tries = 5                                                                            \
	}

/* An option of SEND_OPTIONS; *taken: it was one. */
struct error *send_option(int option, const char *argument, struct send_options *o, bool *taken);
/*
 * Whether it can be sent at all as o says; to be called before long work. That libcurl is missing is seen only when
 * something is sent: to load it takes longer than all else before the first sample.
 */
struct error *send_check(const struct send_options *o);
/*
 * Sends a finished profile, with the labels of o added to its own. *stop ends waiting. ERROR_OUTPUT: the store did not
 * take it: it is down, or says no; what it said is in the message.
 */
struct error *send_profile(const struct send_options *o, struct profile *p, volatile sig_atomic_t *stop);
/*
 * The same of a recording, or folded stacks; "-" is stdin, which is kept in a file if it can not be sent.
 */
struct error *send_file(
        const struct send_options *o, const char *path, volatile sig_atomic_t *stop, struct send_result *result);

#endif
