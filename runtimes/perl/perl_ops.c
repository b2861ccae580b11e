/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "perl_image.h"
#include "binary/image_words.h"
#include "symbols/c_names.h"
#include "symbols/symbols.h"

#define OPS_MAX  1024
#define NAME_MAX 64

static bool read_name(struct image *img, u64 at, char *ret)
{
	u32 size = NAME_MAX;

	while (size && !image_read(img, ret, size, at))
		size /= 2; /* at the end of a segment */
	return size && *ret && memchr(ret, '\0', size);
}

static void read_ops(struct image *img, const struct image_words *words, const struct symbol *names,
        const struct symbol *functions, bool (*is)(void *ctx, u32 type, const char *op, u64 function), void *ctx)
{
	char name[NAME_MAX];

	for (u32 i = 0; i < OPS_MAX; i++) {
		u64 at = 8 * (u64)i, *op = image_word(words, names->start + at),
		    *function = image_word(words, functions->start + at);

		if (names->start + at >= names->end || functions->start + at >= functions->end)
			return;
		if (op && function && read_name(img, *op, name) && is(ctx, i, name, *function))
			return;
	}
}

struct error *perl_ops(struct image *img, bool (*is)(void *ctx, u32 type, const char *op, u64 function), void *ctx)
{
	struct image_words words = {.n = 0};
	static const char *const sections[] = {".data", ".data.rel.ro", ".rodata"};
	struct symbol names, functions;
	struct error *err = NULL;

	if (!symbols_lookup(img, "PL_op_name", &names) || !symbols_lookup(img, "PL_ppaddr", &functions))
		return NULL;
	for (u32 i = 0; !err && i < sizeof(sections) / sizeof(*sections); i++)
		err = image_words_add(&words, img, sections[i]);
	if (!err) {
		image_words_relocate(&words, img);
		read_ops(img, &words, &names, &functions, is, ctx);
	}
	image_words_free(&words);
	return err;
}

struct named {
	u64 functions[OPS_MAX];
	u32 n;
	struct c_names *ret;
	struct error *err;
};

/* Of several ops with one function the first one is what it is called (opcode.pl). */
static bool add_name(void *ctx, u32 type, const char *op, u64 function)
{
	struct named *n = ctx;
	char name[NAME_MAX + 16];

	for (u32 i = 0; i < n->n; i++)
		if (n->functions[i] == function)
			return false;
	if (n->n == OPS_MAX)
		return true;
	n->functions[n->n++] = function;
	snprintf(name, sizeof(name), "Perl_pp_%s", op);
	n->err = c_names_add(n->ret, function, name);
	return n->err;
}

struct error *perl_op_names(struct image *img, struct c_names *ret)
{
	struct named n = {.ret = ret};
	struct symbol runops;
	struct error *err;

	if (img->machine != EM_X86_64 || !symbols_lookup(img, "Perl_runops_standard", &runops))
		return NULL;
	err = perl_ops(img, add_name, &n);
	return err ? err : n.err;
}
