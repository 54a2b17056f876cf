#!/bin/bash
# The public names are the same in four places: those that mayfly.h declares, those that the version
# script lists, those that the shared library exports, and those that the installed archive defines.
# A name too many is a promise nobody meant; one too few is a program that does not link.
#
# Usage: scripts/check-exports.sh [BUILD-DIRECTORY]
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
build=${1:-build}
so=$build/libmayfly.so.0 archive=$build/public/libmayfly.a
bad=0
report() { echo "check-exports: $1" >&2 && bad=1; }
for file in "$so" "$archive"; do
    [ -e "$file" ] || { echo "check-exports: $file is not there; run make" >&2 && exit 2; }
done

# The preprocessor leaves no comment in which a name could be mentioned.
declared=$(${CC:-cc} -E -P include/mayfly.h | tr '\n' ' ' |
    grep -oE 'visibility\("default"\)\)\)[^;(]*\(' | grep -oE '[a-zA-Z_0-9]+ *\($' | tr -d ' (' | sort || true)
listed=$(sed -n '/^global:/,/^local:/s/^ *\([a-zA-Z_0-9]*\);.*/\1/p' src/lib/libmayfly.map | sort)
exported=$(nm -D --defined-only --format=posix "$so" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' | sort)
defined=$(nm -g --defined-only --format=posix "$archive" | awk 'NF > 2 { print $1 }' | sort)

[ -n "$declared" ] || report "no declaration is found in include/mayfly.h"
compare() {
    local left=$1 right=$2
    while read -r name; do
        [ -z "$name" ] || report "$name is in $3, but not in $4"
    done < <(comm -23 <(echo "$left") <(echo "$right"))
    while read -r name; do
        [ -z "$name" ] || report "$name is in $4, but not in $3"
    done < <(comm -13 <(echo "$left") <(echo "$right"))
}
compare "$declared" "$listed" include/mayfly.h src/lib/libmayfly.map
compare "$declared" "$exported" include/mayfly.h "$so"
compare "$declared" "$defined" include/mayfly.h "$archive"
while read -r name; do
    [[ $name == mayfly_* ]] || report "$name does not begin with mayfly_"
done <<<"$declared"
soname=$(objdump -p "$so" | awk '$1 == "SONAME" { print $2 }')
[ "$soname" = libmayfly.so.0 ] || report "the soname is \"$soname\""
exit $bad
