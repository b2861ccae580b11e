#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program of what suites.sh has unpacked, in a mount namespace of its own, so that it finds its /proc; it also sees FOLDER and
# the folder of temporary files.
#
#	jdk.sh ROOT FOLDER COMMAND...
set -eu
[ "${JDK_UNSHARED-}" ] || JDK_UNSHARED=1 exec unshare --mount --propagation private sh "$0" "$@"
unset JDK_UNSHARED
root=$1
folder=$2
shift 2
tmp=${TMPDIR:-/tmp}
mkdir -p "$root/proc" "$root$tmp" "$root/dev"
mount --bind "$tmp" "$root$tmp"
mkdir -p "$root$folder"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount --bind "$folder" "$root$folder"
exec chroot "$root" "$@"
