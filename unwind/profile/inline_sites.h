/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in native code that were sampled, and later the functions that are inlined there. While sampling, each place
 * is a function of its own in the profile, with the name of its symbol. Debug information is read only when sampling is
 * over (or when a pattern must be matched against names of inlined functions). Files that have none here, but may have
 * some at a debuginfod, are requested in inline_sites_expand() only.
 */
#ifndef YRT_INLINE_SITES_H
#define YRT_INLINE_SITES_H

#include <signal.h>
#include <types.h>

#include "error.h"
#include "symbols/inlines.h"
#include "process/module.h"
#include "process/view.h"
#include "profile.h"

struct inline_sites;

/* Which of the functions at a place: what is inlined into a VM's loop is called by the frames that the loop runs. */
enum site_part { SITE_WHOLE, SITE_OUTERMOST, SITE_INLINED };

struct inline_sites_options {
	bool lines;                    /* functions are split by the line being executed */
	bool mangled;                  /* names as they are in the file */
	bool addresses;                /* names_options.addresses */
	bool objects;                  /* names_options.objects */
	const struct view *view;       /* what it hides is left out where it is inlined too; NULL: nothing */
	const struct modules *modules; /* where it is reported (complain) that debuginfod does not answer */
};

struct error *inline_sites_create(const struct inline_sites_options *options, struct inline_sites **ret);
void inline_sites_destroy(struct inline_sites *s);
/* Does the image of m have debug information, or may a debuginfod? It is looked for here, and opened, at the first
 * call. */
struct error *inline_sites_has(struct inline_sites *s, const struct module *m, bool *ret);
/*
 * Notes that function (of a profile) stands for this part of addr (a file address) in m, for which inline_sites_has()
 * is true.
 */
struct error *inline_sites_add(
        struct inline_sites *s, u32 function, const struct module *m, u64 addr, enum site_part part);
/* The names of what is inlined at function, outermost first; none if it stands for no place. Valid until the next call.
 */
struct error *inline_sites_names(struct inline_sites *s, u32 function, const char *const **ret, u32 *n);
/*
 * Replaces *p by a profile in which functions that stand for places have become the functions that are there, outermost
 * first. On failure *p stays as it is. *stop (may be NULL) ends requests to debuginfod.
 */
struct error *inline_sites_expand(struct inline_sites *s, struct profile **p, volatile sig_atomic_t *stop);

#endif
