#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records walks of this machine's runtimes anew: sh tests/replay/record.sh [NAME]... in the sources, behind a build of the
# release tree. Other versions: the same command with another program (README.md).
set -eu
cd "$(dirname "$0")/../.."
build=build/release
wanted=" $* "

record() { # NAME COMMAND...
	name=$1
	shift
	[ "$wanted" = "  " ] || case $wanted in *" $name "*) ;; *) return 0 ;; esac
	echo "$name"
	env -i PATH="$PATH" "$build/yrt-record-walks" "tests/replay/$name.walks" "$@" || echo "$name was not recorded" >&2
}


# C between Python's functions, a generator, recursion.
mixed='
def key(x): return sum(range(x % 50))
def deep(n): return deep(n - 1) if n else sorted(range(50), key=key)
def items():
    for i in range(50): yield deep(i % 12)
while True: max(items(), key=len)
'
for fixture in deep30 signals callbacks exceptions realign; do
	record native-$fixture -- $build/fixtures/$fixture 60
done
version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
record python-$version-steps -- /usr/bin/python3 -B fixtures/python/steps.py
record python-$version-mixed -- /usr/bin/python3 -c "$mixed"
for version in 5.1 5.2 5.3 5.4; do
	record lua-$version -- lua$version fixtures/lua/steps.lua
done
for script in calls storm kinds deep garbage split templates; do
	record luajit-$script -- $build/fixtures/lua_host fixtures/lua/$script.lua
	record luajit-$script-interpreted -- luajit -joff fixtures/lua/$script.lua 60
done
for script in steps kinds; do
	record perl-5.36-$script -- perl fixtures/perl/$script.pl
done
for mode in interpreted:-Xint c1:-XX:TieredStopAtLevel=1 c2:-XX:-TieredCompilation tiered:-XX:+TieredCompilation; do
	record java-17-${mode%%:*} -t steps -- java -cp $build/fixtures/java -Xbatch ${mode#*:} steps
done
for program in steps chains; do
	(cd fixtures/go/$program && GO111MODULE=off GOTOOLCHAIN=local go build -o "../../../$build/fixtures/go_$program" .)
	record go-1.26-$program -- $build/fixtures/go_$program
done
