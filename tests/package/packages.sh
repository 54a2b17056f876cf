#!/bin/bash
# What debian.sh and bare.sh share: the Debian packages of the build that is tested.

make_packages() {
    local helper=$B/mayfly-delegate
    [ -x "$helper" ] || helper=
    B="$B" HELPERS="$helper" scripts/deb.sh "$1"
}

# Made once for all tests, unless something that goes into them is newer.
packages() {
    need dpkg-deb dpkg-shlibdeps strip
    debs=$B/test-debs
    if [ ! -e "$debs/made" ] ||
        [ -n "$(find man packaging scripts include README.md "$B/mayfly" "$B/libmayfly.so.0" -newer "$debs/made")" ]; then
        rm -rf "$debs"
        make_packages "$debs"
        touch "$debs/made"
    fi
    arch=$(dpkg --print-architecture)
    version=$("$B/mayfly" version | cut -d' ' -f2)
}
deb() { echo "$debs/$1_${version}_$arch.deb"; }
