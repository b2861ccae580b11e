#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A C compiler for old releases of Go (to 1.20): their go command has it write to /dev/null, which it removes when it fails and
# root runs it. Here it writes to a file of its own instead.
out=$(mktemp) || exit 1
for word; do
	shift
	[ "$word" = /dev/null ] && word=$out
	set -- "$@" "$word"
done
"${YRT_CC:-cc}" "$@"
code=$?
rm -f "$out"
exit $code
