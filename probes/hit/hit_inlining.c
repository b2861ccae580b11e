/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_inlining.h"

#include <stdio.h>
#include <string.h>

void callee_inlining_add(void *ctx, const char *into)
{
	struct callee_inlining *in = ctx;

	for (u32 i = 0; i < in->n; i++)
		if (!strcmp(in->into[i], into))
			return;
	if (in->n < CALLEE_INLINING_NAMES)
		snprintf(in->into[in->n++], NAME_MAX_BYTES, "%s", into);
	else
		in->more++;
}

void callee_inlining_text(const struct callee_inlining *in, char *ret)
{
	size_t len = 0;

	*ret = '\0';
	for (u32 i = 0; i < in->n; i++)
		len += (size_t)snprintf(ret + len, CALLEE_INLINING_TEXT - len, "%s%s", i ? ", " : "", in->into[i]);
	snprintf(ret + len, CALLEE_INLINING_TEXT - len, "%s", in->more ? " and others" : "");
}
