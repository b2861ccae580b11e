/* SPDX-License-Identifier: Apache-2.0 */
#include "stack_text.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/clean_text.h"

#define FRAMES_MAX   200 /* of a stack that is written out */
#define FRAMES_SHOWN 8

static const struct profile_function *function_of(const struct profile *p, u32 node)
{
	return &p->functions[p->nodes[node].function];
}

static bool is_code_of_process(enum profile_kind kind)
{
	return kind >= KIND_NATIVE && kind <= KIND_STUB;
}

static bool is_of_kernel(const struct profile *p, u32 node)
{
	while (node && !is_code_of_process(function_of(p, node)->kind))
		node = p->nodes[node].parent;
	return !node;
}

char *stack_text(const struct profile *p, u32 node)
{
	bool all = is_of_kernel(p, node);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (u32 n = 0; out && node && n < FRAMES_MAX; node = p->nodes[node].parent)
		if (all || function_of(p, node)->kind != KIND_KERNEL)
			fprintf(out, "%s%s", n++ ? "; " : "", function_of(p, node)->name);
	if (out && fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

void stack_text_print(FILE *out, const char *text)
{
	const char *at = text;
	char clean[TEXT_CLEAN];

	for (u32 n = 0; *at && n < FRAMES_SHOWN; n++) {
		const char *end = strstr(at, "; ");
		int len = end ? (int)(end - at) : (int)strlen(at);
		char name[512];

		snprintf(name, sizeof(name), "%.*s", len < 500 ? len : 500, at);
		text_clean(name, clean);
		fprintf(out, "%s%s", n ? " < " : "", clean);
		at = end ? end + 2 : at + len;
	}
	fputs(*at ? " < ...\n" : "\n", out);
}
