/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a language's frame in a profile. */
#ifndef YRT_FRAME_TEXT_H
#define YRT_FRAME_TEXT_H

#include "names.h"
#include "runtime.h"

enum profile_kind frame_kind_of(const struct frame_name *name);
/* "name (file.lua:42)" or "name(int)", and behind it ":57" where functions are split by line. */
void frame_show(const struct frame_name *name, const struct names_options *options, char *text, size_t size);

#endif
