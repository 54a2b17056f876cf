#!/bin/bash
# Makes the matrices that are checked in anew. Of this machine it takes some minutes. The user-mode kernel has one CPU and
# takes ten times as long for each attempt, so there several kernels try a few probes each, beside each other: half an hour
# or more on two CPUs.
#
# Usage: scripts/lab-matrix.sh [machine|uml]...      B: the build's directory; JOBS: kernels at once (3)
set -euo pipefail
cd "$(dirname "$0")/.."
export MAYFLY_ROOTFS=${MAYFLY_ROOTFS:-$PWD/build/rootfs} B=${B:-build}
[ "$(id -u)" = 0 ] || { echo "lab-matrix: the matrices are root's" >&2 && exit 1; }
[ $# -gt 0 ] || set -- machine uml

export dir
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# part NUMBER IDS: those probes in a kernel of their own
part() {
    "$B/mayfly" lab --where kernel --no-price --quiet --probe "$2" --json "$dir/$1.part" >/dev/null
    echo "$2" >&2
}
export -f part

# The order is that of the table, which is that of the machine's matrix.
uml() {
    # shellcheck disable=SC2016 # the inner shell expands
    python3 tests/lab/matrix.py ids tests/lab/matrix-machine.txt | tr ' ' '\n' | paste -sd ',,,,\n' |
        awk '{printf "%03d %s\n", NR, $0}' | xargs -P "${JOBS:-3}" -L 1 bash -c 'part "$1" "$2"' -
    python3 tests/lab/matrix.py print "$dir"/*.part
}

machine() {
    "$B/mayfly" lab --no-price --json "$dir/lab.json" >/dev/null
    python3 tests/lab/matrix.py print "$dir/lab.json"
}

for host; do
    case $host in
        machine | uml) "$host" >"$dir/matrix" && mv "$dir/matrix" "tests/lab/matrix-$host.txt" ;;
        *) echo "usage: $0 [machine|uml]..." >&2 && exit 2 ;;
    esac
done
