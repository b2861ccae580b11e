#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, runs the gate (docs/testing.md): two trees, the sanitized one for unit tests, replays
# and fuzzers, the release one for all that needs a real yrt. ctest's summary of the latter comes last.
#
#	run.sh [--all] [ARGUMENTS OF CTEST]
#
# --all: then the measurements as well, which take as long as they take.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)
all=
if [ "${1-}" = --all ]; then
	all=yes
	shift
fi

sh fixtures/setup.sh all
for preset in asan release; do
	cmake --preset $preset -DYRT_TESTS=ON
	cmake --build --preset $preset -j "$jobs"
done

failed=0
rm -f build/release/notes.txt
ctest --test-dir build/asan --output-on-failure -j "$jobs" "$@" || failed=1
ctest --test-dir build/release --output-on-failure -j $((3 * jobs)) "$@" || failed=1 # they compute a third of the time
if [ $all ]; then
	for tree in asan release; do
		ctest --test-dir build/$tree --output-on-failure -C Measured -L measured "$@" || failed=1
	done
fi
# Single tests that failed or were skipped inside a module.
cat build/release/notes.txt 2>/dev/null || true
[ $failed = 0 ] || echo "tests/run.sh: failed (each tree has a summary of its own)" >&2
exit $failed
