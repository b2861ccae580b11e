#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the layout library of Lua: make.sh YRT REPOSITORY, a clone of Lua's own repository with its tags. Builds each release with -g,
# and joins releases with the same layout. Releases before the git tags (5.1) are the commits that imported them.
set -eu
yrt=$1 repository=$2
out=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

releases="5.1.3:3a5ce5e7 5.1.4:300cd56e 5.1.5:73465bf0"
for tag in 5.2.0 5.2.1 5.2.2 5.2.3 5.3.0 5.3.1 5.3.2 5.3.3 5.3.4 5.3.5 5.3.6 5.4.0 5.4.1 5.4.2 5.4.3 5.4.4 5.4.5 5.4.6 5.4.7 5.4.8 5.5.0; do
	releases="$releases $tag:v$tag"
done
for release in $releases; do
	name=${release%%:*} commit=${release#*:} dir=$work/${release%%:*}
	mkdir -p "$dir"
	git -C "$repository" archive "$commit" | tar x -C "$dir"
	[ ! -d "$dir/src" ] || dir=$dir/src
	(cd "$dir" && gcc -std=gnu99 -w -O1 -g -fPIC -shared -o "$work/$name.so" \
		lapi.c lcode.c ldebug.c ldo.c ldump.c lfunc.c lgc.c llex.c lmem.c lobject.c lopcodes.c lparser.c lstate.c lstring.c \
		ltable.c ltm.c lundump.c lvm.c lzio.c lauxlib.c $(ls lctype.c 2>/dev/null)) || { echo "$name: does not build" >&2; continue; }
	"$yrt" layout --runtime lua "$work/$name.so" | grep -v -e '^#' -e '^build-id' -e '^runtime' > "$work/$name.members"
done
for members in "$work"/*.members; do
	[ -f "$members" ] || continue
	name=$(basename "$members" .members)
	{
		echo "# SPDX-License-Identifier: Apache-2.0"
		echo "# made by make.sh from builds of upstream's releases with -g"
		echo "runtime lua"
		for other in "$work"/*.members; do
			cmp -s "$members" "$other" && echo "version Lua $(basename "$other" .members)"
		done
		cat "$members"
	} > "$work/layout"
	for other in "$work"/*.members; do
		cmp -s "$members" "$other" && [ "$other" != "$members" ] && mv "$other" "$other.done"
	done
	mv "$work/layout" "$out/lua-$name.layout"
	mv "$members" "$members.done"
done
