/* SPDX-License-Identifier: Apache-2.0 */
#include "cython_generator.h"
#include "cython_name.h"
#include "mypyc_name.h"
#include "python_translated.h"

static bool is_symbol(const char *symbol)
{
	return cython_is_symbol(symbol) || mypyc_is_symbol(symbol);
}

static bool demangle(const char *name, char *ret, size_t size)
{
	return cython_demangle(name, ret, size) || mypyc_demangle(name, ret, size);
}

static bool resolve(struct image *img, const char *symbol, char *ret, size_t size)
{
	return cython_resolve(img, symbol, ret, size) || mypyc_resolve(img, symbol, ret, size);
}

static enum translated_layer layer(const char *symbol)
{
	enum translated_layer found = cython_layer(symbol);

	return found ? found : mypyc_layer(symbol);
}

const struct translated_ops python_translated = {
        .is_symbol = is_symbol,
        .demangle = demangle,
        .resolve = resolve,
        .layer = layer,
        .is_glue = cython_is_glue,
};
