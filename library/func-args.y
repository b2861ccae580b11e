/* SPDX-License-Identifier: Apache-2.0 */
/* how often a function is called with each value: -D FUNC=NAME -D ARG='$n'; -D TEXT='$name' if it is a text */
/*
 * Functions of files, of Python, Lua and Java (-D FUNC=python:shop.pay); ARG and TEXT may be any expression of the
 * call's arguments, $order->status or _arg(0) % 10. Costs one probe a call. The 50 most frequent values are printed;
 * texts that cannot be read count as "?".
 */
#ifndef FUNC
#error "which function? -D FUNC=NAME"
#endif

#ifdef TEXT
_map long calls[_str];
#define SHOWN "%10ld  %s\n"
_probe FUNC {
	calls[_str(TEXT) ?? "?"]++;
}
#elif defined(ARG)
_map long calls[long];
#define SHOWN "%10ld  %ld\n"
_probe FUNC {
	calls[ARG]++;
}
#else
#error "which argument? -D ARG='$n', or of a text -D TEXT='$name'; _arg(0) is the first one"
#endif

_probe _end {
	printf("%10s  %s\n", "CALLS", "VALUE");
	_foreach (value : n _in calls, _top 50)
		printf(SHOWN, n, value);
}
