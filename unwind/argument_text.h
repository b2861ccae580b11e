/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of calls (runtime_calls.h) as text, in what several languages have in common. */
#ifndef YRT_ARGUMENT_TEXT_H
#define YRT_ARGUMENT_TEXT_H

#include "runtime_calls.h"

/* "text", as it was read from data_at on; <string> if it was not. */
void argument_text(const struct runtime_value *v, u32 data_at, FILE *out);
/* "text", escaped; cut: there is more. */
void argument_quoted(const char *text, size_t size, bool cut, FILE *out);
/* A double, in 14 digits; `whole` follows it if it looks like an integer. */
void argument_number(u64 word, const char *whole, FILE *out);

#endif
