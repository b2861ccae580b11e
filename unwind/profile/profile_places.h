/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a function is defined, as part of its name: "handler (app.lua:42)". The file is the shortest end of its path,
 * in whole directories, that is unique in the profile: "views/base.py" if there are two base.py.
 */
#ifndef YRT_PROFILE_PLACES_H
#define YRT_PROFILE_PLACES_H

#include "profile.h"

/*
 * The part of a file that a name shows until the whole profile is known: its base name; all of what is no path, such as
 * Lua's [string "…"] or Python's <string>.
 */
const char *profile_place(const char *file);

/* Rewrites the places in names, before a format writes them. Files keep their whole paths. */
struct error *profile_shorten_places(struct profile *p);

#endif
