#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes one file of the layout library: make.sh YRT VERSION FILE HOW [BINARY..]
#
#   VERSION	"5.36 MULTIPLICITY USE_ITHREADS": for which it holds; builds of a minor version with the same options are compatible
#   FILE	a build with DWARF, or its separate debug file
#   HOW		what that is, for people
#   BINARY	stripped files of the same build: their build-ids are named
set -eu
yrt=$1 version=$2 file=$3 how=$4
shift 4
echo "# SPDX-License-Identifier: Apache-2.0"
echo "# made by make.sh from $how"
"$yrt" layout --runtime perl "$file" | awk -v version="$version" '/^#/ { next } { print } /^runtime/ { print "version", version }'
for binary; do
	echo "build-id $(readelf -n "$binary" | awk '/Build ID/ { print $3 }')"
done
