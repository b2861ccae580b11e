/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a layout on a live process, by what must hold in every interpreter: its stacks of contexts are linked both
 * ways, contexts have valid kinds, subs in them are CVs, and statements are statements.
 */
#ifndef YRT_PERL_CHECK_H
#define YRT_PERL_CHECK_H

#include "perl_image.h"
#include "runtime.h"

enum perl_check_result {
	PERL_CHECK_SILENT, /* the process has nothing to check: it has just been started */
	PERL_CHECK_HOLDS,
	PERL_CHECK_FAILS,
};

struct perl_check {
	const char *name, *what; /* static */
	enum perl_check_result result;
};

#define PERL_CHECKS 3

/*
 * Runs all checks on the interpreter at PL_curinterp. The process keeps running, so a failing check is repeated before
 * it counts.
 */
void perl_check(const struct perl_image *image, u64 bias, struct memory *mem, struct perl_check ret[PERL_CHECKS]);
/* An error if one fails. */
struct error *perl_check_process(const struct perl_image *image, u64 bias, const struct runtime_process *p);

#endif
