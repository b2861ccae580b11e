/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expressions of rules over facts: numbers (also 5%, 64k, 2m, 1g, 20ms), names, + - * /, comparisons, and, or, not,
 * parentheses. What depends on a fact that is not known is not known; "known NAME" is 1 or 0.
 */
#ifndef YRT_REPORT_EXPRESSION_H
#define YRT_REPORT_EXPRESSION_H

#include "facts.h"

/* NaN: not known. An error says what was expected, and where in the text. */
struct error *expression_value(const char *text, const struct facts *f, double *ret);
/* Is it one? */
struct error *expression_check(const char *text);

#endif
