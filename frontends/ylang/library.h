/* SPDX-License-Identifier: Apache-2.0 */
/* The analysers that come with yrt (library/), and the runtime of exported scripts, as texts. */
#ifndef YRT_YLANG_LIBRARY_H
#define YRT_YLANG_LIBRARY_H

struct y_library_entry {
	const char *name; /* "ngx-requests"; NULL: the end */
	const char *text; /* its second line is a comment that says what it shows */
};

extern const struct y_library_entry y_library[];
extern const char y_runtime_text[];

#endif
