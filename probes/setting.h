/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that only set a member of a command's struct, as a table beside that of the manual: one row per member. An
 * option may have several rows.
 */
#ifndef YRT_SETTING_H
#define YRT_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <types.h>

#include "unwind/error.h"

enum setting_kind {
	SETTING_BOOL,   /* becomes on */
	SETTING_TEXT,   /* becomes the option's argument; NULL if it has none */
	SETTING_NUMBER, /* a double: becomes the argument, which is min to max */
	SETTING_TIME,   /* u64 nanoseconds: becomes the argument, as "20ms", or a number of setting.per_number each */
	SETTING_U32,    /* bits are added to it; without bits it becomes the argument, which is min to max */
};

struct setting {
	int key; /* manual_option.key; 0 ends the table */
	enum setting_kind kind;
	size_t at; /* the member: bytes into the struct */
	bool on;
	u32 bits;
	const char *name; /* of a number or a time, for messages: "--freq" */
	double min, max;
	bool seconds;      /* a number that may have a unit: 500ms, 10s, 2m, 1h */
	double per_number; /* of a time; 0: it has to have a unit */
};

/* A member and its kind. What is of no such type does not compile. */
#define SETTING_OF(type, member)                                                                                       \
	.at = offsetof(type, member), \
	.kind = _Generic(((type *)0)->member, \
		bool: SETTING_BOOL, const char *: SETTING_TEXT, double: SETTING_NUMBER, u64: SETTING_TIME, \
		u32: SETTING_U32)

/* The number of a row whose member is a double, where an option has no struct. */
struct error *setting_number(const struct setting *s, const char *text, double *ret);
/* Applies the rows of an option to a struct; *taken: there were some. An error names the option. */
struct error *settings_apply(const struct setting *table, int key, const char *argument, void *to, bool *taken);

#endif
