#!/bin/bash
# Runs CPython's own test suite twice, in the box and bare in the same rootfs, and compares.
#
# The suite is Debian's package for the Python that build/rootfs holds, unpacked into a copy of it
# (build/cpython/root). Bare is a chroot as the uid that the box gives, with namespaces of its own
# so that neither the network nor what a test leaves behind can differ; all that is left to differ
# is the box. Both sides get the same generous limits of time, and every module a fresh place.
#
# tests/live/cpython/driver.py leaves a few cases out on both sides, with the reason;
# tests/live/cpython/differences.txt has the reviewed differences, each with its reason. Any other
# is a failure; one that did not show up is reported, and a failure with --strict.
#
# Usage: scripts/cpython-suite.sh [--prepare] [--strict] [--repeat] [MODULE...]
#   MODULE...   only these (default: all)
#   --prepare   only fetch and unpack
#   --repeat    with results of an earlier call there, compare those and run nothing
# Exit status: 0 as reviewed; 1 it differs; 77 it cannot be run here, said in words.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

build=${MAYFLY_BUILD:-build}
mayfly=${MAYFLY_BIN:-$PWD/$build/mayfly}
rootfs=${MAYFLY_ROOTFS:-$PWD/build/rootfs}
place=$PWD/build/cpython
root=$place/root
here=tests/live/cpython
patience=${MAYFLY_CPYTHON_SECONDS:-900}
prepare='' strict='' repeat=''

cannot() { echo "cpython: skipped: $1" && exit 77; }

while [[ ${1:-} == --* ]]; do
    case $1 in
        --prepare) prepare=1 ;;
        --strict) strict=1 ;;
        --repeat) repeat=1 ;;
        *) echo "cpython: no option $1" >&2 && exit 2 ;;
    esac
    shift
done

# ---------------------------------------------------------------------------- the suite's rootfs

# package NAME: the version of it that the rootfs holds
package() { sed -n "s/^package=$1_\([^_]*\)_.*/\1/p" "$rootfs/etc/mayfly-rootfs" | sed 's/%3a/:/'; }

prepare() {
    local python version packages deb
    [ -r "$rootfs/etc/mayfly-rootfs" ] || cannot "no rootfs that rootfs/build.sh made at $rootfs"
    python=$(sed -n 's/^name=.*-\(python.*\)/\1/p' "$rootfs/etc/mayfly-rootfs")
    version=$(package "lib$python-stdlib")
    cmp -s "$rootfs/etc/mayfly-rootfs" "$place/complete" && return
    command -v apt-get >/dev/null || cannot "no apt-get to fetch Debian's lib$python-testsuite"
    chmod -R u+w "$root" 2>/dev/null
    rm -rf "$root" "$place/complete"
    mkdir -p "$place/debs" "$root"
    # The standard library again, since the rootfs is built without the part that runs tests.
    packages=("lib$python-stdlib" "lib$python-testsuite")
    for deb in "${packages[@]}"; do
        compgen -G "$place/debs/${deb}_*.deb" >/dev/null ||
            (cd "$place/debs" && apt-get -q download "$deb=$version") >"$place/log" 2>&1 ||
            cannot "apt-get download $deb=$version: $(tail -1 "$place/log")"
    done
    cp -a "$rootfs/." "$root/"
    for deb in "$place"/debs/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" |
            tar -C "$root" -xf - --no-same-owner --keep-directory-symlink
    done || cannot "the packages could not be unpacked"
    "$mayfly" run --limits best-effort --rootfs "$root" --timeout 60s python3 -c \
        'from test.libregrtest.runtest import findtests; print(*findtests(), sep="\n")' \
        >"$place/modules" || cannot "the suite's modules could not be listed"
    cp "$rootfs/etc/mayfly-rootfs" "$place/complete"
}

# ---------------------------------------------------------------------------- the two sides

in_box() {
    "$mayfly" run --rootfs "$root" -m 2g --cpus 2 --pids-limit 2048 \
        --timeout "$((patience + 20))s" \
        --tmp-size 1g --tmp-inodes 200000 --max-output 16m --ulimit fsize=17179869184 "$@"
}

# shellcheck disable=SC2016 # the inner shell expands it
bare='root=$1; shift
    mount --make-rprivate / && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
    mount -t tmpfs -o size=1g,mode=1777 tmp "$root/dev/shm" &&
    mount -t tmpfs -o size=1g,mode=1777 tmp "$root/tmp" &&
    mount -t tmpfs -o size=1g,mode=755 tmp "$root/home" &&
    mkdir -m 700 "$root/home/box" && chown 1000:1000 "$root/home/box" &&
    ip link set lo up && ulimit -c 0 && ulimit -n 1024 && cd "$root/home/box" &&
    exec chroot --userspec=1000:1000 --groups=1000 "$root" env -i -C /home/box USER=box \
        LOGNAME=box HOME=/home/box SHELL=/bin/sh LANG=C.UTF-8 HOSTNAME=mayfly \
        PATH=/usr/bin:/bin:/usr/sbin:/sbin "$@"'
in_bare() {
    unshare --mount --net --pid --ipc --uts --fork --kill-child -- sh -c "$bare" bare "$root" "$@"
}

# side NAME MODULE...: its results, in a file of that name
side() {
    local name=$1 module
    shift
    for module in "$@"; do
        "in_$name" python3 /opt/driver.py "$patience" "$module" 2>>"$place/$name.err" ||
            printf '%s\t*\tlost\tno report came\n' "$module"
    done >"$place/$name.part" </dev/null 9>&-
    mv "$place/$name.part" "$place/$name"
}

[ -n "$prepare" ] || [ "$(id -u)" = 0 ] || cannot "the bare side needs root, for its chroot"
mkdir -p "$place"
exec 9>"$place/lock" && flock 9
prepare
[ -z "$prepare" ] || exit 0
mkdir -p "$root/opt" && cp "$here/driver.py" "$root/opt/driver.py"
if [ $# -gt 0 ]; then
    modules=("$@") place=$place/some
    mkdir -p "$place"
else
    mapfile -t modules <"$place/modules"
fi
if [ -z "$repeat" ]; then
    rm -f "$place"/{box,bare}{,.err}
    side bare "${modules[@]}" &
    side box "${modules[@]}"
    wait
fi
awk -v strict="$strict" -f $here/compare.awk $here/differences.txt "$place/bare" "$place/box"
