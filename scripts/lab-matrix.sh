#!/bin/bash
# Makes the matrices that are checked in anew: of this machine, some minutes, and of the user-mode kernel, where all takes
# some times as long.
#
# Usage: scripts/lab-matrix.sh [machine|uml]...      B: the build's directory
set -euo pipefail
cd "$(dirname "$0")/.."
export MAYFLY_ROOTFS=${MAYFLY_ROOTFS:-$PWD/build/rootfs}
[ "$(id -u)" = 0 ] || { echo "lab-matrix: the matrices are root's" >&2 && exit 1; }
[ $# -gt 0 ] || set -- machine uml

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for host; do
    case $host in
        machine) where=box ;;
        uml) where=kernel ;;
        *) echo "usage: $0 [machine|uml]..." >&2 && exit 2 ;;
    esac
    "${B:-build}/mayfly" lab --where "$where" --no-price --json "$dir/lab.json" >/dev/null
    python3 tests/lab/matrix.py print "$dir/lab.json" >"$dir/matrix"
    mv "$dir/matrix" "tests/lab/matrix-$host.txt"
done
