/* SPDX-License-Identifier: Apache-2.0 */
/* Which stacks of a profile a rule's patterns match, how much of the whole they are, and where they come from. */
#ifndef YRT_REPORT_MATCH_H
#define YRT_REPORT_MATCH_H

#include "rule.h"

#define MATCH_SITES 5

struct match_site {
	u32 function; /* of the profile: the one to name */
	u64 value;
};

struct match {
	u64 value, total;                    /* in the profile's unit: of the stacks that match, of all */
	double share, error;                 /* of the whole; half of the 95 % interval */
	double count;                        /* samples, or waits, that it was seen by */
	struct match_site site[MATCH_SITES]; /* the rule's sites, the greatest first; then what stands in for them */
	u32 nsites;
	u32 callee;   /* what the first site calls, if most of its part is there; 0: nothing takes half of it */
	u32 function; /* that most of the last term's matches are; 0: none */
	bool *nodes;  /* of the profile: is it the end of a stack that matches? Owned */
	bool wall;    /* of wall-clock time: waits of idle threads do not count */
	bool *idle;   /* of the profile: these; NULL unless wall. Owned */
};

/*
 * p is finished. The interval is that of a sum of independent samples (or waits, profile_node.more of them), each of
 * the mean size of its node: of samples alone it is the binomial one.
 */
struct error *match_stacks(const struct rule *rule, const struct profile *p, struct match *ret);
/* The share of a single pattern. */
struct error *match_share(
        const struct stack_pattern *pattern, const struct libraries *l, const struct profile *p, double *ret);
/* In how much of the stacks that m matches is a frame that the term matches? 0 to 1. */
struct error *match_part(
        const struct term *t, const struct libraries *l, const struct profile *p, const struct match *m, double *ret);
void match_free(struct match *m);
/* Of each function the first that is the same but for the executed line. same: one for each function of p. */
struct error *match_unite(const struct profile *p, u32 *same);
bool match_skips(const struct rule *r, const struct profile_function *f);
/* Does it serve all the time: a `loop` of the rules? */
bool match_is_loop(const struct libraries *l, const struct profile_function *f);
/* Does it only pass a call on: a `wrapper` of the rules? */
bool match_passes_on(const struct libraries *l, const struct profile_function *f);
/* Frames of a language come before those of the machine code that implements it. */
bool match_is_language(const struct profile_function *f);
/* The stacks that match, as a profile of their own, without the machine code that calls code of a language. */
struct error *match_profile(const struct match *m, const struct profile *p, struct profile **ret);

#endif
