// SPDX-License-Identifier: Apache-2.0
// OpenResty: who ends requests by ngx.exit, by the status from 400 on (-D LEAST=…), and the stack of Lua that does it
//
// Works without debug information, with lua-resty-core, whose ngx.exit calls the module by its FFI (0.10.16 and later
// need it). Costs a hit and a stack for each such call. An error of Lua that ends a request with 500, and statuses that
// nginx itself chooses, do not come here: ngx-status counts all.

#ifndef LEAST
#define LEAST 400
#endif

##ifndeffunc ngx_http_lua_ffi_exit
#error "this is no nginx with its module for Lua, or one whose functions have no names"
##endif

_map long exits[_ustack, int];

_probe ngx_http_lua_ffi_exit / (int)_arg(1) >= LEAST / {
	exits[_ustack, (int)_arg(1)]++;
}
