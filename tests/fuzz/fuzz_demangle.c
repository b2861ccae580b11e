/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtimes/python/cython_name.h"
#include "unwind/symbols/symbols.h"

static void demangle(const char *prefix, const uint8_t *data, size_t size)
{
	size_t len = strlen(prefix);
	char *mangled = malloc(len + size + 1), *name, wrapper[256];

	memcpy(mangled, prefix, len);
	memcpy(mangled + len, data, size);
	mangled[len + size] = 0;
	name = symbol_demangle(mangled);
	cython_layer(mangled);
	cython_is_glue(mangled);
	cython_wrapper_of(mangled, wrapper, sizeof(wrapper));
	cython_generator_wrapper(mangled, wrapper, sizeof(wrapper));
	if (!name || strlen(name) > 1024 + strlen("…"))
		abort();
	free(name);
	free(mangled);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	demangle("", data, size);
	demangle("_Z", data, size);
	demangle("_R", data, size);
	demangle("__pyx_pw_", data, size);
	demangle("__pyx_pf_", data, size);
	demangle("__pyx_gb_", data, size);
	demangle("_ZL32__pyx_gb_", data, size);
	demangle("__pyx_fuse_0__pyx_", data, size);
	demangle("_ZL32__pyx_f_", data, size);
	return 0;
}
