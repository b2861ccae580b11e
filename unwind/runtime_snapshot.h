/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime shows of a process at one moment, or of the growth between two, for <view>-<name>:
 * runtime_ops.snapshots. It is read from outside while the process runs; nothing is sampled.
 */
#ifndef YRT_RUNTIME_SNAPSHOT_H
#define YRT_RUNTIME_SNAPSHOT_H

#include <stdio.h>
#include <types.h>

#include "error.h"

struct runtime_process;
struct profile;

/* An option --name of the command, which sets a bit. */
struct snapshot_flag {
	const char *name; /* NULL ends the table */
	const char *text; /* one line for --help */
	u32 bit;
};

struct runtime_snapshot_ops {
	const char *name;        /* "goroutines" */
	const char *summary;     /* one line for the list of commands */
	const char *text;        /* the rest for --help */
	const char *unit, *more; /* of profiles: profile_meta.unit, .more */
	bool memory;             /* about memory; else about what waits */
	bool growth;             /* always two moments: -d SECS. Else one, or with --watch SECS two */
	const struct snapshot_flag *flags;

	/*
	 * Reads an instance of the runtime (runtime.h: attach). *ret is NULL if it has no such data. Afterwards *ret
	 * must need neither p nor the process.
	 */
	struct error *(*take)(void *instance, const struct runtime_process *p, u32 flags, void **ret);
	void (*free)(void *snapshot);
	/*
	 * Writes it as text, in the form that users of the language know. before: NULL, or the earlier moment. Names in
	 * it may be hostile.
	 */
	struct error *(*print)(const void *before, void *after, u32 flags, FILE *out);
	/* Adds to a profile. */
	struct error *(*draw)(const void *before, void *after, u32 flags, struct profile *ret);
};

#endif
