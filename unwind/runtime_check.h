/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of what was found out about a runtime, on a live process: by what must hold in every one, such as links that
 * close, types of the objects that members point to, sizes that add up. A wrong offset makes the check fail that uses
 * its member. The process goes on meanwhile, so what fails is tried again before it counts.
 */
#ifndef YRT_RUNTIME_CHECK_H
#define YRT_RUNTIME_CHECK_H

#include "report.h"
#include "runtime.h"

#define RUNTIME_CHECKS_MAX 20
#define CHECK_FAILS        (-1)

struct runtime_check {
	const char *name; /* "frames" */
	const char *what; /* must hold */
	/* The number of frames, threads … that it found right; 0: it found none to look at (yet); or CHECK_FAILS. */
	int (*run)(void *subject);
};

struct runtime_checks {
	const struct runtime_check *all;
	u32 n; /* up to RUNTIME_CHECKS_MAX */
	u32 attempts;
	u32 pauses;                  /* how many of the last attempts wait first: 1 ms, 2 ms, 4 ms … */
	bool together;               /* checks need what those before saw: all are tried again, not only what fails */
	void (*look)(void *subject); /* before each attempt; may be NULL */
};

/* ret: of each check what run() said at last. */
void runtime_check(const struct runtime_checks *c, void *subject, int ret[RUNTIME_CHECKS_MAX]);
/* The first one that fails; NULL: none. */
const struct runtime_check *runtime_check_failed(const struct runtime_checks *c, void *subject);
/* The same as an error. language: whose frames are left out. */
struct error *runtime_check_error(
        const struct runtime_checks *c, void *subject, const struct runtime_process *p, const char *language);
/* A section for `yrt inspect`; of: which VM it is about, or NULL. */
void runtime_check_report(const struct runtime_checks *c, const int *found, const char *of, struct report *out);
/* Both. */
void runtime_check_inspect(const struct runtime_checks *c, void *subject, struct report *out);

/* Is the layout of an instance believed? It is doubted at first: a process that starts may be half made. */
struct runtime_belief {
	u64 since_ns; /* when it was attached */
	enum { DOUBTED, BELIEVED, REFUSED } state;
};

/* At each look at a process; an error if the checks did not hold for long enough, once. */
struct error *runtime_believe(struct runtime_belief *b, const struct runtime_checks *c, void *subject,
        const struct runtime_process *p, const char *language);
/* Worth another look soon? lacks: something else is not known yet that a process has soon after its start. */
bool runtime_is_starting(const struct runtime_belief *b, bool lacks);

#endif
