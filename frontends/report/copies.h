/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of C++ and Rust that are copied and die soon. Where one dies, the end of a function or a brace, says nothing;
 * where it was copied from another does, so that its death counts there. By the names of constructors and destructors,
 * of Clone and drop_in_place.
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

/*
 * The type that a function destroys ("T::~T()", "core::ptr::drop_in_place<T>"), or copies ("T::T(T const&)", or by
 * operator=, "<T as core::clone::Clone>::clone"): where it begins, and its bytes; 0: of none. Parameters of a type of
 * Rust are left out, as they are often not said.
 */
size_t copies_destroyed(const char *name, const char **type);
size_t copies_copied(const char *name, const char **type);

#endif
