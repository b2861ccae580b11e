#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes one file of the layout library: make.sh YRT GO
#
#   GO	the go command of a toolchain (golang.org/toolchain of the Go module proxy); all releases of a series have the same layout
set -eu
yrt=$(realpath "$1") go=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat > "$dir/main.go" <<'END'
package main

import (
	"os"
	"runtime/pprof"
)

func main() { pprof.Lookup("heap").WriteTo(os.Stdout, 0) }
END
release=$(GOENV=off GOFLAGS= GOTOOLCHAIN=local "$go" version | awk '{ print $3 }')
(cd "$dir" && GO111MODULE=off GOENV=off GOFLAGS= GOTOOLCHAIN=local CGO_ENABLED=0 "$go" build -o program main.go)
echo "# SPDX-License-Identifier: Apache-2.0"
echo "# made by make.sh with the toolchain of $release"
"$yrt" layout --runtime go "$dir/program" | awk -v version="${release%.*}" '/^#/ { next } { print } /^runtime / { print "version", version }'
