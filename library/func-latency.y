/* SPDX-License-Identifier: Apache-2.0 */
/* how long calls of a function take, in nanoseconds: a histogram; -D FUNC=NAME, -D FUNC=libc:malloc */
/*
 * Costs two probes a call. Calls within each other (recursion) count each. A call that longjmp() or an exception ends
 * leaves its thread's later calls one deeper.
 */
#ifndef FUNC
#error "which function? -D FUNC=NAME"
#endif
_map int depth[int];
_map unsigned long began[int, int];
_agg ns;

_probe FUNC {
	began[_tid, depth[_tid]++] = _ns;
}

_probe FUNC:return {
	if (depth[_tid] > 0) {
		int d = --depth[_tid];

		ns <<< _ns - began[_tid, d];
		_delete(began[_tid, d]);
	}
}

_probe _end {
	_print(_count(ns), _min(ns), _max(ns), _avg(ns));
	_hist(ns);
}
