// SPDX-License-Identifier: Apache-2.0
// LuaJIT 2.1: closures that are made, by the stack that makes them
//
// A probe of lj_func_newL_gc(), which all of them pass: the compiler does not compile them. Each costs the program a
// hit and a stack, some microseconds. Needs LuaJIT's symbols. -d or Ctrl-C ends it.

_map long closures[_stack];

_probe lj_func_newL_gc {
	closures[_stack]++;
}
