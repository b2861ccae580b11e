/* SPDX-License-Identifier: Apache-2.0 */
/* Rules applied to evidence: what is wrong, by weight, and what was looked at and found healthy. */
#ifndef YRT_REPORT_FINDINGS_H
#define YRT_REPORT_FINDINGS_H

#include "callers.h"
#include "evidence.h"
#include "match.h"
#include "rule.h"

#define FINDINGS_MAX 10

struct finding_site {
	char *function, *file; /* file: "" if not known */
	u32 line;
	double share;
	char *text; /* the line's, as it stands in the file; NULL: it was not read */
};

struct finding {
	const struct rule *rule;
	enum severity severity;           /* the rule's, or that of what it explains */
	const struct evidence_view *view; /* NULL: by counters alone */
	const struct evidence_view *seen; /* whose stacks are shown; NULL: none are */
	double share, low, high;          /* weight, 0 to 1, and its 95 % interval; of counters low = high */
	bool compared;                    /* with an earlier report: */
	bool behind;                      /* it follows from another one, which comes first */
	bool unseen;                      /* of a rule with `holder self`: what is done by who has it was not seen */
	double was;                       /* its share then, 0: it was not there */
	u64 value;                        /* of the matching stacks, in the view's unit */
	struct finding_site site[MATCH_SITES];
	u32 nsites;
	struct finding_site caller[CALLERS_MAX]; /* of the first site, the nearest first */
	u32 ncallers;
	char *title, *why, *change, *show, *against; /* placeholders filled in; against: lines, may be "" */
	char *also;                                  /* titles of findings that it explains, lines; NULL: none */
	struct profile *stacks;                      /* those that match; NULL: by counters alone */
	double part;                                 /* of its view, that the stacks are */
};

/* What a rule looks at, as those who read a report ask for it. */
enum healthy_group { HEALTHY_CPU, HEALTHY_WAITING, HEALTHY_MEMORY, HEALTHY_RUNTIME, HEALTHY_SYSTEM, HEALTHY_GROUPS };

struct healthy {
	char *text;
	enum healthy_group group;
	bool general; /* of any program: it comes first */
};

struct findings { /* zeroed at first */
	struct finding all[FINDINGS_MAX];
	u32 n;
	u32 more;                /* that had no room, the lightest */
	struct healthy *healthy; /* of rules that were measured and do not hold, by group */
	u32 nhealthy;
	char **seen; /* titles of rules that do not hold as their share is too small, but is no nothing */
	u32 nseen;
	u32 unmeasured; /* rules that could not be decided, as something was not measured */
	char *verdict;  /* one sentence */
};

struct error *findings_make(const struct rules *rules, struct evidence *e, struct findings *ret);
void findings_free(struct findings *f);
void finding_free(struct finding *f);
/* Does a rule that these runtimes (bit n: that of id n) do not rule out look at this view, or name its functions? */
bool findings_ask_for(const struct rules *rules, u32 runtimes_seen, const char *view);

/* Fills in "{NAME}" and "{NAME:FORMAT}" of facts. FORMAT: % (of 1), b (bytes), t (seconds), a number of decimals. */
char *finding_text(const char *text, const struct facts *f);
/* Of a share in %, wherever it is said. */
int finding_decimals(double share);

#endif
