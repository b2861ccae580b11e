/* SPDX-License-Identifier: Apache-2.0 */
#include "translated.h"

#include "runtime.h"

/* The next language's, r starting at runtimes; NULL: that was the last. */
static const struct translated_ops *next(const struct runtime_ops *const **r)
{
	while (**r)
		if ((*(*r)++)->translated)
			return (*r)[-1]->translated;
	return NULL;
}

bool translated_is_symbol(const char *symbol)
{
	const struct runtime_ops *const *r = runtimes;

	for (const struct translated_ops *ops; (ops = next(&r));)
		if (ops->is_symbol(symbol))
			return true;
	return false;
}

bool translated_demangle(const char *name, char *ret, size_t size)
{
	const struct runtime_ops *const *r = runtimes;

	for (const struct translated_ops *ops; (ops = next(&r));)
		if (ops->demangle(name, ret, size))
			return true;
	return false;
}

bool translated_resolve(struct image *img, const char *symbol, char *ret, size_t size)
{
	const struct runtime_ops *const *r = runtimes;

	for (const struct translated_ops *ops; (ops = next(&r));)
		if (ops->resolve(img, symbol, ret, size))
			return true;
	return false;
}

enum translated_layer translated_layer(const char *symbol)
{
	const struct runtime_ops *const *r = runtimes;
	enum translated_layer layer = TRANSLATED_NONE;

	for (const struct translated_ops *ops; !layer && (ops = next(&r));)
		layer = ops->layer(symbol);
	return layer;
}

bool translated_is_glue(const char *symbol)
{
	const struct runtime_ops *const *r = runtimes;

	for (const struct translated_ops *ops; (ops = next(&r));)
		if (ops->is_glue(symbol))
			return true;
	return false;
}
