/* SPDX-License-Identifier: Apache-2.0 */
/* The Go release that a program was built with. */
#ifndef YRT_GO_RELEASE_H
#define YRT_GO_RELEASE_H

#include "go_table.h"

#define GO_RELEASE_MAX 64

/* "go1.26.8", as .go.buildinfo gives it (1.13 on). False: it does not. */
bool go_release(struct go_table *t, char *ret);

#endif
