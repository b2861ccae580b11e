#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# package.sh MANUAL OUT VERSION MAINTAINER: the documents that are installed, as Debian's policy has them.
set -eu
umask 022
rm -rf "$2"
mkdir -p "$2/man1" "$2/doc"
for page in "$1"/man1/*.1; do
	gzip -9nc "$page" >"$2/man1/$(basename "$page").gz"
done
{
	printf 'yrt (%s) unstable; urgency=medium\n\n  * A build of this version.\n\n' "$3"
	printf ' -- %s  Sat, 21 Nov 2026 00:00:00 +0000\n' "$4"
} | gzip -9n >"$2/doc/changelog.gz"
cat >"$2/doc/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: yrt

Files: *
Copyright: 2026 The yrt authors
License: Apache-2.0

Files: probes/*.bpf.* runtimes/*/*_walk.c unwind/native_walk.c unwind/driver.h
Copyright: 2026 The yrt authors
License: GPL-2.0-only or Apache-2.0

License: Apache-2.0
 On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.

License: GPL-2.0-only or Apache-2.0
 On Debian systems the full texts are in /usr/share/common-licenses/GPL-2 and
 /usr/share/common-licenses/Apache-2.0.
END
