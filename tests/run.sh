#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, runs every test. Two trees: the sanitized one runs what is native (unit tests and
# checks), the release one runs all, among it the sanitized yrt (e2e/test_sanitized.py); ctest's own summary of the
# latter comes last. Tests that measure or share BPF run one at a time (RUN_SERIAL). Arguments go to ctest (-R, -L, …).
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)

sh fixtures/setup.sh all
for preset in asan release; do
	cmake --preset $preset -DYRT_TESTS=ON
	cmake --build --preset $preset -j "$jobs"
done

failed=0
ctest --test-dir build/asan --output-on-failure -j "$jobs" "$@" || failed=$?
# Single tests that failed, were skipped or needed a second attempt inside a module are listed above ctest's summary.
rm -f build/release/attempts.txt build/release/failed
{ ctest --test-dir build/release --output-on-failure -j "$jobs" "$@" || touch build/release/failed; } |
	awk '/^[0-9]+% tests passed/ { while ((getline line < "build/release/attempts.txt") > 0) print line } { print; fflush() }'
[ ! -e build/release/failed ] || failed=1
[ $failed = 0 ] || echo "tests/run.sh: failed (the sanitized tree's summary is further up)" >&2
exit $failed
