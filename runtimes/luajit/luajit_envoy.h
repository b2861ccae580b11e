/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which filter of Envoy a script belongs to. Envoy hands Lua a script's text only, so its chunk name says neither the
 * filter nor the route. But the configuration of a listener stays in Envoy's memory as it was received, for
 * /config_dump: a Listener's filters are google.protobuf.Any, whose value is serialized. There, right before a filter's
 * own configuration, stands its name, and around a route's part of it that route.
 *
 * Fields are those of Envoy's API v3: lua.proto, base.proto (DataSource), http_connection_manager.proto (HttpFilter),
 * route_components.proto (Route, VirtualHost, RouteMatch). What arrives by itself (RDS, ECDS) is kept in another form:
 * such scripts are not found.
 */
#ifndef YRT_LUAJIT_ENVOY_H
#define YRT_LUAJIT_ENVOY_H

#include "runtime.h"

#define LUAJIT_ENVOY_NAME 64
#define LUAJIT_ENVOY_URL  "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"

struct luajit_envoy_script {
	char filter[LUAJIT_ENVOY_NAME]; /* "" where it has no readable name */
	char part[LUAJIT_ENVOY_NAME]; /* "/call": of source_codes; " at /path": of a route, its name or what it matches;
	                                   " of host": of a virtual host; "": the filter's own */
	const u8 *text;
	size_t len;
	bool is_file; /* the text is the name of the file that has it */
};

/* What a configuration is of whose URL begins at bytes[url]: calls each() for its scripts, at most 256. */
void luajit_envoy_parse(const u8 *bytes, size_t n, size_t url,
        void (*each)(void *ctx, const struct luajit_envoy_script *script), void *ctx);
/* How many bytes it needs from the URL's on; 0 if this is no configuration. */
size_t luajit_envoy_size(const u8 *bytes, size_t n, size_t url);

struct lua_sources;
struct luajit_envoy;
struct luajit_envoy *luajit_envoy_create(void); /* NULL: out of memory */
void luajit_envoy_destroy(struct luajit_envoy *envoy);

/*
 * "tokens", "routes/call", "routes at /inline", for the text of a script; several if filters share it. NULL: unknown,
 * or no script of Envoy. Searches at most 256 MiB of the process's memory, for at most half a second and a twentieth of
 * the time. Valid until the next call.
 */
const char *luajit_envoy_name(
        struct luajit_envoy *envoy, struct lua_sources *sources, const struct runtime_process *p, const char *text);

#endif
