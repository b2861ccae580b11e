#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A tarball that runs where there is glibc 2.34 or later: build/tarball/package/yrt-VERSION-Linux.tar.gz, with bin/yrt, what
# of its libraries has no archive here in lib/, man pages and completions. From the top of the source: sh cmake/tarball.sh
set -eu
cmake -S . -B build/tarball -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DYRT_TESTS=OFF -DYRT_STATIC=ON "$@"
cmake --build build/tarball
(cd build/tarball && cpack -G TGZ -D CPACK_PACKAGING_INSTALL_PREFIX=/)
