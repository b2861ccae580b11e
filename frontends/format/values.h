/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers of a profile are, in the words of pprof and of the stores. */
#ifndef YRT_VALUES_H
#define YRT_VALUES_H

#include <types.h>

#include "unwind/profile/profile.h"

enum value_source { VALUE_COUNTED, VALUE_MORE, VALUE_TIME };

struct value {
	const char *type, *unit; /* "delay", "nanoseconds" */
	enum value_source from;  /* VALUE_TIME: that which samples stand for */
};

struct values {
	const char *kind;      /* of the profile: "process_cpu", "memory", "off_cpu" */
	struct value value[2]; /* at least one */
	u32 n, counted;        /* counted: the one that pictures show */
	double period_ns;      /* 0: what was counted is not CPU samples */
	struct value period;   /* what one of it stands for: of CPU samples so much time, else one of itself */
	u64 period_number;
};

/* Its words live as long as m. */
void values_of(const struct profile_meta *m, struct values *ret);
/*
 * Coroot knows profiles by the type of a value alone, and lists those that it does not know without a name
 * (model/profile.go). Of CPU samples it wants the time.
 */
void values_for_coroot(struct values *v);
u64 value_number(const struct values *v, u32 i, u64 counted, u64 more);

#endif
