/* SPDX-License-Identifier: Apache-2.0 */
#include "stack_text.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/clean_text.h"

#define FRAMES_MAX   200 /* of a stack that is written out */
#define FRAMES_SHOWN 10
#define NATIVE_SHOWN 5 /* from the leaf on, of a stack with a language */

/* Of a frame, as in its text. */
#define VM     'v'
#define SCRIPT 's'
#define OTHER  'o'

static const struct profile_function *function_of(const struct profile *p, u32 node)
{
	return &p->functions[p->nodes[node].function];
}

static bool is_code_of_process(enum profile_kind kind)
{
	return kind >= KIND_NATIVE && kind <= KIND_STUB;
}

/* A box around stacks, which whoever shows a line has said already. */
static bool is_around(enum profile_kind kind)
{
	return kind >= KIND_CONTAINER && kind <= KIND_THREAD;
}

static bool is_of_kernel(const struct profile *p, u32 node)
{
	while (node && !is_code_of_process(function_of(p, node)->kind))
		node = p->nodes[node].parent;
	return !node;
}

/* The file that the interpreter is in. NULL: none is on the stack. */
static const char *vm_of(const struct profile *p, u32 node)
{
	while (node && function_of(p, node)->kind != KIND_VM)
		node = p->nodes[node].parent;
	return node ? function_of(p, node)->module : NULL;
}

static char kind_of(const struct profile_function *f, const char *vm)
{
	if (f->kind >= KIND_SCRIPT && f->kind <= KIND_SCRIPT_NATIVE)
		return SCRIPT;
	return vm && !strcmp(f->module, vm) ? VM : OTHER;
}

char *stack_text(const struct profile *p, u32 node)
{
	const char *vm = vm_of(p, node);
	bool all = is_of_kernel(p, node);
	char *text = NULL, kinds[FRAMES_MAX + 1];
	size_t size;
	FILE *out = open_memstream(&text, &size);
	u32 n = 0;

	for (; out && node && n < FRAMES_MAX; node = p->nodes[node].parent) {
		const struct profile_function *f = function_of(p, node);

		if ((!all && f->kind == KIND_KERNEL) || is_around(f->kind))
			continue;
		kinds[n] = kind_of(f, vm);
		fprintf(out, "%s%s", n++ ? "; " : "", f->name);
	}
	kinds[n] = '\0';
	if (out)
		fwrite("\0", 1, 1, out), fputs(kinds, out);
	if (out && fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/*
 * Is the frame left out of a line? What an interpreter does from one function of its language to the next, and what
 * lies between many native frames at the leaf and the function that called them.
 */
static bool is_passed_over(const char *kinds, u32 i)
{
	const char *script = strchr(kinds, SCRIPT), *last = strrchr(kinds, SCRIPT);
	u32 first = script ? (u32)(script - kinds) : 0;

	if (!script || kinds[i] == SCRIPT)
		return false;
	if (i > first)
		return kinds[i] == VM && kinds + i < last;
	return i >= NATIVE_SHOWN || (i && i + 1 == first && kinds[i] == VM);
}

void stack_text_print(FILE *out, const char *text)
{
	const char *at = text, *kinds = text + strlen(text) + 1;
	char clean[TEXT_CLEAN];

	for (u32 i = 0, n = 0; *at && n < FRAMES_SHOWN; i++) {
		const char *end = strstr(at, "; ");
		int len = end ? (int)(end - at) : (int)strlen(at);
		char name[512];

		if (!is_passed_over(kinds, i)) {
			snprintf(name, sizeof(name), "%.*s", len < 500 ? len : 500, at);
			text_clean(name, clean);
			fprintf(out, "%s%s", n++ ? " < " : "", clean);
		}
		at = end ? end + 2 : at + len;
	}
	fputs(*at ? " < ...\n" : "\n", out);
}
