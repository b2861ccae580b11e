#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the container image of yrt: the program, the libraries that it is linked to, certificates, nothing else; no shell.
#
#	build.sh [YRT [IMAGE]]
#
# YRT: the program (build/release/yrt). IMAGE: where to, as buildah has it (oci-archive:yrt.tar); root:DIR puts the image's files into DIR and
# needs no buildah. No network, no base image.
set -eu

yrt=${1:-build/release/yrt}
image=${2:-oci-archive:yrt.tar}
[ "${image#root:}" != "$image" ] || command -v buildah >/dev/null || {
	echo "build.sh: buildah is missing: apt-get install buildah" >&2
	exit 1
}
[ -x "$yrt" ] || {
	echo "build.sh: there is no program $yrt: cmake --preset release && cmake --build --preset release" >&2
	exit 2
}
root=$(mktemp -d)
container=
trap 'rm -rf "$root"; [ -z "$container" ] || buildah rm "$container" >/dev/null' EXIT
trap 'exit 130' INT TERM

mkdir -p "$root/usr/bin" "$root/etc/ssl/certs" "$root/out"
strip -o "$root/usr/bin/yrt" "$yrt"
# libcurl is loaded when something is pushed
curl=$(/sbin/ldconfig -p | sed -n 's|.*libcurl\.so\.4 .*=> ||p' | head -n 1)
[ -n "$curl" ] || {
	echo "build.sh: libcurl.so.4 is missing: apt-get install libcurl4" >&2
	exit 1
}
# ldd prints "name => /path (address)", and of the loader "/path (address)"
{
	ldd "$yrt" "$curl" | sed -n 's|^[^/]*\(/[^ ]*\) (.*|\1|p'
	echo "$curl"
} | sort -u | while read -r library; do
	mkdir -p "$root$(dirname "$library")"
	cp -L "$library" "$root$library"
done
[ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"

echo "build.sh: $(du -sm "$root" | cut -f1) MB unpacked" >&2
if [ "${image#root:}" != "$image" ]; then
	mkdir -p "${image#root:}"
	cp -a "$root/." "${image#root:}"
	exit
fi
container=$(buildah from scratch)
buildah copy -q "$container" "$root" / >/dev/null
buildah config --entrypoint '["/usr/bin/yrt"]' --cmd '["--help"]' --workingdir /out --env YRT_CACHE_DIR=/out/cache "$container"
buildah commit -q "$container" "$image" >/dev/null
