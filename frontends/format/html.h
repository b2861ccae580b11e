/* SPDX-License-Identifier: Apache-2.0 */
/* What another page needs that opens flame graph pages (frontends/report/): what permits their script and style. */
#ifndef YRT_FORMAT_HTML_H
#define YRT_FORMAT_HTML_H

#include <stdio.h>

extern const char page_css_sha256[], page_js_sha256[];

/* A SHA-256 in hexadecimal as base64, the form that a Content-Security-Policy takes. */
void html_put_digest(FILE *out, const char *hex);

#endif
