/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a Lua function where it is defined, from its source file: "template.render" for "function
 * template.render(view)". The name by which a caller calls it may be another function's: after a tail call the caller's
 * instruction names the function that was replaced.
 *
 * The file may have changed since it was loaded. A name counts only if the line has exactly one function with as many
 * parameters as the prototype, and the function's last line has an "end".
 */
#ifndef YRT_LUAJIT_SOURCE_H
#define YRT_LUAJIT_SOURCE_H

#include <sys/types.h>
#include <types.h>

struct luajit_sources;
struct luajit_sources *luajit_sources_create(void); /* NULL: out of memory */
void luajit_sources_destroy(struct luajit_sources *sources);

struct luajit_definition {
	const char *path; /* as the target opened it, maybe relative to its working directory */
	u32 line, last;   /* from 1 */
	u32 parameters;   /* with self */
	bool vararg;
};

/* False: no name, as of a function that is an argument; or the file is absent or another. ret is terminated. */
bool luajit_source_name(
        struct luajit_sources *sources, pid_t pid, const struct luajit_definition *d, char *ret, size_t size);
/* The same from the text of the file. */
bool luajit_source_parse(const char *text, size_t len, const struct luajit_definition *d, char *ret, size_t size);
/* The text of a file; NULL: it could not be read. Valid until the next call. */
const char *luajit_source_text(struct luajit_sources *sources, pid_t pid, const char *path, size_t *len);

#endif
