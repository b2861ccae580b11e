/* SPDX-License-Identifier: Apache-2.0 */
/* What a store says in the body of its answer. All of it is untrusted, and may be cut. */
#ifndef YRT_ANSWER_H
#define YRT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <types.h>

#define ANSWER_MAX 1024 /* bytes of a body that are kept; of a page the text comes late */

struct answer {
	char body[ANSWER_MAX + 1];
	size_t size;
	char type[64]; /* Content-Type */
};

/* In one line, without the tags of a page, at most size - 1 bytes; "" if it says nothing. */
void answer_text(const struct answer *a, char *ret, size_t size);
/* An OTLP store that has taken a request may have rejected profiles of it: how many, and why as text. */
u64 answer_rejected(const struct answer *a, char *why, size_t size);
/* A login, a dashboard: no store says yes in this way. */
bool answer_is_page(const struct answer *a);

#endif
