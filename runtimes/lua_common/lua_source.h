/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a Lua function where it is defined, from its source file: "template.render" for "function
 * template.render(view)". The name by which a caller calls it may be another function's: after a tail call the caller's
 * instruction names the function that was replaced.
 *
 * The file may have changed since it was loaded. A name counts only if the line has exactly one function with as many
 * parameters as the prototype, and the function's last line has an "end".
 */
#ifndef YRT_LUA_SOURCE_H
#define YRT_LUA_SOURCE_H

#include <sys/types.h>
#include <types.h>

struct lua_sources;
struct lua_sources *lua_sources_create(void); /* NULL: out of memory */
void lua_sources_destroy(struct lua_sources *sources);

struct lua_definition {
	const char *path; /* as the target opened it, maybe relative to its working directory */
	u32 line, last;   /* from 1 */
	u32 parameters;   /* with self */
	bool vararg;
};

/* False: no name, as of a function that is an argument; or the file is absent or another. ret is terminated. */
bool lua_source_name(struct lua_sources *sources, pid_t pid, const struct lua_definition *d, char *ret, size_t size);
/* The same from the text of the file. */
bool lua_source_parse(const char *text, size_t len, const struct lua_definition *d, char *ret, size_t size);
/* The text of a file; NULL: it could not be read. Valid until the next call. */
const char *lua_source_text(struct lua_sources *sources, pid_t pid, const char *path, size_t *len);

#endif
