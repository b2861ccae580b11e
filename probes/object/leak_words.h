/* SPDX-License-Identifier: Apache-2.0 */
/* What leak and leak --growth say of memory over the run. */
#ifndef YRT_LEAK_WORDS_H
#define YRT_LEAK_WORDS_H

#include <jansson.h>
#include <stdio.h>

#include "leak.h"

/* Lines: resident and anonymous memory. */
void leak_print_curves(FILE *out, const struct leak_summary *s);
/* [[seconds, resident bytes, anonymous bytes], …] */
json_t *leak_curve_json(const struct leak_summary *s);

#endif
