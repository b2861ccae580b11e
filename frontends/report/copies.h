/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of C++ that are copied and die soon. Where one dies, the end of a function or a brace, says nothing; where it
 * was copied from another does, so that its death counts there. By the names of constructors and destructors.
 */
#ifndef YRT_REPORT_COPIES_H
#define YRT_REPORT_COPIES_H

#include "rule.h"
#include "unwind/profile/profile.h"

struct copies;

/* To be freed with copies_free(). *ret is NULL where nothing is both copied and destroyed. */
struct error *copies_find(const struct libraries *l, const struct profile *p, struct copies **ret);
/*
 * The function, with its line, that made the copy which the stack ending at a node destroys; else site. c: may be NULL.
 */
u32 copies_site(const struct copies *c, u32 node, u32 site);
void copies_free(struct copies *c);

/* The bytes of the type that a function destroys ("T::~T()"), or copies ("T::T(T const&)", or by operator=). */
size_t copies_destroyed(const char *name);
size_t copies_copied(const char *name);

#endif
