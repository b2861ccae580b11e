/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_GO_DRAW_H
#define YRT_GO_DRAW_H

#include "go_places.h"
#include "profile/profile.h"

/*
 * Adds the functions of a chain below *node, which becomes the innermost. Functions that only lead to others
 * (runtime.goexit) are left out.
 */
struct error *go_draw_chain(const struct go_places *p, const struct go_stacks *s, const struct go_chain *c, bool lines,
        struct profile *ret, u32 *node);

#endif
