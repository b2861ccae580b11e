/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl, loaded only when something is pushed: it loads 25 other libraries, which would delay every other start. */
#ifndef YRT_CURL_LIBRARY_H
#define YRT_CURL_LIBRARY_H

#include <curl/curl.h>

#include "unwind/error.h"

#define CURL_FUNCTIONS(X)                                                                                              \
	X(easy_cleanup)                                                                                                \
	X(easy_escape)                                                                                                 \
	X(easy_getinfo)                                                                                                \
	X(easy_init)                                                                                                   \
	X(easy_perform)                                                                                                \
	X(easy_setopt)                                                                                                 \
	X(easy_strerror)                                                                                               \
	X(free)                                                                                                        \
	X(slist_append)                                                                                                \
	X(slist_free_all)

struct curl_library {
#define X(name) __typeof__(curl_##name) *name;
	CURL_FUNCTIONS(X)
#undef X
};

extern struct curl_library curl; /* its functions, once curl_load() has succeeded */

struct error *curl_load(void);

#endif
