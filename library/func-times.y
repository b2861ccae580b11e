/* SPDX-License-Identifier: Apache-2.0 */
/* how long calls of a function take by the value of an argument: -D FUNC=NAME -D TEXT='$route', or ARG='$n' */
/*
 * A table of requests by route, for a server whose handler has the route as an argument: calls, shortest, longest and
 * mean time, and a histogram of each, in microseconds. Functions of files, of Python, Lua and Java; TEXT and ARG are as
 * those of func-args. Costs two probes a call. Coroutines that wait for each other in one thread are mixed up: `yrt
 * latency` follows those.
 */
#ifndef FUNC
#error "which function? -D FUNC=NAME"
#endif
_map int depth[int];
_map unsigned long began[int, int];

#ifdef TEXT
_map _str value[int, int];
_agg us[_str];
#define VALUE (_str(TEXT) ?? "?")
#elif defined(ARG)
_map long value[int, int];
_agg us[long];
#define VALUE (ARG)
#else
#error "which argument? -D TEXT='$name' if it is a text, else -D ARG='$n'; _arg(0) is the first one"
#endif

_probe FUNC {
	value[_tid, depth[_tid]] = VALUE;
	began[_tid, depth[_tid]++] = _ns;
}

_probe FUNC:return {
	if (depth[_tid] > 0) {
		int d = --depth[_tid];

		us[value[_tid, d]] <<< (_ns - began[_tid, d]) / 1000;
		_delete(began[_tid, d]);
		_delete(value[_tid, d]);
	}
}

_probe _end {
	_print(us);
	_hist(us);
}
