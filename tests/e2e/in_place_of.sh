#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command that finds one file in the place of another; for a mount namespace of its own.
#
#	in_place_of.sh FILE OTHER COMMAND...
set -eu
mount --bind "$1" "$2"
shift 2
exec "$@"
