/* SPDX-License-Identifier: Apache-2.0 */
#include "curl_library.h"

#include <dlfcn.h>

struct curl_library curl;

static struct error *missing(void)
{
	return error_hint(error_new(ERROR_UNSUPPORTED, "--push needs libcurl, which is not installed: %s", dlerror()),
	        "install it (Debian: libcurl4)");
}

struct error *curl_load(void)
{
	void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return missing();
#define X(name)                                                                                                        \
	curl.name = dlsym(library, "curl_" #name);                                                                     \
	if (!curl.name)                                                                                                \
		return missing();
	CURL_FUNCTIONS(X)
#undef X
	return NULL;
}
