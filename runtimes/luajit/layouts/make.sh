#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the layout library anew: builds each version of LuaJIT with DWARF, lets `yrt layout` read it, and keeps one file
# for all builds with the same layout.
#
# usage: make.sh YRT WORK [NAME..]	(of those below, all if none is given; the files of others go)
#
#   YRT		the yrt command
#   WORK	a folder for builds; what is built there already is not built again
#   OPENRESTY	git repository of OpenResty's branch (openresty/luajit2 on GitHub), with tags
#   LUAJIT	git repository of LuaJIT (LuaJIT/LuaJIT on GitHub), branch v2.1
#   DEBIAN	a folder with src-SUITE/ (what `apt-get source --download-only luajit luajit2` leaves) and root-SUITE/ (the
#		binary packages unpacked: their build-ids are named in the files)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
yrt=$1
work=$2
shift 2
only=$*
made=
debug="-g -fno-eliminate-unused-debug-types"
no_gc64=-DLUAJIT_DISABLE_GC64
mkdir -p "$work/layout"
work=$(cd "$work" && pwd)

wanted() {
	[ -z "$only" ] || case " $only " in *" $1 "*) ;; *) return 1 ;; esac
}

# build NAME FLAGS: $work/NAME/source to $work/NAME/libluajit.so
build() {
	[ -e "$work/$1/libluajit.so" ] && return
	make -s -C "$work/$1/source/src" -j2 BUILDMODE=dynamic CCDEBUG="$debug" TARGET_STRIP=: XCFLAGS="$2" Q= E=@: \
		>"$work/$1/log" 2>&1 || { echo "$1 does not build: $work/$1/log" >&2; exit 1; }
	cp "$work/$1/source/src/libluajit.so" "$work/$1/libluajit.so"
}

# emit NAME HOW [BINARY..]: the layout of what was built, with HOW and the build-ids of binaries of the same source
emit() {
	name=$1 how=$2
	shift 2
	{
		echo "# $how"
		for binary; do
			echo "build-id $(readelf -n "$binary" | awk '/Build ID/ { print $3 }') # ${binary##*/}"
		done
		echo "version $(grep -aom1 'LuaJIT 2\.[0-9A-Za-z.-]*' "$work/$name/libluajit.so" | head -n 1)"
		"$yrt" layout "$work/$name/libluajit.so" | grep -v -e '^#' -e '^build-id'
	} >"$work/layout/$name"
	made="$made $name"
}

# from_git NAME REPOSITORY REVISION HOW FLAGS
from_git() {
	wanted "$1" || return 0
	if [ ! -e "$work/$1/source" ]; then
		mkdir -p "$work/$1/source"
		git -C "$2" archive "$3" | tar -x -C "$work/$1/source"
	fi
	build "$1" "$5"
	emit "$1" "$4${5:+, $5}"
}

# from_debian NAME SUITE SOURCE_FILE HOW FLAGS: the source package, or the upstream archive where only that is kept
from_debian() {
	wanted "$1" || return 0
	archive=$DEBIAN/src-$2/$3
	if [ ! -e "$work/$1/source" ]; then
		mkdir -p "$work/$1"
		case $3 in
		*.dsc) dpkg-source --no-check -q -x "$archive" "$work/$1/source" ;;
		*) mkdir -p "$work/$1/source" && tar -x -C "$work/$1/source" --strip-components 1 -f "$archive" ;;
		esac
	fi
	build "$1" "$5"
	emit "$1" "$4" $(find "$DEBIAN/root-$2/usr" -type f \( -name 'libluajit-5.1.so.*' -o -name luajit \
		-o -name 'luajit-2.*' \) -size +100k | LC_ALL=C sort)
}

# Debian's package has one patch that moves members: LuaJIT's commit e9af1abe. All of it applies but what makes the first
# thread; what it asserts by is younger.
patch_bullseye() {
	wanted debian-bullseye || return 0
	[ ! -e "$work/debian-bullseye/source" ] || return 0
	mkdir -p "$work/debian-bullseye/source"
	tar -x -C "$work/debian-bullseye/source" --strip-components 1 -f "$DEBIAN/src-bullseye/$1"
	git -C "$LUAJIT" show e9af1abe -- src ':!src/lj_state.c' | patch -s -p1 -d "$work/debian-bullseye/source"
	printf '#define lj_assertG(...) ((void)0)\n#define lj_assertJ(...) ((void)0)\n' \
		>>"$work/debian-bullseye/source/src/luaconf.h"
}

patch_bullseye luajit_2.1.0~beta3+dfsg.orig.tar.gz
from_debian debian-bullseye bullseye luajit_2.1.0~beta3+dfsg.orig.tar.gz \
	"Debian bullseye, luajit 2.1.0~beta3+dfsg-5.3: upstream archive and LuaJIT's e9af1abe, which Debian's patch is" ""
from_debian debian-bookworm bookworm luajit_2.1.0~beta3+git20220320+dfsg-4.1+deb12u1.dsc \
	"Debian bookworm, luajit 2.1.0~beta3+git20220320+dfsg-4.1+deb12u1" ""
from_debian debian-bookworm-luajit2 bookworm-luajit2 luajit2_2.1-20230119-1.dsc \
	"Debian bookworm, luajit2 2.1-20230119-1" ""
from_debian debian-trixie trixie luajit_2.1.0+openresty20250117.orig.tar.xz \
	"Debian trixie, luajit 2.1.0+openresty20250117-2, upstream archive without Debian's patches" ""
from_debian debian-sid sid luajit_2.1.0+openresty20251030-1.dsc \
	"Debian sid, luajit 2.1.0+openresty20251030-1" "-DLUAJIT_ENABLE_LUA52COMPAT"

from_git beta3 "$OPENRESTY" v2.1.0-beta3 "LuaJIT, tag v2.1.0-beta3" ""
from_git beta3-gc64 "$OPENRESTY" v2.1.0-beta3 "LuaJIT, tag v2.1.0-beta3" -DLUAJIT_ENABLE_GC64
for tag in 20190507 20200102 20201027 20210510 20211210 20220411 20230119 20230410 20231117 20240314; do
	from_git "openresty-$tag" "$OPENRESTY" "v2.1-$tag" "OpenResty, tag v2.1-$tag" ""
	from_git "openresty-$tag-gc32" "$OPENRESTY" "v2.1-$tag" "OpenResty, tag v2.1-$tag" "$no_gc64"
done

for commit in 827916c6 e1e3034c a119497b 4c2441c1 8635cbab 93e87998 f9140a62 b925b3e3; do
	date=$(git -C "$LUAJIT" log -1 --format=%cs $commit)
	from_git "upstream-$date" "$LUAJIT" $commit "LuaJIT, branch v2.1, commit $commit of $date" ""
	from_git "upstream-$date-gc32" "$LUAJIT" $commit "LuaJIT, branch v2.1, commit $commit of $date" "$no_gc64"
done

python3 "$here/join.py" "$work/layout" "$here" $made
